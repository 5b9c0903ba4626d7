"""Commands on a bad wire: real drivers and simulated devices; what moved is counted on the machine."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from firmware_bridge import smp
from firmware_bridge.framing import smp_console
from firmware_bridge.link import Done, Refused, Unknown
from simulators.models.machine import Machine
from tests.support.line import TOKEN, Line, Pieces, message_of, shoe_line, shuffler_line

COMMANDS = [
    ("managed-shuffler", "status", {}), ("managed-shuffler", "settings", {}),
    ("managed-shuffler", "report", {}),
    ("managed-shuffler", "start", {"token": TOKEN.hex()}), ("managed-shuffler", "abort", {}),
    ("managed-shuffler", "release", {"token": TOKEN.hex()}),
    ("managed-shoe", "status", {}), ("managed-shoe", "lock", {}), ("managed-shoe", "unlock", {}),
]  # fmt: skip
MOVES = {
    "start": "cycle_started",
    "abort": "cycle_aborted",
    "release": "let_out",
    "lock": "lock",
    "unlock": "lock",
}
"""What the machine itself notices of a command."""
NUMBERS = {
    "status": (66, 0), "settings": (64, 1), "report": (66, 4), "start": (66, 1), "abort": (66, 2),
    "release": (66, 3), "lock": (67, 1), "unlock": (67, 2),
}  # fmt: skip


def ready(driver: str, command: str, **more: object) -> tuple[Line, Machine]:
    """A device that can carry the command out."""
    if driver == "managed-shoe":
        line, shoe = shoe_line(**more)
        if command == "unlock":
            shoe.set_lock(True)
        return line, shoe
    line, shuffler = shuffler_line(state="done" if command in {"release", "report"} else "loaded", **more)
    if command == "abort":
        shuffler.start(TOKEN)
    return line, shuffler


def number_of(driver: str, command: str) -> tuple[int, int]:
    return (67, 0) if (driver, command) == ("managed-shoe", "status") else NUMBERS[command]


def moved(machine: Machine, command: str, since: int) -> int:
    """How often the machine did it, counted on the machine."""
    return sum(h.kind == MOVES.get(command) for h in machine.happenings[since:])


def answers(line: Line, what: tuple[int, int]) -> list[bytes]:
    return [f for f in line.wire.sent if (message_of(f).group, message_of(f).command) == what]


def drop_answers(what: tuple[int, int], times: int, dropped: list[bytes]) -> object:
    def up(frame: bytes) -> Pieces:
        message = message_of(frame)
        if (message.group, message.command) == what and message.op & 1 and len(dropped) < times:
            dropped.append(frame)
            return []
        return [(0.0, frame)]

    return up


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize(("driver", "command", "args"), COMMANDS, ids=[f"{d} {c}" for d, c, _ in COMMANDS])
def test_i28_a_lost_reply_is_asked_for_again_with_the_same_number_and_moves_once(
    driver: str, command: str, args: dict[str, str], lost: int
) -> None:
    line, machine = ready(driver, command)
    before, what, dropped = len(machine.happenings), number_of(driver, command), []
    line.wire.up = drop_answers(what, lost, dropped)
    line.wire.sent.clear()
    line.command("a", command, **args)
    assert isinstance(line.end_of("a"), Done)
    frames = answers(line, what)
    assert len(dropped) == lost
    assert len(frames) == lost + 1
    assert len(set(frames)) == 1, "a retry is byte for byte the same, number and all"
    assert moved(machine, command, before) == (command in MOVES)


@pytest.mark.parametrize("acted", [True, False], ids=["after it acted", "before it acted"])
@pytest.mark.parametrize(("driver", "command", "args"), COMMANDS, ids=[f"{d} {c}" for d, c, _ in COMMANDS])
def test_i29_a_device_that_restarts_in_mid_command_leaves_it_unknown_and_is_sent_nothing_again(
    driver: str, command: str, args: dict[str, str], acted: bool
) -> None:
    line, machine = ready(driver, command)
    before, what = len(machine.happenings), number_of(driver, command)
    reads = command in {"status", "settings", "report"}

    def restart(frame: bytes) -> Pieces:
        message = message_of(frame)
        if (message.group, message.command) != what or machine.boot > 1:
            return [(0.0, frame)]
        line.device.machine.power_cut(0.2)
        return []

    if acted:
        line.wire.up = restart
    else:
        line.wire.down = restart
    line.wire.sent.clear()
    line.command("a", command, **args)
    outcome = line.end_of("a", within=3.0)
    line.run(5.0)
    assert machine.boot == 2
    assert moved(machine, command, before) == (acted and command in MOVES)
    if not reads:  # a question that is asked again moves nothing
        assert isinstance(outcome, Unknown)
        assert outcome.reason == "the device restarted"
        assert len(answers(line, what)) == 1
    assert [e.boot for e in line.of("rebooted")] == [2]
    assert line.kinds[-1] != "link_down"


class Unlucky(Random):
    """A generator that draws the same numbers at every session."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return start if stop is not None else 0


