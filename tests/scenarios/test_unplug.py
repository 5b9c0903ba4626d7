"""A device is unplugged under every command that holds its port: one sentence, exit code 3, nothing left."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from firmware_bridge.capture import read_capture
from tests.support.desk import Child, angel_eye, desk, managed_shoe, never_answered
from tests.support.plugs import Pty, Tcp, Usb
from tests.support.umockdev import needs_umockdev

LOCK = (67, 1)
SOON_S = 5.0
"""A loaded machine takes a while to end a process."""
ETX = b"\x03"
NOTES = ("listening on", "recording to")
"""What is said beside events while all is well."""

Moment = Callable[[Child], bool]


class Case(NamedTuple):
    """A command without its PORT. `prepare` sets the device up and gives the moment to pull the plug."""

    args: str
    device: Callable[[], Any]
    prepare: Callable[[Any], Moment]
    outcome: str | None = None


def listened_to(device: Any) -> Moment:
    del device
    return lambda child: len(child.err) > 0


def has_a_session(device: Any) -> Moment:
    del device
    return lambda child: any('"link_up"' in line for line in child.out)


def silent(device: Any) -> Moment:
    """It answers nothing from the first request on."""
    device.traps.set("silent", None)
    return lambda child: device.requests > 0


def loses_its_answers(device: Any) -> Moment:
    heard = never_answered(device, *LOCK)
    return lambda child: bool(heard)


def hears_and_never_answers(device: Any) -> Moment:
    """An Angel Eye whose receiver is all that works."""
    heard: list[bytes] = []
    device.receive = lambda data, now: heard.append(data)
    return lambda child: b"".join(heard).count(ETX) > 0


def recorded(device: Any) -> Moment:
    return lambda child: device.requests > 5


CASES = {
    "monitor of what only talks": Case("monitor --driver angel-eye", angel_eye, listened_to),
    "monitor of what is asked": Case("monitor --driver managed-shoe --json", managed_shoe, has_a_session),
    "monitor in its session": Case("monitor --driver managed-shoe", managed_shoe, silent),
    "send in its session": Case("send --driver managed-shoe --json lock", managed_shoe, silent, "not_sent"),
    "send in its command": Case(
        "send --driver managed-shoe --json lock", managed_shoe, loses_its_answers, "unknown"
    ),
    "send to what only says yes or no": Case(
        "send --driver angel-eye --json lock", angel_eye, hears_and_never_answers, "unknown"
    ),
    "capture": Case("capture --driver managed-shoe -o FILE", managed_shoe, recorded),
}


MOST = ("monitor of what is asked", "send in its command", "capture")


def on(wire: type[Any], cases: Iterable[str], *marks: Any) -> list[Any]:
    return [pytest.param(wire, CASES[name], id=f"{name}, {wire.__name__}", marks=marks) for name in cases]


@pytest.mark.parametrize(
    ("wire", "case"),
    [*on(Pty, CASES), *on(Tcp, MOST[:2]), *on(Usb, [*MOST, "send in its session"], needs_umockdev)],
)
def test_unplugged_under_a_command_one_sentence_exit_code_3_and_the_port_is_free(
    wire: type[Pty | Tcp | Usb], case: Case, tmp_path: Path
) -> None:
    line = wire(case.device, tmp_path)
    moment = case.prepare(line.device)
    file = tmp_path / "wire.pcapng"
    command, *rest = case.args.replace("FILE", str(file)).split()
    with desk() as bench:
        bench.hosts += line.hosts
        child = bench.cutcard(command, line.host.uri, *rest, alone=True, **line.env)
        bench.until(lambda: moment(child) or not child.open)
        assert child.open, child.err
        line.unplug()
        took = bench.until(lambda: not child.open)
        assert child.code == 3
        assert took < SOON_S
        (said,) = (text for text in child.err if not text.startswith(NOTES))
        assert said.startswith("cutcard: ")
        assert any(word in said for word in ("was lost", "unplugged", "closed the connection"))
        if case.outcome is not None:
            told = json.loads(child.out[0])
            assert told == {"command": "lock", "outcome": case.outcome, "code": told["code"], "answer": None}
            assert ("may have happened" in said) == (case.outcome == "unknown")
        bench.until(line.is_free)
        line.opens_again()
    if command == "capture":
        with file.open("rb") as source:
            records = list(read_capture(source, str(file), pytest.fail))
        assert sum(record.inbound for record in records) >= 5
