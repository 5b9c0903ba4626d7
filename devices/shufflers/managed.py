"""Driver of a managed shuffler (docs/protocols/managed.md, group 66)."""

from __future__ import annotations

from typing import Any

from devices.base import CARD_GAMES, CommandSpec
from devices.events import BatchReleased, CycleAborted, CycleCompleted, CycleStarted, Door, Jam
from devices.managed.dialect import CommandDef, Dialect, Translated, fault
from devices.managed.fields import Body, Malformed, counts, flag, known, text, token, uint
from devices.managed.messages import SETTINGS, SHUFFLER, check_settings
from devices.managed.spec import managed_spec


def _check_status(body: Body) -> dict[str, Any]:
    return known(body, state=text, inside=uint, door=flag, cycle=uint, token=token, mode=text)


def _check_start(body: Body) -> dict[str, Any]:
    return {"cycle": uint(body, "cycle")}


def _check_release(body: Body) -> dict[str, Any]:
    return {"count": uint(body, "count"), "inside": uint(body, "inside")}


def _check_report(body: Body) -> dict[str, Any]:
    return {
        "cycle": uint(body, "cycle"),
        "token": token(body),
        "count": uint(body, "count"),
        "mode": text(body, "mode"),
        "composition": counts(body, "composition"),
        "backs": counts(body, "backs"),
        "unread": uint(body, "unread"),
    }


def _check_nothing(body: Body) -> dict[str, Any]:
    del body
    return {}


def translate(kind: str, body: Body) -> Translated | None:
    match kind:
        case "start":
            return CycleStarted, {"cycle": uint(body, "cycle"), "token": _proof(body)}
        case "done":
            return CycleCompleted, {**_check_report(body), "token": _proof(body)}
        case "abort":
            return CycleAborted, {"cycle": uint(body, "cycle"), "cause": text(body, "cause")}
        case "out":
            fields = {"count": uint(body, "count"), "inside": uint(body, "inside"), "token": token(body)}
            return BatchReleased, fields
        case "door":
            return Door, {"open": flag(body, "open")}
        case "jam":
            return Jam, {"place": text(body, "place"), "attempt": uint(body, "attempt")}
        case "fault":
            return fault(body)
        case _:
            return None


def _proof(body: Body) -> str:
    """The token that a started or completed cycle must carry."""
    found = token(body)
    if found is None:
        raise Malformed("no token")
    return found


DIALECT = Dialect(
    device_class="shuffler",
    commands=(
        CommandDef(CommandSpec("status", "state of the shuffler", reads=True), SHUFFLER, 0, _check_status),
        CommandDef(CommandSpec("settings", "settings, checked", reads=True), *SETTINGS, check_settings),
        CommandDef(
            CommandSpec(
                "start", "start a cycle with the host's token",
                args=("token",), moves_cards=True, makes_token=True,
            ),
            SHUFFLER, 1, _check_start,
        ),
        CommandDef(CommandSpec("abort", "abort the running cycle"), SHUFFLER, 2, _check_nothing),
        CommandDef(
            CommandSpec("release", "let the batch out", args=("token",), moves_cards=True),
            SHUFFLER, 3, _check_release,
        ),
        CommandDef(CommandSpec("report", "the last cycle's report", reads=True), SHUFFLER, 4, _check_report),
    ),
    translate=translate,
)  # fmt: skip
SPEC = managed_spec(
    DIALECT,
    name="managed-shuffler",
    role="shuffler",
    games=CARD_GAMES,
    product=0x0001,
)