@pytest.mark.parametrize("unlucky", [True, False])
@pytest.mark.parametrize("delay", [1.52, 2.2, 2.6, 3.0, 4.0])
def test_i26_a_late_reply_never_answers_the_next_command_even_if_it_is_the_same_one(
    delay: float, unlucky: bool
) -> None:
    """A start that was given up is answered in the next session, around the next start."""
    line, machine = shuffler_line(seed=delay)
    if unlucky:
        line.driver._random = Unlucky()
    line.unplug()
    line.run(0.2)
    line.replug()
    line.run(3.0, lambda: line.kinds.count("link_up") == 2)
    late: list[bytes] = []

    def up(frame: bytes) -> Pieces:
        message = message_of(frame)
        if (message.group, message.command) != (66, 1) or message.op != 3:
            return [(0.0, frame)]
        if not late or message_of(late[0]).sequence == message.sequence:
            late.append(frame)
            return [(delay, frame)] if len(late) == 1 else []
        return [(0.6, frame)]

    line.wire.up = up
    line.command("a", "start", token=TOKEN.hex())
    assert isinstance(line.end_of("a"), Unknown)
    line.run(1.0, lambda: line.kinds[-1] == "link_up")
    machine.open_door()  # the second start cannot succeed
    line.command("b", "start", token=bytes(16).hex())
    assert line.end_of("b") == Refused("6", "door or lid open")
    assert moved(machine, "start", 0) == 1
    assert line.driver.counters.unasked >= 1


def test_i28_a_repeat_is_answered_from_the_cache_even_in_a_storm_of_events() -> None:
    """The device keeps an answer for 128 further requests: reads of the ring must not use them up."""
    line, machine = shuffler_line(state="done")
    before, dropped = len(machine.happenings), []
    line.wire.up = drop_answers((66, 3), 2, dropped)
    line.command("a", "release", token=TOKEN.hex())
    for _ in range(500):
        machine._happen("fault", code="1", name="bouncing switch", on=True)
        line.run(0.003)
    assert line.end_of("a") == Done({"count": 52, "inside": 0})
    assert moved(machine, "release", before) == 1
    line.run(2.0)
    assert len(line.of("fault_raised")) == 500
    assert line.kinds.count("link_up") == 1


@pytest.mark.parametrize("restarts", [True, False], ids=["restarted", "only unplugged"])
@pytest.mark.parametrize("acted", [True, False], ids=["after it acted", "before it acted"])
@pytest.mark.parametrize(("driver", "command", "args"), COMMANDS, ids=[f"{d} {c}" for d, c, _ in COMMANDS])
def test_i38_gone_and_back_within_300_ms_brings_back_the_link_and_resends_nothing(
    driver: str, command: str, args: dict[str, str], acted: bool, restarts: bool
) -> None:
    line, machine = ready(driver, command)
    before, what, gone = len(machine.happenings), number_of(driver, command), []

    def cut(frame: bytes) -> Pieces:
        message = message_of(frame)
        if (message.group, message.command) != what or gone:
            return [(0.0, frame)]
        gone.append(line.clock.now())
        line.unplug()
        if restarts:
            line.device.machine.power_cut(0.2)
        return []

    if acted:
        line.wire.up = cut
    else:
        line.wire.down = cut
    line.wire.sent.clear()
    line.command("a", command, **args)
    line.run(0.3, lambda: bool(gone))
    line.run(0.3)
    line.replug()
    line.run(5.0)
    outcome = line.ends["a"]
    assert isinstance(outcome, Unknown)
    assert "unplugged" in outcome.reason
    # a status is asked again by every session; of the command itself there is one copy
    mine = [f for f in line.asked(*what) if message_of(f).op == 2]
    assert len(mine) == (message_of(line.asked(*what)[0]).op == 2)
    assert moved(machine, command, before) == (acted and command in MOVES)
    kinds = [k for k in line.kinds if k in {"link_up", "link_down", "rebooted"}]
    assert kinds == ["link_up", "link_down", "link_up"] + ["rebooted"] * restarts
    back = line.times[[i for i, o in enumerate(line.log) if getattr(o, "kind", "") == "link_up"][1]]
    assert back - gone[0] < 2.0


# I-31: no storm without end


def spoilt(frame: bytes) -> bytes:
    """One character of a packet's text changed."""
    return frame[:20] + (b"A" if frame[20:21] != b"A" else b"B") + frame[21:]


@pytest.mark.parametrize(("driver", "command", "args"), COMMANDS, ids=[f"{d} {c}" for d, c, _ in COMMANDS])
@pytest.mark.parametrize("how", ["spoilt", "other number", "nothing"])
def test_i31_answers_that_are_wrong_for_ever_end_a_command_after_three_attempts(
    driver: str, command: str, args: dict[str, str], how: str
) -> None:
    line, machine = ready(driver, command)
    before, what = len(machine.happenings), number_of(driver, command)

    def up(frame: bytes) -> Pieces:
        message = message_of(frame)
        if (message.group, message.command) != what:
            return [(0.0, frame)]
        if how == "spoilt":
            return [(0.0, spoilt(frame))]
        other = smp.encode(replace(message, sequence=message.sequence ^ 0x55))
        return [(0.0, smp_console.encode(other))] if how == "other number" else []

    line.wire.up = up
    line.wire.sent.clear()
    start = line.clock.now()
    line.command("a", command, **args)
    outcome = line.end_of("a")
    assert isinstance(outcome, Unknown)
    assert outcome.reason == "no answer within 0.5 s in 3 attempts"
    assert line.clock.now() - start == pytest.approx(1.5)
    assert len(answers(line, what)) == 3
    assert moved(machine, command, before) == (command in MOVES)
    line.run(20.0)
    mine = [f for f in answers(line, what) if message_of(f).op == 2]
    assert len(mine) in {0, 3}, "after Unknown nothing that moves is sent again"


