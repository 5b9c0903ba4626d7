"""What goes wrong with cards in a round, and the shuffles by hand that mend it (R-10, R-31 to R-36)."""

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
