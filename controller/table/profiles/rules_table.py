"""The table of rules: the clauses of the texts first, a row a sub-paragraph, then the rules by number."""

from __future__ import annotations

from controller.table.profiles.casino_night import CASINO_NIGHT
from controller.table.profiles.index_69f import INDEX
from controller.table.profiles.licensed import LICENSED
from controller.table.profiles.numbered_cards import CARDS
from controller.table.profiles.numbered_machines import MACHINES
from controller.table.profiles.numbered_play import PLAY
from controller.table.profiles.numbered_proofs import PROOFS
from controller.table.profiles.rule import Rule

CLAUSES: tuple[Rule, ...] = (*LICENSED, *INDEX, *CASINO_NIGHT)
NUMBERED: tuple[Rule, ...] = (*CARDS, *PLAY, *MACHINES, *PROOFS)
RULES: tuple[Rule, ...] = (*CLAUSES, *NUMBERED)
