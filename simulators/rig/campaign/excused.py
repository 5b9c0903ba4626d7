"""What is excused at a table by now: what struck, what was latched, and which batches were counted since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import inf

from controller.record import Entry
from simulators.faults import FAULTS
from simulators.models.cards import Card
from simulators.rig.campaign.excuses import ADMITS_LOSS, COUNTED, EXCUSES, TABLE, Excuse
from simulators.rig.campaign.slips import SLIPS
from simulators.rig.felt import BEE_TEK
from simulators.rig.stepped import Stepped


class Excused:
    """Take every fact in order, and look now and then (`notice`) what struck, by device and fault.

    An excuse is a debt: one of its faults must be latched, at the latest by the next count.
    """

    def __init__(self, world: Stepped, struck: Callable[[], Mapping[str, Counter[str]]]) -> None:
        self._world, self._struck = world, struck
        self._before: dict[str, Counter[str]] = {}
        self._struck_at: dict[str, int] = {}
        self._hidden_at = 0
        self._latched_at: dict[str, int] = {}
        self._counted: list[tuple[int, str, str]] = []
        self._owed: list[tuple[str, Excuse, int]] = []

    def take(self, entry: Entry) -> None:
        """A fault is latched, or a batch is counted."""
        kind, data = entry.fact.kind, entry.fact.data
        if kind == "fault_latched":
            self._latched_at[data["code"]] = entry.seq
            if data["code"] in ADMITS_LOSS:
                self._hidden_at = max(self._hidden_at, entry.seq)
        elif kind in COUNTED and (batch := data.get("batch")) is not None:
            self._counted.append((entry.seq, kind, batch))

    def notice(self) -> None:
        """When each fault struck last, and when one that hides cards did."""
        seq = self._world.journal.last_seq
        for device, now in self._struck().items():
            new = now - self._before.get(device, Counter())
            self._before[device] = Counter(now)
            self._struck_at |= dict.fromkeys(new, seq)
            if (new and self._talks(device)) or any(map(_hides, new)):
                self._hidden_at = seq

    def hidden(self, batch: str) -> bool:
        """Whether cards of the batch may be elsewhere than anybody can know before it is counted."""
        return self._hidden_at > 0 and self._uncounted(self._hidden_at, batch)

    def unnumbered_loss(self) -> bool:
        """A shoe that only talks: what its line loses nobody knows before the next count."""
        return any(self._talks(device) and what for device, what in self._struck().items())

    def violation(self, kind: str, fact: float = inf) -> bool:
        """Whether it is excused now, or was when `fact` came: what was counted until then excuses nothing."""
        self.notice()
        if kind == "mixed batches" and self._remains():
            return True
        for excuse in EXCUSES:
            if kind not in excuse.kinds:
                continue
            for since in (self._struck_at[name] for name in excuse.faults if name in self._struck_at):
                if self._is_latched(excuse, since) or self._open(excuse, since, fact):
                    if excuse.codes and not self._disguised():
                        self._owed.append((kind, excuse, since))
                    return True
        return kind == "leak" and self.unnumbered_loss()

    def unpaid(self, *, final: bool = False) -> Iterator[str]:
        """The excuses that turned out to be none, once each."""
        owed, self._owed = self._owed, []
        for kind, excuse, since in owed:
            if self._is_latched(excuse, since):
                continue
            if excuse.by and self._open(excuse, since):
                if not final:
                    self._owed.append((kind, excuse, since))
                if not final or excuse.by != COUNTED:
                    continue
            yield f"{kind}: none of {', '.join(excuse.codes)} was latched: {excuse.why}"

    def _open(self, excuse: Excuse, since: int, until: float = inf) -> bool:
        """Whether the count by which it must be latched has not come yet."""
        names = [batch.id for batch in self._world.rules.batches]
        return self._uncounted(since, *names, by=excuse.by or COUNTED, until=until)

    def _uncounted(self, since: int, *batches: str, by: frozenset[str] = COUNTED, until: float = inf) -> bool:
        """Whether none of the facts `by` has come since for one of the batches."""
        counted = {batch for seq, kind, batch in self._counted if since < seq < until and kind in by}
        return not counted.issuperset(batches)

    def _is_latched(self, excuse: Excuse, since: int) -> bool:
        latched = {fault.code for fault in self._world.service.state.faults}
        return any(code in latched or self._latched_at.get(code, -1) >= since for code in excuse.codes)

    def _talks(self, device: str) -> bool:
        """Whether what struck at `device` makes a shoe that only talks lose what it has to say."""
        shoe = self._world.rules.shoe
        return self._world.drivers.get(shoe) == BEE_TEK and device in (shoe, TABLE)

    def _remains(self) -> bool:
        """Whether the only strangers are cards of a batch that was replaced, and lie deep in the shuffler."""
        strangers = self._strangers()
        inside = strangers.pop("shuffler")
        return bool(inside) and not any(strangers.values()) and all(card.serial > 0 for card in inside)

    def _disguised(self) -> bool:
        """Whether every stranger on the table has the back of the batch in the shoe: nobody knows him."""
        felt = self._world.felt
        backs = {batch.id: batch.back for batch in felt.rules.batches}
        back = backs.get(felt.referee.shoes[-1]) if felt.referee.shoes else None
        strangers = (card for cards in self._strangers().values() for card in cards)
        return "wrong_back_card" in self._struck_at and all(card.back == back for card in strangers)

    def _strangers(self) -> dict[str, list[Card]]:
        """Cards of no batch, by place; what is up a sleeve is off the table."""
        felt = self._world.felt
        return {
            place: [i for i in holder.contents() if isinstance(i, Card) and i not in felt.batch_of]
            for place, holder in felt.referee.places.items()
            if not place.endswith("sleeve")
        }


def _hides(name: str) -> bool:
    """Whether cards are somewhere else, once this struck, than anybody can know before a count."""
    if name in SLIPS:
        return SLIPS[name].hides
    return name in FAULTS and FAULTS[name].hides
