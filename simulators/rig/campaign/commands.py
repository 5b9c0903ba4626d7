"""Commands of a table: each ends once, and what is told of its end is what the machine did (law 5)."""

from __future__ import annotations

from collections.abc import Iterator

from controller.record import Entry
from simulators.models.machine import Machine

DID = {"start": "cycle_started", "release": "let_out"}
"""What happens at a shuffler that carries out a command; both have the token of the command."""
DENIED = frozenset({"refused", "not_sent"})


class Commands:
    """Take every fact in order; what is wrong comes back as sentences. `under_way` is what has not ended."""

    def __init__(self, shuffler: Machine) -> None:
        self.under_way: dict[str, tuple[str, str | None, int]] = {}
        self._shuffler = shuffler

    def take(self, entry: Entry) -> Iterator[str]:
        data = entry.fact.data
        if entry.fact.kind == "command_issued":
            token = data["args"].get("token") if data["command"] in DID else None
            self.under_way[data["call"]] = (data["command"], token, entry.mono_ns)
        elif entry.fact.kind == "command_ended":
            if data["call"] not in self.under_way:
                yield f"commands: fact {entry.seq} ends {data['call']}, which is not under way"
                return
            name, token, issued = self.under_way.pop(data["call"])
            if (
                token is not None
                and data["outcome"] in DENIED
                and self._did(name, token, issued, entry.mono_ns)
            ):
                yield f"commands: fact {entry.seq} has {name} {data['outcome']}, and it was carried out"

    def _did(self, name: str, token: str, since_ns: int, until_ns: int) -> bool:
        """Before it ended: from then on it may be asked for again with its token, and that may be done."""
        return any(
            what.kind == DID[name]
            and (what.data.get("token") or b"").hex() == token
            and since_ns <= round(what.at * 1e9) < until_ns
            for what in reversed(self._shuffler.happenings)
        )
