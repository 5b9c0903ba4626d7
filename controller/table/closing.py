"""Idle tables, closing, and a shuffler that goes out of service (R-19, R-21, R-36b, S8, S10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from controller.table.args import Apply, Judge
from controller.table.state import TableState

if TYPE_CHECKING:
    from controller.table.draft import Draft

JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {}
APPLY: dict[str, Apply] = {}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {}
