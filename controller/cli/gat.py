"""`cutcard gat`: what a device reports of its own programs, over serial GAT. Its word, never a proof."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any
from xml.sax.saxutils import unescape

import typer

from controller.cli.event_lines import note
from controller.cli.exits import DEVICE, REFUSED, CommandError

if TYPE_CHECKING:
    from firmware_bridge.link import Outcome

DRIVER = "gat"
SALT_BYTES = 20
"""As many as the hash has (SHA-1)."""
SESSION_S = 10.0
TURN_S = 0.5
PROGRESS_S = (2.0, 10.0)
"""Seconds until the first line of progress, and between the next ones."""
BY_DEVICE = "reported by device"
REPORTED, FAILED, NOT_SUPPORTED, UNKNOWN = "reported", "failed", "not_supported", "unknown"
NO_PROOF = (
    "A device's word is no proof: a changed device can report any hash. Compare with the laboratory's list "
    "and, with the same salt (--salt), with earlier visits."
)
DISTURBED = (
    "answers to questions that we did not ask came meanwhile: another host talks to this device, and a "
    "report may be the answer to its question; disconnect it and ask again"
)
COMPONENTS = 64
"""So many of a device's components are asked for."""
_LISTED = re.compile(r"<Feature>\s*Component\s*</Feature>\s*<Parameter>([^<]*)</Parameter>")
_LISTED_AS_TEXT = re.compile(r"^Component\t([^\t\r\n]+)", re.MULTILINE)
_HASH = re.compile(r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{64}|[0-9A-Fa-f]{40}|[0-9A-Fa-f]{32})(?![0-9A-Za-z])")


class NotReported(CommandError):
    """Not everything that was asked for was reported."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


@dataclass(slots=True)
class Report:
    """What became of one request. `result` is reported, failed, not_supported or unknown; never verified."""

    request: str
    component: str | None
    salt: str | None
    result: str
    detail: str | None = None
    format: str | None = None
    frames: int | None = None
    age: int | None = None
    hashes: list[str] = field(default_factory=list)
    report: str | None = None
    foreign: int = 0


def gat(
    port: Annotated[
        str, typer.Argument(metavar="PORT", help="serial:PATH?baud=9600 or socket:HOST:PORT of the device")
    ],
    component: Annotated[
        str | None, typer.Option("--component", metavar="NAME", help="one component instead of all it lists")
    ] = None,
    salt: Annotated[
        str | None, typer.Option("--salt", metavar="HEX", help="the salt of an earlier visit, or none")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object instead of text")] = False,
) -> None:
    """Ask a device for the hashes of its programs, with a fresh random salt, and show what it reports.

    A calculation may take 20 minutes. What a device says of itself is no proof: a changed one can report any
    hash. Exit code 0 when all was reported, 4 when the device could not or would not, 3 when nobody knows.
    """
    from controller.cli.event_lines import as_json as json_line
    from controller.cli.event_lines import output, printable
    from devices.verifiers.gat import component as checked
    from firmware_bridge.transports import parse_uri

    parse_uri(port)
    salt = salt or os.urandom(SALT_BYTES).hex()
    try:
        checked("any" if component is None else component, salt)
    except ValueError as wrong:
        raise CommandError(f"--component, --salt: {wrong}") from wrong
    out = output()
    visit = _visit(port, component, salt)
    for line in [json_line(visit.found())] if as_json else _text(visit):
        out.write(line + "\n")
    out.flush()
    if (trouble := visit.trouble()) is not None:
        text, code = trouble
        raise NotReported(printable(text), code)


@dataclass(slots=True)
class Visit:
    """One session with a device. `broken` is what ended it early; `foreign` as `Talk` counts them."""

    port: str
    status: dict[str, Any] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    broken: str | None = None
    foreign: int = 0
    rejected: int = 0

    def found(self) -> dict[str, Any]:
        status = dict(self.status)
        return {
            "port": self.port,
            "provenance": BY_DEVICE,
            "protocol": status.get("version"),
            "state": status.get("state"),
            "formats": status.get("formats", []),
            "last": None if "level" not in status else {k: status[k] for k in ("level", "seconds")},
            "reports": [asdict(report) for report in self.reports],
            "foreign": self.foreign,
            "rejected": self.rejected,
            "trouble": None if (trouble := self.trouble()) is None else trouble[0],
        }

    def trouble(self) -> tuple[str, int] | None:
        """Why this is no full report, and the exit code."""
        if self.broken is not None:
            return self.broken, DEVICE
        unknown = next((r for r in self.reports if r.result == UNKNOWN), None)
        if unknown is not None:
            return f"{_name(unknown)}: {unknown.detail}", DEVICE
        if self.foreign:
            return DISTURBED, DEVICE
        refused = next((r for r in self.reports if r.result != REPORTED), None)
        if refused is not None:
            return f"{_name(refused)}: {refused.detail}", REFUSED
        return None


def _visit(port: str, component: str | None, salt: str) -> Visit:
    """Ask everything, one after the other, until the line breaks or a signal comes."""
    from controller.cli.signals import ended_by_signals

    talk, visit = _Talk(port), Visit(port)
    try:
        with ended_by_signals(talk.stop) as talk.ending:
            _ask_all(talk, visit, component, salt)
    except _Broken as broken:
        visit.broken = str(broken)
    finally:
        visit.foreign, visit.rejected = talk.foreign, talk.rejected
        talk.close()
    return visit


def _ask_all(talk: _Talk, visit: Visit, component: str | None, salt: str) -> None:
    talk.open()
    visit.status = talk.status
    if component is None:
        listed = talk.ask("functions", {})
        visit.reports.append(_report("functions", None, None, listed))
        names = _components(visit.reports[0])
        if visit.reports[0].result == NOT_SUPPORTED and talk.status["results"]:
            visit.reports.append(_report("results", None, None, talk.ask("results", {})))
    else:
        names = [component]
    for name in names:
        end = talk.ask("component", {"name": name, "salt": salt})
        visit.reports.append(_report("component", name, None if salt == "none" else salt, end))


def _components(listed: Report) -> list[str]:
    """The components that a list names. No XML parser: nothing in a device's text is ever expanded."""
    text = listed.report or ""
    found = [unescape(name, {"&quot;": '"', "&apos;": "'"}).strip() for name in _LISTED.findall(text)]
    names = list(dict.fromkeys(found or _LISTED_AS_TEXT.findall(text)))[:COMPONENTS]
    return [name for name in names if name and name.isprintable()]


