"""What a row of the table of rules is. docs/regulation.md is made from these rows (`make regulation`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tag(StrEnum):
    """How well the clause is known."""

    VERBATIM = "verbatim"
    PARTIAL = "partial"
    ANALOGUE = "analogue"
    RECALLED = "recalled"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class Switch:
    """Two readings of a clause, the default first. Without a `key` in table.toml the first one is taken."""

    key: str
    readings: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule or sub-paragraph.

    `code` names objects as `module:name`, `journal` the kinds of facts that show it, with the fault's code
    behind `fault_latched: `. A sub-paragraph that rules carry (`by`) has their code and tests beside its own.
    `left_out` says what is not here, and why.
    """

    id: str
    tag: Tag
    asks: str
    by: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    journal: tuple[str, ...] = ()
    clause: str = ""
    switch: Switch | None = None
    left_out: str = ""


CHECK = "none: `check` refuses the table before it opens"
COMMAND = "none: at the command line alone, no table takes part"
NO_FACT = (CHECK, COMMAND)
"""Stand in place of a kind of fact where no journal shows a rule."""
