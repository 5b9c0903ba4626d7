"""Faults of the port: the cable and who else is at it. They need a Line, and a host that can do them."""

from __future__ import annotations

from typing import Any

from simulators.faults.fault import Fault, Reads, Strike, act, nothing, seconds, seconds_or
from simulators.faults.line import line


def _unplug(held: Any, off_s: float) -> None:
    held.cut()
    held.cable.unplug()
    held.later(off_s, held.cable.replug)


def _for(do: str, undo: str) -> Strike:
    """`do` now, and `undo` after so many s, or never."""

    def strike(held: Any, lasts_s: float | None) -> None:
        getattr(held.cable, do)()
        if lasts_s is not None:
            held.later(lasts_s, getattr(held.cable, undo))

    return strike


def _taken(do: str) -> Strike:
    """Out and in again, and then not to be had for a while."""
    hold = _for(do, "free")

    def strike(held: Any, lasts_s: float) -> None:
        held.cut()
        hold(held, lasts_s)

    return strike


def _once(do: str) -> Strike:
    return lambda held, _: getattr(held.cable, do)()


def _row(text: str, needs: str, strike: Strike, value: Reads = nothing) -> Fault:
    return act(text, line, strike, value, occasion="piece of output", cable=needs)


CABLE: dict[str, Fault] = {
    "unplug": _row("the plug is out for VALUE (1) s", "unplug", _unplug, seconds_or(1.0)),
    "gone_and_back": _row("as unplug, for VALUE (0.3) s", "unplug", _unplug, seconds_or(0.3)),
    "other_node": _row(
        "out and at once in again: another node or address behind the same name",
        "other_node",
        _once("other_node"),
    ),
    "busy": _row(
        "out and in again, and another program holds the port for VALUE (1) s",
        "busy",
        _taken("busy"),
        seconds_or(1.0),
    ),
    "denied": _row(
        "out and in again, and nobody may open the port for VALUE (1) s",
        "denied",
        _taken("denied"),
        seconds_or(1.0),
    ),
    "stall": _row(
        "the port takes no bytes any more, or for VALUE s: a write runs out of time",
        "stall",
        _for("stall", "flow"),
        seconds,
    ),
    "second_reader": _row(
        "another program reads too, and takes half the bytes, for VALUE (1) s",
        "stream",
        lambda held, lasts_s: held.steal(lasts_s),
        seconds_or(1.0),
    ),
    "half_open": _row(
        "connections live on, and nothing comes or goes on them", "half_open", _once("half_open")
    ),
    "drop_clients": _row(
        "every connection is cut, as by a serial server that restarts",
        "drop_clients",
        _once("drop_clients"),
    ),
    "halt": _row("the input endpoint stalls until the host clears it", "halt", _once("halt")),
    "overflow": _row("a packet is longer than the endpoint allows", "overflow", _once("overflow")),
}
