"""Commands of an Angel Eye on a bad wire. Its answers carry no number, so nothing is ever sent twice."""

from __future__ import annotations

import pytest

from firmware_bridge.framing import angel_eye
from firmware_bridge.link import Complete, Done, Refused, Unknown
from simulators import faults
from tests.support.line import Line, Pieces, angel_eye_line, drawn

COMMANDS = [("lock", {}), ("unlock", {}), ("clear-fault", {"nn": "01"}), ("confirm", {})]
each_command = pytest.mark.parametrize(("command", "args"), COMMANDS, ids=[name for name, _ in COMMANDS])


def lock_turns(line: Line) -> int:
    """How often the lock moved, counted on the shoe."""
    return sum(h.kind == "lock" for h in line.device.machine.happenings)


def without(line: Line, *lost: bytes) -> None:
    """A wire that loses these answers."""
    line.wire.up = lambda frame: [] if frame in lost else [(0.0, frame)]


@each_command
def test_i28_a_lost_ack_leaves_the_command_unknown_and_it_is_not_sent_again(
    command: str, args: dict[str, str]
) -> None:
    line, _ = angel_eye_line()
    line.run(1.0)
    without(line, b"\x06")
    line.command("a", command, **args)
    outcome = line.end_of("a")
    assert outcome == Unknown("no answer within 3 s")
    line.run(60.0)
    assert len(line.wire.sent) == 1
    assert lock_turns(line) == (command == "lock")


@pytest.mark.parametrize("lateness", ["3.1", "4.5", "5.9"])
def test_i26_a_late_ack_is_not_the_answer_to_the_next_command(lateness: str) -> None:
    """The lock's ACK comes after the lock was given up; the unlock that waits is refused by a busy shoe."""
    line, _ = angel_eye_line()
    line.run(1.0)
    faults.apply(line.device, f"late_answer:{lateness}@1")
    line.command("a", "lock")
    assert isinstance(line.end_of("a"), Unknown)
    line.device.busy = True
    line.command("b", "unlock")
    assert line.end_of("b") == Refused("21", "busy")
    assert line.driver.counters.unasked == 1


def test_i26_a_late_ack_from_before_a_loss_is_not_the_answer_to_the_first_command_after_it() -> None:
    """A serial server keeps the line while we are gone: what it said comes when we are back."""
    line, _ = angel_eye_line()
    line.run(1.0)
    slow = {b"\x06": 2.0, b"\x15\x21": 1.5}
    line.wire.up = lambda frame: [(slow.get(frame, 0.0), frame)]
    line.command("a", "lock")
    line.run(0.5)
    line.host.unplug()  # the wire keeps what is on it
    line.run(0.2)
    line.replug()
    line.run(1.0, lambda: line.kinds.count("link_up") == 2)
    assert line.ends["a"].reason == line.of("link_down")[0].reason
    line.device.busy = True
    line.command("b", "unlock")
    assert line.end_of("b") == Refused("21", "busy")


@pytest.mark.parametrize("gap", [0.0, 0.002, 0.009])
def test_i26_a_doubled_ack_is_not_the_answer_to_the_command_that_waits(gap: float) -> None:
    line, _ = angel_eye_line()
    line.run(1.0)
    line.wire.up = lambda frame: [(0.0, frame), (gap, frame)] if frame == b"\x06" else [(0.0, frame)]
    line.command("a", "lock")
    line.command("b", "unlock")
    line.run(0.025, lambda: "a" in line.ends)
    line.device.busy = True
    assert line.end_of("a") == Done({"locked": True})
    assert line.end_of("b") == Refused("21", "busy")


def test_i27_telegrams_and_noise_before_the_answer_neither_end_nor_fail_a_command() -> None:
    line, shoe = angel_eye_line()
    line.run(1.0)
    line.wire.up = lambda frame: [(0.0, b"\x00\xff" + frame + b"\x05\x31")]
    shoe.draw()
    line.command("a", "lock")
    assert line.end_of("a", within=1.0) == Done({"locked": True})
    assert len(line.of("card_drawn")) == 1


@each_command
@pytest.mark.parametrize("acted", [True, False], ids=["after it acted", "before it acted"])
def test_i29_a_shoe_that_restarts_in_mid_command_leaves_it_unknown_and_is_sent_nothing_again(
    command: str, args: dict[str, str], acted: bool
) -> None:
    line, shoe = angel_eye_line()
    line.run(1.0)

    def restart(frame: bytes) -> Pieces:
        if shoe.boot > 1 or (acted and frame != b"\x06"):
            return [(0.0, frame)]
        line.device.machine.power_cut(0.2)
        return []

    if acted:
        line.wire.up = restart
    else:
        line.wire.down = restart
    line.command("a", command, **args)
    assert isinstance(line.end_of("a"), Unknown)
    line.run(20.0)
    assert shoe.boot == 2
    assert len(line.wire.sent) == 1
    assert lock_turns(line) == (acted and command == "lock")
    assert line.kinds.count("session_started") == 2
    assert line.of("session_started")[-1].diag == ("no_cut_card_before",), "no new shoe is believed"