@pytest.mark.parametrize(("driver", "command", "args"), COMMANDS, ids=[f"{d} {c}" for d, c, _ in COMMANDS])
def test_i31_a_device_that_refuses_for_ever_is_asked_once_for_each_command(
    driver: str, command: str, args: dict[str, str]
) -> None:
    line, _ = ready(driver, command)
    what = number_of(driver, command)

    def up(frame: bytes) -> Pieces:
        message = message_of(frame)
        if (message.group, message.command) != what:
            return [(0.0, frame)]
        refusal = replace(message, body={"err": {"group": what[0], "rc": 4}})
        return [(0.0, smp_console.encode(smp.encode(refusal)))]

    line.wire.up = up
    line.wire.sent.clear()
    for number in range(20):
        line.command(f"call {number}", command, **args)
        assert line.end_of(f"call {number}", within=0.1) == Refused("4", "busy")
    assert len(answers(line, what)) == 20
    assert line.kinds.count("link_up") == 1


def test_i31_a_line_that_spoils_everything_is_tried_less_and_less_often() -> None:
    line, _ = shuffler_line()
    line.wire.up = lambda frame: [(0.0, spoilt(frame))]
    line.command("a", "start", token=TOKEN.hex())
    assert isinstance(line.end_of("a", within=5.0), Unknown)
    line.run(5.0)
    line.wire.sent.clear()
    line.run(3600.0)
    assert len(line.wire.sent) <= 3 * 3600 / 9.5 + 12, "an echo in three attempts, then 8 s of rest"
    assert line.kinds.count("link_down") == 1, "told once"
    assert line.driver.counters.retries >= 2 * len(line.wire.sent) // 3 - 2


# N-02: no piece of a frame is dropped in silence


def test_n02_a_frame_that_ends_in_the_middle_of_something_is_told_and_not_completed() -> None:
    line, machine = ready("managed-shuffler", "start")
    whole: list[bytes] = []

    def up(frame: bytes) -> Pieces:
        if (message_of(frame).group, message_of(frame).command) != (66, 1):
            return [(0.0, frame)]
        whole.append(frame)
        ends = (frame[:-2] + b"\n", frame[:-1] + b"=\n", frame[:-1] + b"\x06\n")
        return [(0.0, ends[len(whole) - 1])]

    line.wire.up = up
    line.command("a", "start", token=TOKEN.hex())
    assert isinstance(line.end_of("a"), Unknown)
    assert len(whole) == 3
    assert [e.reason for e in line.of("frame_rejected")] == ["bad base64"] * 3
    assert machine.cycle == 1


# I-27: frames that answer nothing


@pytest.mark.parametrize("answered", [True, False])
def test_i27_foreign_frames_without_end_neither_end_a_command_nor_move_its_deadline(answered: bool) -> None:
    line, machine = shuffler_line()
    held: list[bytes] = []

    def keep(frame: bytes) -> Pieces:
        if (message_of(frame).group, message_of(frame).command) != (66, 1):
            return [(0.0, frame)]
        held.append(frame)
        return []

    line.wire.up = keep
    start = line.clock.now()
    line.command("a", "start", token=TOKEN.hex())
    line.run(0.1)
    mine = message_of(held[0])
    foreign = [
        replace(mine, sequence=(mine.sequence + 1) % 256),  # late or early
        replace(mine, command=2, body={}),  # of another command
        replace(mine, op=smp.Op.READ_ANSWER),
        replace(mine, op=smp.Op.WRITE, body={"token": TOKEN}),  # a request, by nobody we know
    ]
    flood = b"".join(smp_console.encode(smp.encode(message)) for message in foreign)
    before = line.driver.counters.unasked
    line.wire.up = lambda frame: [] if frame == held[0] else [(0.0, frame)]
    for _ in range(100):
        line.host.endpoint.to_controller.add(flood)
        line.run(0.01)
    assert "a" not in line.ends
    assert line.driver.counters.unasked - before == 400
    if answered:
        line.wire.up = lambda frame: [(0.0, frame)]
        line.host.endpoint.to_controller.add(flood + held[0] + flood)
        assert line.end_of("a", within=0.1) == Done({"cycle": 1})
    else:
        assert isinstance(line.end_of("a"), Unknown)
        assert line.clock.now() - start == pytest.approx(1.5)
    assert machine.cycle == 1
    assert line.kinds.count("link_down") == (not answered)
