"""The hole-card reader: when it may be used, what it says, and what a misuse means (R-25, R-36a)."""

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
