"""The ReShuffled driver and its simulated machine on one line: what was accepted, and what was dealt."""

import json
import re
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller import open_tables
from controller.cli import app
from firmware_bridge.link import Done, NotSent, Refused, Unknown
from simulators import faults
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import TcpHost
from simulators.models.cards import Stack, make_batch
from simulators.models.dealing_machine import DealingMachine
from simulators.wire.reshuffled import ReShuffled
from tests.support.desk import served
from tests.support.line import Line, Pieces

ACCEPTED = Done({"accepted": True, "done": None})
OK = b":OK#D736D92D\n"
COMMANDS = [("init", {}), ("shuffle", {}), ("deal", {"n": "3"}), ("deal-each", {"n": "2"}), ("off", {})]
MOVES = {"init": "initialised", "shuffle": "shuffled", "deal": "dealt", "deal-each": "dealt", "off": "off"}
TIMES = {"deal": 3, "deal-each": 8}


def lines_of(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+\Z", data)


def device(**switches: Any) -> ReShuffled:
    machine = DealingMachine(Random("dealer"))
    machine.load(Stack(make_batch("red", 1)))
    return ReShuffled(machine, **switches)


def line_to(made: ReShuffled, **more: Any) -> Line:
    return Line("reshuffled", made, cut=lines_of, **more).up()


def dealt(made: ReShuffled) -> int:
    return sum(h.kind == "dealt" for h in made.machine.happenings)


def moved(made: ReShuffled, name: str) -> int:
    return sum(h.kind == MOVES[name] for h in made.machine.happenings)


@pytest.mark.parametrize("firmware", [True, False])
@pytest.mark.parametrize("profile", ["tolerant", "strict"])
@pytest.mark.parametrize(("name", "args"), COMMANDS, ids=lambda v: v if isinstance(v, str) else "")
def test_every_command_is_accepted_once_and_done_later(name, args, profile, firmware):
    made = device(firmware=firmware)
    line = line_to(made, profile=profile)
    line.command("c", name, **args)
    assert line.end_of("c", within=0.1) == ACCEPTED
    line.run(60.0)
    assert moved(made, name) == TIMES.get(name, 1)
    assert len(line.wire.sent) == 1


@pytest.mark.parametrize(("range_", "end"), [("true", "lf"), ("false", "semicolon"), ("true", "semicolon")])
def test_both_ends_may_read_the_document_the_other_way(range_, end):
    byte = b";" if end == "semicolon" else b"\n"
    made = device(firmware=False, crc_includes_hash=range_ == "true", end=byte)
    line = Line(
        "reshuffled", made, cut=lambda data: [data] if data else [], crc_includes_hash=range_, frame_end=end
    )
    line.up()
    line.command("c", "deal", n="1")
    assert line.end_of("c", within=0.1) == ACCEPTED
    wrong = Line("reshuffled", device(firmware=False, crc_includes_hash=True, end=byte), cut=lines_of).up()
    wrong.command("c", "deal", n="1")
    assert not isinstance(wrong.end_of("c"), Done), "the readings differ: nothing is believed"


def test_field_28_accepted_and_done_are_two_things():
    """The same `OK` comes whether cards will move or not: it proves nothing about them."""
    made = device()
    faults.apply(made, "no_start@2")
    line = line_to(made)
    for call, expected in (("a", 0), ("b", 3)):
        line.command(call, "deal", n="3")
        assert line.end_of(call, within=0.1) == ACCEPTED
        assert dealt(made) == expected, "the answer is there before any card"
        line.run(60.0)
        assert dealt(made) == 3
    assert line.of("command_done") == [], "nothing was ever reported as done"


def test_field_29_a_jam_is_silence_and_silence_is_no_news():
    made = device()
    faults.apply(made, "jam@1")
    line = line_to(made)
    line.command("a", "deal", n="4")
    assert line.end_of("a") == ACCEPTED
    line.run(600.0)
    assert dealt(made) == 2
    assert line.kinds == ["link_up"], "the machine tells of no jam: nobody claims that it is done"


@pytest.mark.parametrize("lost", ["request", "answer"])
@pytest.mark.parametrize(("name", "args"), COMMANDS, ids=lambda v: v if isinstance(v, str) else "")
def test_i28_after_a_timeout_what_moves_a_card_has_gone_out_once(name, args, lost):
    made = device()
    line = line_to(made)
    swallowed: list[bytes] = []

    def swallow(frame: bytes) -> Pieces:
        if swallowed:
            return [(0.0, frame)]
        swallowed.append(frame)
        return []

    setattr(line.wire, "down" if lost == "request" else "up", swallow)
    line.command("c", name, **args)
    outcome = line.end_of("c")
    line.run(60.0)
    acted = lost == "answer"
    if name == "off" and acted:  # it is off and hears no repeat
        assert (outcome, moved(made, name)) == (Unknown("no answer within 1 s"), 1)
    elif name in {"init", "off"}:
        assert (outcome, len(line.wire.sent)) == (ACCEPTED, 2)
    else:
        assert (outcome, len(line.wire.sent)) == (Unknown("no answer within 1 s"), 1)
        assert moved(made, name) == (TIMES.get(name, 1) if acted else 0)


@pytest.mark.parametrize("late", [1.1, 2.5, 3.9])
def test_i26_a_late_ok_does_not_make_the_next_command_accepted(late):
    made = device()
    faults.apply(made, f"late_answer:{late}@1")
    made.traps.set("silent", 2)
    line = line_to(made)
    line.command("a", "deal", n="1")
    assert line.end_of("a") == Unknown("no answer within 1 s")
    line.command("b", "deal", n="1")
    assert line.end_of("b") == Unknown("no answer within 1 s")
    assert [e.reason for e in line.of("frame_rejected")] == ["answer to no command"]
    assert dealt(made) == 1


@pytest.mark.parametrize("acted", [True, False], ids=["after it acted", "before it acted"])
@pytest.mark.parametrize(("name", "args"), COMMANDS, ids=lambda v: v if isinstance(v, str) else "")
def test_i38_unplugged_in_mid_command_is_unknown_and_nothing_is_sent_again(name, args, acted):
    made = device()
    line = line_to(made)

    def cut(frame: bytes) -> Pieces:
        line.unplug()
        return []

    setattr(line.wire, "up" if acted else "down", cut)
    line.command("c", name, **args)
    line.run(0.3)
    line.run()  # the port notices
    line.wire.up = line.wire.down = lambda frame: [(0.0, frame)]
    line.replug()
    line.run(60.0)
    assert isinstance(line.ends["c"], Unknown)
    assert len(line.wire.sent) == 1
    assert moved(made, name) == (TIMES.get(name, 1) if acted else 0)
    assert line.kinds == ["link_up", "link_down", "link_up", "gap_possible"]


@pytest.mark.parametrize("profile", ["tolerant", "strict"])
def test_a_refusal_whose_check_begins_with_a_zero_is_understood_as_the_firmware_prints_it(profile):
    made = device()
    made.traps.set("refuse", 1, 2)
    line = line_to(made, profile=profile)
    line.command("c", "deal", n="1")
    outcome = line.end_of("c")
    if profile == "tolerant":
        assert outcome == Refused("E2", "error without a published meaning")
    else:
        assert outcome == Unknown("no answer within 1 s")
        assert [e.reason for e in line.of("frame_rejected")] == ["CRC without its leading zeros"]
    assert dealt(made) == 0


@pytest.mark.parametrize(
    ("fault", "ends"),
    [("stray_bytes", ACCEPTED), ("chatter", ACCEPTED), ("text_inside", Unknown("no answer within 1 s")),
     ("refuse:7", Refused("E7", "error without a published meaning")),
     ("silent", Unknown("no answer within 1 s")), ("duplicate_answer", ACCEPTED)],
)  # fmt: skip
def test_each_fault_of_its_wire_ends_a_deal_truly(fault, ends):
    made = device()
    faults.apply(made, f"{fault}@1")
    line = line_to(made)
    line.command("c", "deal", n="3")
    assert line.end_of("c") == ends
    line.run(60.0)
    assert dealt(made) == (0 if fault in {"silent", "refuse:7"} else 3)
    assert len(line.wire.sent) == 1


def test_twelve_cards_never_reach_the_firmware_and_would_have_been_text_alone():
    made = device()
    line = line_to(made)
    line.command("c", "deal", n="12")
    assert isinstance(line.end_of("c"), NotSent)
    assert line.wire.sent == []
    line = line_to(made, profile="strict")
    line.command("c", "deal", n="12")
    assert line.end_of("c") == Unknown("no answer within 1 s")
    assert dealt(made) == 0


def test_damage_on_the_way_may_move_other_cards_and_the_answer_cannot_tell():
    """The firmware looks at no check: our page says so, and only a count of the cards finds it."""
    made = device()
    line = line_to(made)
    line.wire.down = lambda frame: [(0.0, frame.replace(b"D1", b"D3"))]
    line.command("c", "deal", n="1")
    assert line.end_of("c") == ACCEPTED
    line.run(60.0)
    assert dealt(made) == 3


steps = st.lists(
    st.tuples(
        st.sampled_from(COMMANDS[:4]),
        st.sampled_from(["", "lost", "late", "text", "spoilt", "doubled", "stray"]),
        st.floats(0.0, 30.0),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=40)
@given(steps, st.sampled_from(["tolerant", "strict"]), st.integers(0, 2**16))
def test_whatever_the_wire_does_a_done_was_accepted_and_nothing_that_moves_went_out_twice(
    plan, profile, seed
):
    made, random = device(), Random(seed)
    line = line_to(made, profile=profile)
    accepted: list[bytes] = []
    act = made._act

    def watched(words: bytes) -> bytes:
        answer = act(words)
        accepted.append(words if answer == b"OK" else b"")
        return answer

    made._act = watched
    for number, ((name, args), fault, pause) in enumerate(plan):
        ruined = [fault]

        def up(frame: bytes, ruined: list[str] = ruined) -> Pieces:
            what = ruined.pop() if ruined else ""
            if what == "lost":
                return []
            if what == "late":
                return [(random.uniform(0.5, 3.5), frame)]
            if what == "spoilt":
                at = random.randrange(len(frame))
                return [(0.0, frame[:at] + bytes([frame[at] ^ 1 << random.randrange(8)]) + frame[at + 1 :])]
            if what == "text":
                return [(0.0, b"Fehler: 9\r\nError" + frame)]
            return [(0.0, frame)] * (2 if what == "doubled" else 1)

        line.wire.up = up
        if fault == "stray":
            made.traps.set("stray_bytes", None, random.randbytes(3).replace(b"\n", b"?").replace(b"\0", b"?"))
        call, before, sent = f"call {number}", len(accepted), len(line.wire.sent)
        line.command(call, name, **args)
        outcome = line.end_of(call)
        made.traps = type(made.traps)()
        mine = line.wire.sent[sent:]
        assert len(mine) == 1 or (name == "init" and len(mine) == 2)
        heard = accepted[before:]
        if isinstance(outcome, Done):
            assert heard[-1] != b"", "an OK is the answer to this very command"
        if isinstance(outcome, Refused):
            assert heard[-1] == b""
        line.run(pause)


# The command line


@pytest.fixture
def cutcard(capsys, monkeypatch):
    monkeypatch.setattr(open_tables, "any_open", lambda: False)

    def call(*words):
        code = 0
        try:
            app.main(list(words))
        except SystemExit as left:
            code = int(left.code or 0)
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize("place", ["pty", "tcp"])
def test_send_and_monitor_over_a_pty_and_over_tcp(cutcard, tmp_path, place):
    made = device()
    host = PtyHost(made, tmp_path / "dealer") if place == "pty" else TcpHost(made)
    send = ("send", host.uri, "--driver", "reshuffled")
    with served(host):
        code, out, _ = cutcard(*send, "deal", "2", "--json")
        assert (code, json.loads(out)["answer"]) == (0, {"accepted": True, "done": None})
        code, out, err = cutcard(*send, "deal-each", "12", "--json")
        assert (code, json.loads(out)["outcome"]) == (3, "not_sent")
        assert "takes frames of 13 bytes only" in err
        code, _, err = cutcard(*send, "deal", "0")
        assert (code, "a number of cards from 1 to 99" in err) == (2, True)
        code, _, err = cutcard(*send, "shuffle")
        assert (code, "its code E1" in err) == (4, True), "it still deals"
        code, out, _ = cutcard(*send, "off")
        assert (code, out.split()[:2], "never tells when it is done" in out) == (0, ["off", "accepted"], True)
        code, out, _ = cutcard("monitor", host.uri, "--driver", "reshuffled", "--seconds", "0.1", "--json")
        assert (code, out) == (0, "")


def test_decode_tells_both_sides_of_a_line(cutcard, tmp_path):
    file = tmp_path / "dump"
    file.write_bytes(b":D1#841298C4\nError" + OK + b":XX#560B1C65\n")
    code, out, _ = cutcard("decode", "--driver", "reshuffled", "--json", str(file))
    *events, summary = map(json.loads, out.splitlines())
    assert code == 0
    assert [(e["kind"], e.get("command"), e.get("text")) for e in events] == [
        ("command_seen", "deal", None), ("chatter", None, "Error"), ("command_done", None, None),
        ("command_seen", "off", None),
    ]  # fmt: skip
    assert (summary["frames"], summary["rejected"], summary["bytes"]) == (3, 0, 44)


def test_a_recorded_command_decodes_to_both_sides_of_it(cutcard, tmp_path, monkeypatch):
    made, file = device(), tmp_path / "deal.pcapng"
    made.traps.set("chatter", 1)
    monkeypatch.setenv("CUTCARD_CAPTURE", str(file))
    with served(TcpHost(made)) as host:
        code, _, err = cutcard("send", host.uri, "--driver", "reshuffled", "deal", "2")
    assert code == 0, err
    monkeypatch.delenv("CUTCARD_CAPTURE")
    code, out, _ = cutcard("decode", "--driver", "reshuffled", "--format", "pcapng", str(file), "--json")
    *events, summary = map(json.loads, out.splitlines())
    assert code == 0
    assert [(e["kind"], e.get("args"), e.get("text")) for e in events] == [
        ("command_seen", ["2"], None), ("chatter", None, "Error"), ("command_done", None, None),
    ]  # fmt: skip
    assert summary["rejected"] == 0


def test_the_command_line_takes_the_other_readings(cutcard, tmp_path):
    file = tmp_path / "dump"
    file.write_bytes(b":OK#D736D92D;")
    decode = ("decode", "--driver", "reshuffled", str(file), "--json")
    assert [json.loads(line)["kind"] for line in cutcard(*decode)[1].splitlines()] == [
        "frame_rejected", "summary",
    ]  # fmt: skip
    code, out, _ = cutcard(*decode, "--option", "frame_end=semicolon", "--option", "profile=strict")
    assert (code, json.loads(out.splitlines()[0])["kind"]) == (0, "command_done")
    made = device(firmware=False)
    with served(TcpHost(made)) as host:
        send = ("send", host.uri, "--driver", "reshuffled", "--option", "profile=strict", "--json")
        code, out, _ = cutcard(*send, "deal", "12")
    assert (code, json.loads(out)["outcome"]) == (0, "done")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("profil=strict", "--option profil=strict: did you mean profile=VALUE?"),
        ("profile", "--option profile: did you mean profile=VALUE?"),
        ("x=1", "--option x=1: there is no option x (options of reshuffled are profile: tolerant (default"),
        ("profile=lax", "--option: profile is one of tolerant, strict, not 'lax'"),
    ],
)
def test_an_option_that_the_driver_does_not_read_is_an_error_with_the_nearest_name(cutcard, option, says):
    for command in (
        ("decode", "-"),
        ("monitor", "mem:x"),
        ("capture", "mem:x", "-o", "f"),
        ("send", "mem:x", "init"),
    ):
        code, out, err = cutcard(*command, "--driver", "reshuffled", "--option", option)
        assert (code, out) == (2, "")
        assert says in err
        assert len(err.splitlines()) == 1


def test_a_wire_of_tests_is_no_port_of_a_command(cutcard):
    for command in (("monitor", "mem:x"), ("capture", "mem:x", "-o", "f"), ("send", "mem:x", "init")):
        code, out, err = cutcard(*command, "--driver", "reshuffled")
        assert (code, out) == (2, "")
        assert "'mem:x': mem: is for tests in one process" in err


def test_a_value_that_only_the_asking_form_reads_is_judged_too(cutcard):
    code, _, err = cutcard("monitor", "mem:x", "--driver", "managed-shoe", "--option", "wait_ms=5000")
    assert (code, err) == (2, "cutcard: --option: wait_ms is a number from 0 to 1000, not 5000\n")


def test_help_says_what_moves_cards_and_which_readings_there_are(cutcard):
    code, out, _ = cutcard("send", "--driver", "reshuffled", "--help")
    assert code == 0
    assert re.search(r"Keys of --option for reshuffled:\n  profile +tolerant \(default", out)
    assert re.search(r"deal N +deal N cards[^;]*;\s+moves\s+cards", out)