def _report(request: str, component: str | None, salt: str | None, outcome: Outcome) -> Report:
    from firmware_bridge.gat.queries import NOT_SUPPORTED as CODES
    from firmware_bridge.link import Done, Refused

    match outcome:
        case Done(answer):
            report = Report(request, component, salt, REPORTED)
            report.format, report.frames = answer["format"], answer["frames"]
            report.report, report.age, report.foreign = answer["report"], answer.get("age"), answer["foreign"]
            if request != "functions":
                known = {(salt or "").lower().removeprefix("0x")}
                hashes = dict.fromkeys(h.upper() for h in _HASH.findall(answer["report"]))
                report.hashes = [h for h in hashes if h.lower() not in known]
            return report
        case Refused(code, name):
            return Report(request, component, salt, NOT_SUPPORTED if code in CODES else FAILED, name)
        case _:
            return Report(request, component, salt, UNKNOWN, outcome.reason)


class _Broken(Exception):
    """The session is over: the line broke, the device fell silent, or a signal came."""


class _Talk:
    """A session over a port; commands one at a time, with progress on standard error."""

    def __init__(self, port: str) -> None:
        from random import SystemRandom

        from controller.cli.decode import driver_spec
        from controller.cli.signals import Ending
        from controller.cli.wires import open_wire
        from devices.base import Setup
        from firmware_bridge.clock import SystemClock
        from firmware_bridge.port import Port
        from firmware_bridge.transports import parse_uri

        spec = driver_spec(DRIVER)
        self._clock = SystemClock()
        wire = open_wire(port, spec, write=True)
        self.stop, self.ending = wire.stop, Ending()
        setup = Setup(spec.name, SystemRandom(), packets=parse_uri(port).packets)
        self._driver = spec.controlled(setup)
        self._port = Port(spec.name, wire, self._driver, self._clock, self._take)
        self.status: dict[str, Any] = {}
        self.rejected = 0
        self._up = False
        self._trouble: str | None = None
        self._ends: dict[str, Outcome] = {}
        self._state = ""

    @property
    def foreign(self) -> int:
        return self._driver.counters.unasked

    def open(self) -> None:
        """Until the session stands. Raises _Broken."""
        until = self._clock.now() + SESSION_S
        self._run(lambda: self._up or self._clock.now() >= until, "waiting for the device")
        if not self._up:
            raise _Broken(f"the device gave no session within {SESSION_S:g} s")

    def ask(self, name: str, args: dict[str, str]) -> Outcome:
        """One command to its end. Raises _Broken."""
        call = f"{name} {len(self._ends)}"
        self._port.command(call, name, args)
        what = args.get("name", "the list of its components" if name == "functions" else "its report")
        self._run(lambda: call in self._ends, f"{what}: the device calculates")
        return self._ends[call]

    def close(self) -> None:
        self._port.close()

    def _run(self, done: Callable[[], bool], what: str) -> None:
        since = self._clock.now()
        due = since + PROGRESS_S[0]
        while not done():
            if self.ending.by is not None:
                raise _Broken(
                    f"{self.ending.by} came first; what the device was asked to calculate goes on in it"
                )
            if self._trouble is not None:
                hint = self._port.health().hint
                raise _Broken(self._trouble if hint is None else f"{self._trouble}; {hint}")
            self._port.step(TURN_S)
            now = self._clock.now()
            if now >= due:
                due = now + PROGRESS_S[1]
                state = f" ({self._state})" if self._state else ""
                note(f"{what}{state}, {now - since:.0f} s; it may take 20 minutes")

    def _take(self, name: str, outputs: Sequence[object]) -> None:
        """The port's `deliver`."""
        del name
        from devices.events import AuthenticationState, FrameRejected, LinkDown, LinkUp
        from firmware_bridge.link import Complete
        from firmware_bridge.port import Crashed, Unavailable

        for output in outputs:
            match output:
                case LinkUp(status=status):
                    self._up, self.status = True, dict(status)
                case LinkDown(reason=reason):
                    self._trouble = self._trouble or reason
                case Unavailable(text=text):
                    self._trouble = self._trouble or text
                case AuthenticationState(state=state):
                    self._state = state
                case FrameRejected():
                    self.rejected += 1
                case Complete(call_id, outcome):
                    self._ends[call_id] = outcome
                case Crashed(error, where):
                    print(f"{error} at {where}", file=sys.stderr, flush=True)