@each_command
@pytest.mark.parametrize("acted", [True, False], ids=["after it acted", "before it acted"])
def test_i38_gone_and_back_within_300_ms_the_link_returns_and_alignment_is_asked_for(
    command: str, args: dict[str, str], acted: bool
) -> None:
    line, shoe = angel_eye_line()
    for _ in range(15):
        shoe.draw()
        line.run(0.5)
    gone: list[float] = []

    def cut(frame: bytes) -> Pieces:
        if gone or (acted and frame != b"\x06"):
            return [(0.0, frame)]
        gone.append(line.clock.now())
        line.unplug()
        line.device.machine.power_cut(0.2)
        return []

    if acted:
        line.wire.up = cut
    else:
        line.wire.down = cut
    line.command("a", command, **args)
    line.run(0.3)
    line.replug()
    line.run(10.0)
    outcome = line.ends["a"]
    assert isinstance(outcome, Unknown)
    assert "unplugged" in outcome.reason
    assert len(line.wire.sent) == 1
    assert lock_turns(line) == (acted and command == "lock")
    back = line.kinds.index("link_down")
    assert line.kinds[back : back + 4] == ["link_down", "link_up", "gap_possible", "alignment_required"]
    up = line.times[line.log.index(line.of("link_up")[1])]
    assert up - gone[0] < 2.0


@pytest.mark.parametrize(
    ("nak", "sends"), [(b"\x15\x21", 1), (b"\x15\x13", 1), (b"\x15\xff", 1), (b"\x15\x02", 2)]
)
@each_command
def test_i31_a_shoe_that_refuses_for_ever_is_asked_once_and_twice_at_most(
    command: str, args: dict[str, str], nak: bytes, sends: int
) -> None:
    line, _ = angel_eye_line()
    line.run(1.0)
    line.wire.up = lambda frame: [(0.0, nak)] if frame[0] in {0x06, 0x15} else [(0.0, frame)]
    start = line.clock.now()
    for number in range(20):
        line.command(f"call {number}", command, **args)
        assert line.end_of(f"call {number}") == Refused(f"{nak[1]:02X}", line.ends[f"call {number}"].name)
    assert len(line.wire.sent) == 20 * sends
    assert line.clock.now() - start == pytest.approx(20 * sends * 0.0435, rel=0.02), "bytes and turn, no wait"


def test_i31_answers_that_are_spoilt_for_ever_end_every_command_in_six_seconds() -> None:
    line, _ = angel_eye_line()
    line.run(1.0)
    without(line, b"\x06")
    line.wire.up = lambda frame: [(0.0, bytes([b ^ 0x40 for b in frame]))]
    start = line.clock.now()
    for number in range(10):
        line.command(str(number), "lock")
    line.run(120.0, lambda: len(line.ends) == 10)
    assert all(isinstance(outcome, Unknown) for outcome in line.ends.values())
    assert len(line.wire.sent) == 10
    assert line.clock.now() - start == pytest.approx(10 * 6.0 - 3.0)


def test_n01_a_stale_ack_and_the_answer_to_the_next_command_in_one_read() -> None:
    line, _ = angel_eye_line()
    line.run(1.0)
    first: list[bytes] = []

    def joined(frame: bytes) -> Pieces:
        if frame[0] not in {0x06, 0x15}:
            return [(0.0, frame)]
        first.append(frame)
        return [] if len(first) == 1 else [(0.0, first[0] + frame)]

    line.wire.up = joined
    line.command("a", "lock")
    assert isinstance(line.end_of("a"), Unknown)
    line.command("b", "unlock")
    # nobody can tell which of the two is which: both say yes, and the second one is told as noise
    assert line.end_of("b") == Done({"locked": False})
    line.run(1.0)
    assert line.driver.counters.unasked == 1
    assert [e.reason for e in line.of("frame_rejected")] == ["answer to no command"]


def test_no_card_is_lost_by_a_command_in_the_middle_of_its_telegrams() -> None:
    line, shoe = angel_eye_line(sim_spacing=0.0)
    line.run(1.0)
    for number in range(20):
        shoe.draw()
        line.command(f"call {number}", "confirm")
        line.run(0.03 * number)
    line.run(5.0)
    assert [e.card for e in line.of("card_drawn")] == drawn(shoe)
    assert all(outcome == Done({}) for outcome in line.ends.values())
    assert len(line.ends) == 20
    assert line.wire.sent == [angel_eye.encode_command("GP", 0, bcc_includes_stx=True)] * 20
    assert not [o for o in line.log if isinstance(o, Complete) and isinstance(o.outcome, Unknown)]
