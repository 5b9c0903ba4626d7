"""The names of facts that scenarios and tests may ask for."""

from __future__ import annotations

from controller.table import evolve
from controller.table.judges import JUDGES
from controller.table.observe import JUDGED
from devices import events

FACT_KINDS = frozenset(
    {
        *evolve.KINDS,
        *JUDGES,
        *(event.kind for event in vars(events).values() if hasattr(event, "own_fields")),
        *(f"unjudged_{kind}" for kind in JUDGED),
        "checkpoint", "collected", "deal_goes_on", "dealt", "deck_log", "exposed", "hole_dealt",
        "journal_started", "refused",
    }
) - {""}  # fmt: skip
"""All kinds of facts: what devices report, what is tapped, and what the table and its journal add."""