# For people


def _name(report: Report) -> str:
    return report.component or {"functions": "list of components"}.get(report.request, "last report")


def _text(visit: Visit) -> Iterator[str]:
    found = visit.found()
    if visit.status:
        yield _row("device", f"GAT {found['protocol']}, {found['state']} ({BY_DEVICE})")
        yield _row("formats", ", ".join(found["formats"]) or "not told")
        last = found["last"]
        told = "not told"
        if last is not None:
            when = f"{last['seconds']} s ago, level {last['level']}" if last["level"] != "00" else "never"
            told = f"{when} ({BY_DEVICE})"
        yield _row("last", told)
    for report in visit.reports:
        yield ""
        yield from _rows(report)
    if any(r.result == REPORTED for r in visit.reports):
        yield ""
        yield NO_PROOF


def _rows(report: Report) -> Iterator[str]:
    yield _row("asked for", _name(report))
    if report.request == "component":
        yield _row("salt", report.salt or "none")
    words = {REPORTED: BY_DEVICE, NOT_SUPPORTED: "not supported"}
    told = words.get(report.result, report.result)
    yield _row("result", told if report.detail is None else f"{told}: {report.detail}")
    for one in report.hashes:
        yield _row("hash", f"{one} ({BY_DEVICE})")
    if report.report is not None:
        yield _row("report", f"{report.format}, {report.frames} frames, as the device wrote it:")
        yield from (f"    {_printable(line)}" for line in report.report.splitlines())


def _row(name: str, text: str) -> str:
    return f"{name:<10} {_printable(text)}"


def _printable(text: str) -> str:
    from controller.cli.event_lines import printable

    return printable(text)
