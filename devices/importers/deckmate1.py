"""The history log of a Deck Mate 1 as records (docs/protocols/deckmate1.md).

Its spacing, dots, colons and equals signs follow no rule, years read 00 and counts go back. Nothing is
dropped or put in another order: each record has its line as it stood, and what looks wrong is noted on it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

YEAR_00, DATE_IMPOSSIBLE, TIME_IMPOSSIBLE = "year_00", "date_impossible", "time_impossible"
CYCLES_WENT_BACK, NAME_NOT_KNOWN, UNREADABLE = "cycles_went_back", "name_not_known", "field_unreadable"
LINE_END_MISSING = "line_end_missing"
"""Notes: what looks wrong about a record."""

_TITLE = "deckmateshufflerhistorylog"
_SETTINGS = {
    "currentgripperoffset": "current_gripper_offset",
    "currentplatformoffset": "current_platform_offset",
}
_EVENTS = {
    "poweredup": "powered_up", "autosetups": "auto_setups", "extracard": "extra_card",
    "jamrecovery": "jam_recovery", "dooropened": "door_opened", "missingcard": "missing_card",
}  # fmt: skip
_TOTALS = {
    "powerups": "power_ups", "cdsfailures": "cds_failures", "missingcard": "missing_card",
    "extracard": "extra_card", "dooropenjams": "door_open_jams", "jamrecoveries": "jam_recoveries",
    "autosetups": "auto_setups", "platformoop": "platform_oop", "totalcycles": "total_cycles",
}  # fmt: skip

_LINE_END = re.compile(r"\r\n|\r|\n")
_UNPRINTED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SEPARATOR = r"[\s.:=]*"
_BANNER = re.compile(r"SHUFFLE\s*MASTER\s*DECK\s*MATE\s*SHUFFLER\W*", re.IGNORECASE)
_SERIAL = re.compile(rf"serial\s*(?:number|no){_SEPARATOR}(.*)", re.IGNORECASE)
_REPORT = re.compile(r"report\s*([TD])\s*[.:=]+\s*(.*)", re.IGNORECASE)
_NUMBER = re.compile(rf"([a-z][a-z ./-]*?){_SEPARATOR}(-?\d{{1,18}})", re.IGNORECASE)
_RUN_ON = re.compile(r"(?<=\d)(?=[A-Za-z]{2})")
_FIELD = re.compile(r"(?<![a-z])(time|date|cyc(?:le)?s?|[pg])\s*[.:=]+\s*", re.IGNORECASE)
_TIME = re.compile(r"(\d{1,2})\s*[:.=]\s*(\d{1,2})\s*[:.=]\s*(\d{1,2})")
_DATE = re.compile(r"(\d{1,2})\s*[-/.]\s*(\d{1,2})\s*[-/.]\s*(\d{2}|\d{4})")
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class Record:
    """One line. `time` and `date` (month-day-year) are the machine's, as it printed them, and prove nothing.

    `kind` is banner, title, serial, report_time, report_date, setting, event, total or unknown.
    `cycles`, `p` and `g` are an event's Cyc, P and G. Lines that run on have one `line` and `raw`.
    """

    line: int
    kind: str
    raw: str
    name: str | None = None
    value: int | str | None = None
    time: str | None = None
    date: str | None = None
    cycles: int | None = None
    p: int | None = None
    g: int | None = None
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        own = {key: getattr(self, key) for key in ("name", "value", "time", "date", "cycles", "p", "g")}
        known = {key: value for key, value in own.items() if value is not None}
        return {"line": self.line, "kind": self.kind, **known, "notes": list(self.notes), "raw": self.raw}


def parse(text: str) -> Iterator[Record]:
    """The records in the order of the lines; an empty line is none. Line ends are CR, LF or both."""
    cycles: int | None = None
    for number, raw in enumerate(_LINE_END.split(text), 1):
        for record in _records(number, raw):
            if record.cycles is not None:
                if cycles is not None and record.cycles < cycles:
                    record = replace(record, notes=(*record.notes, CYCLES_WENT_BACK))
                cycles = record.cycles
            yield record


def summary(records: list[Record], lines: int) -> dict[str, Any]:
    """What a whole log comes to; `lines` as `count_lines` gives them."""
    kinds = Counter(record.kind for record in records)
    serial = next((record.value for record in records if record.kind == "serial"), None)
    return {
        "kind": "summary",
        "serial": serial,
        "lines": lines,
        "records": len(records),
        "events": dict(Counter(str(r.name) for r in records if r.kind == "event")),
        "totals": {str(r.name): r.value for r in records if r.kind == "total"},
        "settings": {str(r.name): r.value for r in records if r.kind == "setting"},
        "unknown": kinds["unknown"],
        "notes": dict(Counter(note for record in records for note in record.notes)),
    }


def count_lines(text: str) -> int:
    """Lines of a log, with or without an end behind the last one."""
    lines = _LINE_END.split(text)
    return len(lines) - (not lines[-1])


def _records(number: int, raw: str) -> Iterator[Record]:
    """A line is one record; more when a banner stands before it, or where ends of lines are missing."""
    text = _UNPRINTED.sub("", raw).strip()
    if found := _BANNER.search(text):
        yield Record(number, "banner", raw)
        text = text[found.end() :].strip()
    if text:
        yield from _run_on(Record(number, "unknown", raw), text)


def _run_on(plain: Record, text: str) -> Iterator[Record]:
    """Lines that run on are told apart where each of them is one that is known."""
    parts = [_record(plain, part) for part in _RUN_ON.split(text)]
    if len(parts) > 1 and all(part.kind != "unknown" for part in parts):
        yield from (replace(part, notes=(*part.notes, LINE_END_MISSING)) for part in parts)
    else:
        yield _record(plain, text)


def _record(plain: Record, text: str) -> Record:
    if _letters(text) == _TITLE:
        return replace(plain, kind="title")
    if found := _SERIAL.fullmatch(text):
        return replace(plain, kind="serial", value=found[1].strip())
    if found := _REPORT.fullmatch(text):
        return _reported(plain, found[1].upper(), found[2])
    if found := _NUMBER.fullmatch(text):
        name, value = _letters(found[1]), int(found[2])
        if name in _SETTINGS:
            return replace(plain, kind="setting", name=_SETTINGS[name], value=value)
        if name in _TOTALS:
            return replace(plain, kind="total", name=_TOTALS[name], value=value)
    if fields := _fields(text):
        return _event(plain, text, fields)
    return plain


def _reported(plain: Record, which: str, text: str) -> Record:
    if which == "T":
        time, notes = _time(text)
        return replace(plain, kind="report_time", time=time, notes=notes)
    date, notes = _date(text)
    return replace(plain, kind="report_date", date=date, notes=notes)


def _event(plain: Record, text: str, fields: dict[str, str]) -> Record:
    name = text[: _first(text)]
    known = _EVENTS.get(_letters(name))
    notes: tuple[str, ...] = () if known else (NAME_NOT_KNOWN,)
    record = replace(plain, kind="event", name=known or _snake(name) or None)
    if "time" in fields:
        time, more = _time(fields["time"])
        record, notes = replace(record, time=time), notes + more
    if "date" in fields:
        date, more = _date(fields["date"])
        record, notes = replace(record, date=date), notes + more
    if len(_FIELD.findall(text)) > len(fields):
        notes += (UNREADABLE,)
    counts = {key: _count(fields[key]) for key in ("cyc", "p", "g") if key in fields}
    if None in counts.values():
        notes += (UNREADABLE,)
    notes = tuple(dict.fromkeys(notes))
    return replace(record, cycles=counts.get("cyc"), p=counts.get("p"), g=counts.get("g"), notes=notes)


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None


def _fields(text: str) -> dict[str, str]:
    """The named values of an event; empty when the line has none of a time, a date or a count of cycles."""
    found = list(_FIELD.finditer(text))
    ends = [field.start() for field in found[1:]] + [len(text)] * bool(found)
    names = (field[1].lower() for field in found)
    keys = ("cyc" if name.startswith("cyc") else name for name in names)
    values = (text[field.end() : end].strip(" ,;.\t") for field, end in zip(found, ends, strict=True))
    fields = dict(zip(keys, values, strict=True))
    return fields if fields.keys() & {"time", "date", "cyc"} else {}


def _first(text: str) -> int:
    found = _FIELD.search(text)
    assert found is not None
    return found.start()


def _time(text: str) -> tuple[str | None, tuple[str, ...]]:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None, (UNREADABLE,)
    hour, minute, second = map(int, found.groups())
    wrong = hour > 23 or minute > 59 or second > 59
    return f"{hour:02d}:{minute:02d}:{second:02d}", (TIME_IMPOSSIBLE,) if wrong else ()


def _date(text: str) -> tuple[str | None, tuple[str, ...]]:
    """Month, day, year: 29 stands in the second place of a printed date."""
    found = _DATE.fullmatch(text.strip())
    if found is None:
        return None, (UNREADABLE,)
    month, day, year = int(found[1]), int(found[2]), found[3]
    notes: tuple[str, ...] = (YEAR_00,) if year == "00" else ()
    if not (1 <= month <= 12 and 1 <= day <= _DAYS[month - 1]):
        notes += (DATE_IMPOSSIBLE,)
    return f"{month:02d}-{day:02d}-{year}", notes


def _letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


def _snake(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
