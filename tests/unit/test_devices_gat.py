"""Signature queries against a simulated device under a virtual clock: reports are right, or are none."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from devices.base import Setup
from devices.events import to_json
from devices.registry import load
from devices.verifiers.gat import component
from firmware_bridge.gat import messages, queries
from firmware_bridge.link import Done, NotSent, Refused, Unknown
from simulators import faults
from simulators.wire.gat import XML, frame
from tests.support.gat import CARDS, PROGRAMS, SALT, UI, frames_of, gat_device, gat_line, hmac_sha1
from tests.support.line import Line

COMPONENT = {"name": UI, "salt": SALT}
SQ, IACQ = frame(1), frame(4, b"\xba\x00Component\t" + UI.encode() + b"\t" + SALT.encode())


def asked(line: Line, code: int) -> list[bytes]:
    return [sent for sent in line.wire.sent if sent[0] == code]


def start(line: Line, call: str, command: str = "component", **args: str) -> None:
    line.port.command(call, command, args or (COMPONENT if command == "component" else {}))


def ask(line: Line, command: str = "component", within: float = 60.0, **args: str) -> Any:
    """The end of one command."""
    call = f"{command} {len(line.ends)}"
    start(line, call, command, **args)
    return line.end_of(call, within)


def right(end: Any, name: str = UI, salt: str = SALT) -> bool:
    return isinstance(end, Done) and hmac_sha1(salt, PROGRAMS[name]) in end.answer["report"]


# Right reports


def test_a_session_tells_who_is_there_and_polls_each_second() -> None:
    line = gat_line()
    (up,) = line.of("link_up")
    assert up.identity == {"protocol": "GAT", "version": "3.50"}
    assert up.status == {
        "version": "3.50", "state": "idle", "results": False, "formats": ["text", "xml"], "level": "00",
        "seconds": 0,
    }  # fmt: skip
    line.wire.sent.clear()
    line.run(60.0)
    assert set(line.wire.sent) == {SQ}
    assert 55 <= len(line.wire.sent) <= 60
    assert line.kinds == ["link_up"]


@pytest.mark.parametrize("name", list(PROGRAMS))
@pytest.mark.parametrize("formats", [1, 2, 3])
@pytest.mark.parametrize("piece", [248, 100, 1])
def test_a_component_s_hash_is_what_its_program_gives(name: str, formats: int, piece: int) -> None:
    line = gat_line(gat_device(formats=formats, piece=piece))
    end = ask(line, name=name, salt=SALT)
    assert right(end, name)
    assert end.answer["format"] == ("xml" if formats & XML else "text")
    report = line.device.report(2 if formats & XML else 1)
    assert end.answer["report"] == report.decode()
    assert end.answer["frames"] == -(-len(report) // piece)
    assert (end.answer["foreign"], end.answer["age"]) == (0, 0)


def test_a_report_of_exactly_full_frames_has_no_empty_one_behind() -> None:
    device = gat_device()
    line = gat_line(device)
    size = len(ask(line).answer["report"].encode())
    device._piece = max(n for n in range(1, 249) if size % n == 0)
    assert ask(line, "results").answer["frames"] == size // device._piece > 1


@pytest.mark.parametrize(("salt", "sent"), [("none", "(none)"), ("0xAb01", "0xAb01"), ("00", "00")])
def test_the_salt_goes_out_as_it_was_written(salt: str, sent: str) -> None:
    line = gat_line()
    end = ask(line, name=UI, salt=salt)
    assert isinstance(end, Done)
    (request,) = asked(line, 4)
    assert request[4:-2] == f"Component\t{UI}\t{sent}".encode()
    if salt != "none":
        assert right(end, salt=salt)


def test_other_salts_other_hashes_and_the_same_salt_the_same() -> None:
    line = gat_line()
    first, other, again = (ask(line, name=UI, salt=salt) for salt in (SALT, SALT[::-1], SALT))
    assert first.answer["report"] == again.answer["report"] != other.answer["report"]


def test_functions_results_status_and_last() -> None:
    line = gat_line(gat_device(utf16=True))
    listed = ask(line, "functions")
    assert f"<Parameter>{UI}</Parameter>" in listed.answer["report"]
    assert ask(line, "results").answer["report"] == listed.answer["report"]
    line.run(30.0)
    assert ask(line, "last").answer == {"level": "BA", "seconds": pytest.approx(30, abs=3)}
    assert ask(line, "status").answer["state"] == "finished"
    assert line.of("authentication_reported")[0].report == listed.answer["report"]


def test_states_are_told_when_they_change() -> None:
    line = gat_line(gat_device(duration=5.0))
    ask(line)
    line.run(5.0)
    assert [e.state for e in line.of("authentication_state")] == ["calculating", "finished"]
    assert [e.n for e in line.events] == list(range(1, len(line.events) + 1))


def test_the_line_rests_10_ms_after_each_frame() -> None:
    line, times = gat_line(gat_device(piece=50)), list[tuple[float, str]]()
    write = line.wire.write

    def up(piece: bytes) -> Any:
        times.append((line.clock.now(), "in"))
        return [(0.0, piece)]

    line.wire.up = up
    line.wire.write = lambda data: (times.append((line.clock.now(), "out")), write(data))[1]
    assert right(ask(line))
    gaps = [b[0] - a[0] for a, b in pairwise(times) if (a[1], b[1]) == ("in", "out")]
    assert len(gaps) > 10
    assert min(gaps) >= 0.0099


# Slow, failed, refused


def test_a_calculation_of_nearly_20_minutes_is_waited_for_with_a_poll_each_second() -> None:
    line = gat_line()
    faults.apply(line.device, "slow_calculation")
    assert right(ask(line, within=1250.0))
    assert 1100 < len(asked(line, 1)) < 1250
    assert len(asked(line, 4)) == 1


def test_one_of_more_than_20_minutes_ends_unknown() -> None:
    line = gat_line()
    faults.apply(line.device, "slow_calculation:1300")
    end = ask(line, within=1250.0)
    assert end == Unknown("the calculation did not end within 20 minutes")


@pytest.mark.parametrize(
    ("fault", "code"),
    [("error", "error"), ("level_error", "level"), ("nak", "nak"), ("old_version", "version")],
)
def test_field_44_what_a_device_cannot_do_is_told_apart_from_what_failed(fault: str, code: str) -> None:
    line = gat_line()
    faults.apply(line.device, fault)
    end = ask(line)
    assert isinstance(end, Refused)
    assert end.code == code
    assert (code in queries.NOT_SUPPORTED) is (fault != "error")
    assert not line.of("authentication_reported")


def test_an_old_device_tells_its_status_and_its_last_report_all_the_same() -> None:
    device = gat_device(formats=1)
    line = gat_line(device)
    ask(line)
    device.version = 0x0200
    assert isinstance(ask(line), Refused)
    assert len(asked(line, 4)) == 1, "an old device is not asked for what it does not know"
    assert right(ask(line, "results"))
    assert ask(line, "status").answer["version"] == "2.00"


def test_a_device_that_calculates_for_somebody_else_is_left_alone() -> None:
    line = gat_line(gat_device(duration=30.0))
    line.device.receive(IACQ, line.clock.now())
    line.run(2.0)
    end = ask(line)
    assert isinstance(end, NotSent)
    assert "somebody else" in end.reason
    assert not asked(line, 4)


def test_a_restart_in_mid_calculation_is_no_report() -> None:
    line = gat_line(gat_device(duration=30.0))
    start(line, "a")
    line.run(10.0)
    line.device.machine.power_cut(2.0)
    end = line.end_of("a")
    assert isinstance(end, Refused)
    assert (end.code, "restarted" in end.name) == ("idle", True)


def test_a_report_of_an_earlier_calculation_is_not_taken_for_ours() -> None:
    """A device that begins late still says `finished` of the calculation before."""
    line = gat_line(gat_device(pickup=6.0))
    assert right(ask(line))
    line.run(30.0)
    other = ask(line, name=CARDS, salt=SALT)
    assert right(other, CARDS)
    assert UI not in other.answer["report"]


def test_a_device_that_takes_a_request_and_lets_it_lie_is_given_up_after_a_minute() -> None:
    line = gat_line(gat_device(pickup=5000.0))
    assert ask(line, within=70.0).code == "idle"


def test_a_refused_repeat_leaves_it_unknown_for_the_first_may_be_under_way() -> None:
    line = gat_line(gat_device(pickup=10.0))
    lost: list[bytes] = []

    def up(piece: bytes) -> Any:
        if piece[0] == 0x84 and not lost:
            lost.append(piece)
            return []
        return [(0.0, piece)]

    line.wire.up = up
    end = ask(line)
    assert isinstance(end, Unknown)
    assert "its repeat refused" in end.reason


def test_a_device_that_goes_on_to_show_an_old_report_is_unknown_after_20_minutes() -> None:
    line = gat_line(gat_device(pickup=5000.0))
    line.device.machine.pickup = 0.0
    ask(line)
    line.run(30.0)
    line.device.machine.pickup = 5000.0
    assert isinstance(ask(line, within=1250.0), Unknown)


def test_a_device_that_does_not_tell_when_it_last_calculated_is_believed_with_a_mark() -> None:
    line = gat_line()
    line.wire.up = lambda piece: [] if piece[0] == 0x82 else [(0.0, piece)]
    end = ask(line)
    assert right(end)
    assert end.answer["age"] is None


# A bad line


@pytest.mark.parametrize("fault", ["bad_crc", "late_answer:1.5", "chatter", "silent:0.5"])
def test_one_answer_damaged_late_or_lost_costs_a_repeat_and_nothing_else(fault: str) -> None:
    for number in range(1, 13):
        line = gat_line(gat_device(piece=300 // 2))
        faults.apply(line.device, f"{fault}@{number}")
        end = ask(line)
        assert right(end), (number, end)
        assert line.kinds.count("link_down") == 0
        assert end.answer["foreign"] == 0


def test_a_device_is_silent_on_bad_check_bytes_and_so_are_we() -> None:
    line = gat_line()
    for number, damaged in enumerate((b"\x01\x04\xe3\x02", b"\x01\x04\x01\xe3"), 1):
        line.device.receive(damaged, 10.0 * number)
        assert (line.device.transmit(10.0 * number + 5), line.device.bad) == (b"", number)
    line = gat_line()
    line.wire.sent.clear()
    faults.apply(line.device, "bad_crc@1")
    line.run(2.5)
    assert set(line.wire.sent) == {SQ}, "nothing is said about it"
    (bad,) = line.of("frame_rejected")
    assert (bad.reason, bad.bytes) == ("bad CRC", 8)


@pytest.mark.parametrize("fault", ["bad_crc", "silent"])
def test_a_device_that_is_never_understood_is_given_up(fault: str) -> None:
    line = gat_line()
    faults.apply(line.device, fault)
    start(line, "a")
    assert isinstance(line.end_of("a"), Unknown)
    line.run(20.0)
    assert line.kinds.count("link_down") == 1
    assert "no right answer came" in line.of("link_down")[0].reason
    line.wire.sent.clear()
    line.run(600.0)
    assert len(line.wire.sent) < 250, "tried less and less often"


def test_a_device_that_is_silent_for_some_time_while_it_calculates_is_waited_for() -> None:
    line = gat_line(gat_device(duration=60.0))
    start(line, "a")
    line.run(3.0)
    faults.apply(line.device, "silent:20@1")
    assert right(line.end_of("a", 80.0))


def test_one_that_falls_silent_for_good_is_unknown_within_a_minute() -> None:
    line = gat_line(gat_device(duration=60.0))
    start(line, "a")
    line.run(3.0)
    faults.apply(line.device, "silent")
    assert isinstance(line.end_of("a", 60.0), Unknown)


def test_a_frame_with_a_wrong_number_is_asked_for_again_and_never_put_in() -> None:
    for number in range(1, 5):
        line = gat_line()
        faults.apply(line.device, f"wrong_frame@{number}")
        end = ask(line)
        assert right(end)
        assert end.answer["report"] == line.device.report(2).decode()
        assert end.answer["foreign"] == 0


def test_wrong_numbers_for_ever_are_no_report() -> None:
    line = gat_line()
    faults.apply(line.device, "wrong_frame")
    end = ask(line)
    assert isinstance(end, Unknown)
    assert end.reason.startswith("frame 1 of the report did not come")
    assert [request[4] for request in asked(line, 3)] == [1, 1, 1]


def test_an_error_in_the_place_of_a_frame_is_a_refusal() -> None:
    line = gat_line()
    assert ask(line, "results") == Refused("report", "the device has no frame 1 of a report")
    line.wire.up = lambda piece: [(0.0, frame(0x83, b"\x01\x00\x00") if piece[0] == 0x83 else piece)]
    assert ask(line) == Refused("report", "the device has no frame 1 of a report")


def test_a_late_error_of_a_report_answers_no_other_question() -> None:
    """As after a plug was pulled in the middle of a report: the new session asks for the status."""
    driver = load("gat").reader(Setup("gat", Random(1)))
    driver.start(0.0)
    driver.feed(frame(0x83, b"\x01\x00\x00"), 0.1)
    assert driver.counters.unasked == 1
    driver.feed(frame(0x81, b"\x03\x50\x04\x03"), 0.2)
    driver.tick(0.3)
    (up,) = driver.feed(frame(0x82, b"\x00\x00\x00\x00\x07"), 0.4)
    assert (up.kind, up.status["seconds"]) == ("link_up", 7)


def test_a_report_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "FRAMES", 300)
    line = gat_line()
    endless = {}

    def up(piece: bytes) -> Any:
        if piece[0] != 0x83:
            return [(0.0, piece)]
        endless["number"] = endless.get("number", 0) + 1
        return [(0.0, frame(0x83, b"\x00" + endless["number"].to_bytes(2, "big") + b"x" * 248))]

    line.wire.up = up
    end = ask(line)
    assert end == Refused("report", "the report does not end within 300 frames")
    assert len(asked(line, 3)) == 300


def test_a_lost_answer_to_the_request_starts_no_second_calculation_while_one_runs() -> None:
    line = gat_line(gat_device(duration=10.0))
    lost: list[bytes] = []

    def up(piece: bytes) -> Any:
        if piece[0] == 0x84 and not lost:
            lost.append(piece)
            return []
        return [(0.0, piece)]

    line.wire.up = up
    assert right(ask(line))
    assert (len(lost), len(asked(line, 4))) == (1, 1)


@pytest.mark.parametrize("times", [1, 2])
def test_a_lost_request_is_sent_again(times: int) -> None:
    line = gat_line()
    lost: list[bytes] = []

    def down(piece: bytes) -> Any:
        if piece[0] == 4 and len(lost) < times:
            lost.append(piece)
            return []
        return [(0.0, piece)]

    line.wire.down = down
    assert right(ask(line))
    assert len(asked(line, 4)) == times + 1


@pytest.mark.parametrize("gap", [0.06, 0.2, 0.4])
def test_i17_pauses_between_bytes_end_no_frame(gap: float) -> None:
    line = gat_line()
    line.wire.up = lambda piece: [(0.0, piece[:3]), (gap, piece[3:])]
    assert right(ask(line))
    assert "frame_rejected" not in line.kinds


def test_half_a_frame_is_cleaned_away_after_silence_and_costs_no_later_one() -> None:
    line = gat_line()
    line.wire.up = lambda piece: [(0.0, b"\x83\xff"), (0.01, piece)]
    end = ask(line, within=200.0)
    assert right(end)
    assert {e.reason for e in line.of("frame_rejected")} <= {"incomplete frame", "bad CRC"}


def test_an_adapter_that_gives_back_what_was_sent_is_no_other_master() -> None:
    line = gat_line()
    line.wire.up = lambda piece: [(0.0, line.wire.sent[-1] + piece)]
    end = ask(line)
    assert right(end)
    assert end.answer["foreign"] == 0
    assert "warning" not in line.kinds


# Two masters


def test_another_host_s_polls_with_our_answers_change_nothing() -> None:
    line = gat_line(gat_device(duration=10.0))
    start(line, "a")
    for _ in range(20):
        line.run(0.37)
        line.device.receive(SQ, line.clock.now())
    end = line.end_of("a")
    assert right(end)


def test_another_host_s_request_is_noticed_and_marks_the_report() -> None:
    line = gat_line(gat_device(duration=10.0))
    start(line, "a")
    line.run(3.0)
    line.device.receive(frame(4, b"\xba\x00Get Special Functions"), line.clock.now())
    end = line.end_of("a")
    assert end.answer["foreign"] == 1
    (warning,) = line.of("warning")
    assert warning.code == "another_master"


def test_a_report_that_another_host_asked_for_is_never_given_without_the_mark() -> None:
    """It is served just after us, so the report that we fetch is to its question."""
    line = gat_line(gat_device(duration=1.0))
    start(line, "a")
    line.run(0.9, lambda: line.device.machine.state == "finished")
    line.run(1.3, lambda: line.device.machine.state == "finished")
    line.device.receive(frame(4, b"\xba\x00Get Special Functions"), line.clock.now())
    end = line.end_of("a")
    assert end.answer["foreign"] >= 1
    assert not right(end)


def test_faults_two_masters_as_the_simulator_has_them() -> None:
    line = gat_line(gat_device(duration=5.0))
    faults.apply(line.device, "two_masters@4")
    assert ask(line).answer["foreign"] >= 1


# Commands and captures


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("verify", {}, "GAT has no command 'verify': it knows status, last, results, functions, component"),
        ("component", {"name": "x"}, "component takes name, salt"),
        ("component", {"name": "", "salt": "00"}, "a component's name has 1..160 printable Latin-1"),
        ("component", {"name": "a\tb", "salt": "00"}, "a component's name has"),
        ("component", {"name": "дом", "salt": "00"}, "a component's name has"),
        ("component", {"name": "x", "salt": "abc"}, "a salt is up to 32 bytes in hex, or none, not 'abc'"),
        ("component", {"name": "x", "salt": "00" * 33}, "a salt is up to 32 bytes in hex"),
    ],
)  # fmt: skip
def test_what_cannot_be_right_is_never_sent(name: str, args: dict[str, str], says: str) -> None:
    line = gat_line()
    line.port.command("a", name, args)
    end = line.end_of("a", 1.0)
    assert isinstance(end, NotSent)
    assert end.reason.startswith(says)
    assert not asked(line, 4)


def test_the_longest_request_fits_one_frame() -> None:
    assert len(messages.initiate(component("x" * 160, "0x" + "00" * 32))) <= 255


def test_commands_wait_for_each_other_and_each_ends_once() -> None:
    line = gat_line()
    for call in ("a", "b"):
        start(line, call)
    start(line, "a")
    start(line, "c", "status")
    assert right(line.end_of("b"))
    assert right(line.ends["a"])
    assert line.end_of("c").answer["state"] == "finished"
    assert len(asked(line, 4)) == 2


def test_a_lost_line_ends_what_runs_unknown_and_what_waits_not_sent() -> None:
    line = gat_line(gat_device(duration=30.0))
    start(line, "a")
    start(line, "b", "status")
    line.run(5.0)
    line.unplug()
    line.run(1.0)
    assert isinstance(line.ends["a"], Unknown)
    assert isinstance(line.ends["b"], NotSent)
    line.replug()
    line.run(3.0, lambda: line.kinds.count("link_up") == 2)
    line.run(0.1)
    assert line.of("link_up")[1].status["state"] == "calculating"


def test_the_reading_form_starts_nothing() -> None:
    line = gat_line(form="reader")
    line.run(10.0)
    assert not hasattr(line.driver, "command")
    assert {sent[0] for sent in line.wire.sent} == {1, 2}


def captured(*, lose: int | None = None) -> list[tuple[bool, bytes]]:
    """Both directions of a component's query; `lose` is the number of a report's frame that is missing."""
    line, seen = gat_line(), list[tuple[bool, bytes]]()
    write = line.wire.write

    def up(piece: bytes) -> Any:
        if piece[0] != 0x83 or int.from_bytes(piece[3:5], "big") != lose:
            seen.append((True, piece))
        return [(0.0, piece)]

    line.wire.up = up
    line.wire.write = lambda data: (seen.append((False, data)), write(data))[1]
    assert right(ask(line))
    return seen


def decoded(pieces: list[tuple[bool, bytes]], *, apart: bool) -> tuple[list[Any], Any]:
    driver = load("gat").decoder(Setup("dev", Random(1)))
    events = []
    for inbound, data in pieces:
        events += driver.feed(data, 0.0) if inbound or not apart else driver.feed_host(data, 0.0)
    return [*events, *driver.lost("end", 0.0)], driver.counters


@pytest.mark.parametrize("apart", [True, False], ids=["two directions", "one stream"])
def test_a_capture_tells_the_whole_story(apart: bool) -> None:
    pieces = captured()
    events, counters = decoded(pieces, apart=apart)
    assert [e.kind for e in events] == [
        "authentication_state", "command_seen", "command_done", "authentication_state",
        "authentication_state", "last_authentication", "authentication_reported",
    ]  # fmt: skip
    assert (events[1].command, events[1].args) == ("Component", (UI, SALT))
    assert [e.state for e in events if e.kind == "authentication_state"] == [
        "idle",
        "calculating",
        "finished",
    ]
    assert hmac_sha1(SALT, PROGRAMS[UI]) in events[-1].report
    assert (events[-1].diag, events[-1].format) == ((), "xml")
    assert counters.frames == len(pieces)
    assert all(to_json(e, at=None, masked=True)["kind"] == e.kind for e in events)


def test_a_report_with_a_frame_missing_says_so() -> None:
    events, _ = decoded(captured(lose=2), apart=True)
    assert events[-1].diag == ("frame_missing",)
    assert [e.kind for e in decoded(captured(lose=1), apart=True)[0]][-1] == "authentication_reported"


def test_any_split_of_a_capture_tells_the_same() -> None:
    data = b"".join(piece for _, piece in captured())
    whole, _ = decoded([(True, data)], apart=True)
    random = Random("splits")
    for _ in range(20):
        cuts = sorted(random.sample(range(len(data)), 30))
        pieces = [(True, data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert decoded(pieces, apart=True)[0] == whole
    assert frames_of(data)[0] == SQ[:1]


# Whatever the line does


def test_over_a_bad_line_a_report_is_right_or_there_is_none() -> None:
    """Frames are lost, late, or have up to eight wrong bits in a row, both ways, and answers are doubled."""
    reports = 0
    for seed in range(60):
        random = Random(f"bad line/{seed}")
        line = gat_line(gat_device(piece=random.choice((60, 248)), pickup=random.choice((0.0, 2.0))))
        rate = random.choice((0.02, 0.1, 0.3))

        def meddle(piece: bytes, random: Random = random, rate: float = rate) -> Any:
            if random.random() > rate:
                return [(0.0, piece)]
            kind = random.randrange(4)
            if kind == 0:
                return []
            if kind == 1 and piece[0] > 0x80:
                return [(0.0, piece), (random.random() * 0.3, piece)]
            if kind == 2:
                return [(random.random() * 2.0, piece)]
            bad = bytearray(piece)
            at = random.randrange(len(bad))
            bad[at] ^= random.randrange(1, 256)
            return [(0.0, bytes(bad))]

        line.wire.up = line.wire.down = meddle
        start(line, "a")
        end = line.end_of("a", 1300.0)
        if isinstance(end, Done):
            assert right(end), (seed, end)
            assert end.answer["report"] == line.device.report(2).decode()
            reports += 1
        else:
            assert isinstance(end, Unknown | NotSent), (seed, end)
    assert reports > 30
