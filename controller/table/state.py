"""The state of a table: the only truth (law 8). Frozen; made by `evolve` from facts alone.

What has no slots is copied by `firmware_bridge.frozen.replace` at most facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from controller.table.faults import Blocks
from controller.table.phases import Phase
from controller.table.profiles import TableRules
from controller.table.round import BURNED
from firmware_bridge.frozen import replace


class Place(StrEnum):
    """Where cards of a batch can be. The cutting card is no card and is counted nowhere."""

    IN_HAND = "in_hand"
    SHUFFLER = "shuffler"
    SHOE = "shoe"
    """In the shoe, or in the dealer's hand where cards are dealt from it."""
    TABLE = "table"
    RACK = "rack"
    ASIDE = "aside"
    """The segregated area of a double shoe."""


class Cycle(StrEnum):
    """How far the shuffle of the batch in the shuffler is."""

    NONE = "none"
    CHECKING = "checking"
    STARTING = "starting"
    RUNNING = "running"
    PROVED = "proved"


class Closing(StrEnum):
    """Whether the shoe is about to end (R-26, R-27)."""

    NO = "no"
    ONE_MORE_ROUND = "one_more_round"
    THIS_ROUND = "this_round"


class Prep(StrEnum):
    """How far a batch is prepared for its first shuffle (R-12, R-13, R-48), one step after the other."""

    RECEIVED = "received"
    INSPECTED = "inspected"
    VERIFIED = "verified"
    SPREAD = "spread"
    PLAYER_INSPECTED = "player_inspected"
    WASHED = "washed"
    CERTIFIED = "certified"
    AS_IT_CAME = "as_it_came"
    """Casino nights ask for no preparation (13:47-20.22)."""


READY = (Prep.WASHED, Prep.CERTIFIED, Prep.AS_IT_CAME)
"""A batch that may be shuffled: prepared in one of the two ways of 13:69F-2.4(a), where it must be."""


class Shuffled(StrEnum):
    """What proves that a batch is shuffled."""

    MACHINE = "machine"
    CERTIFICATE = "certificate"
    HAND = "hand"


class Ending(StrEnum):
    """What follows once the cards of the shoe are collected."""

    SWAP = "swap"
    IDLE = "idle"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Proof:
    """A completed cycle, proved by our token, or what stands for it: it lets one batch into the shoe once."""

    token: str
    cycle: int
    how: Shuffled = Shuffled.MACHINE


@dataclass(frozen=True)
class Batch:
    """Custody of one batch: cards by place, always adding up to a whole batch once the table is open.

    `back` is the colour it was opened with: a file edited later cannot swap the batches. `unfit_since` and
    `replaced` are numbers of facts, `received` is an hour (`inputs.Hour`), `uncounted` are rounds since its
    cards were counted (R-54), `missing` are cards named dead
    (told to nobody while the batch is in the shoe, law 7), `counted` is the count at the closing, `orders`
    are the orders of its last shoes (see `Shoe.order`).
    """

    id: str
    back: str = ""
    cards: Mapping[Place, int] = field(default_factory=dict)
    proof: Proof | None = None
    cut: bool = False
    unfit: str | None = None
    unfit_since: int | None = None
    missing: tuple[str, ...] = ()
    prep: Prep = Prep.RECEIVED
    inspected_by: str = ""
    received: int | None = None
    replaced: int = 0
    uncounted: int = 0
    counted: int | None = None
    orders: tuple[str, ...] = ()

    def at(self, place: Place) -> int:
        """How many cards of this batch are at `place`."""
        return self.cards.get(place, 0)

    def move(self, count: int, source: Place, dest: Place) -> Batch:
        """The same batch with `count` cards moved; never makes or loses one."""
        if not count:
            return self
        if self.at(source) < count:
            raise ValueError(f"batch {self.id} has {self.at(source)} cards at {source}, not {count}")
        cards = dict(self.cards)
        cards[dest] = cards.get(dest, 0) + count
        cards[source] -= count
        if not cards[source]:
            del cards[source]
        return replace(self, cards=cards)


@dataclass(frozen=True)
class Shuffler:
    """What the table knows of the shuffler. `counter` is the machine's hard cycle counter.

    `surplus` are cards that it holds beyond those this table put in, as far as it last said. `out` tells that
    it is out of service, `letting_out` that it was told to let its batch out; `started_us` is the monotonic
    time at which the running cycle was seen to start, 0 when a session with the machine began since it was
    asked to: nobody can tell how long such a cycle took. `not_started` is why the last start came to nothing,
    "" once one works or the batch is out, and `not_started_since` the fact that told it.
    """

    batch: str | None = None
    stage: Cycle = Cycle.NONE
    token: str | None = None
    counter: int | None = None
    shuffles: int = 0
    surplus: int = 0
    out: bool = False
    letting_out: bool = False
    started_us: int | None = None
    not_started: str = ""
    not_started_since: int | None = None


@dataclass(frozen=True)
class Dealt:
    """A card of the round: where it went, what it is, the number of its fact; `foreign` by its back."""

    to: str
    card: str | None
    seq: int
    seen: bool
    foreign: bool = False


@dataclass(frozen=True)
class Hand:
    """A player's hand that is followed: its cards are those that went to `place`; it `wants` so many.

    `end` is how it ended before it counted 21, "" while it plays.
    """

    place: str
    box: int
    wants: int = 2
    end: str = ""
    split: bool = False


@dataclass(frozen=True)
class Cash:
    """A match-the-dealer wager by word, with cash: accepted once both people confirmed it, 13:69F-2.23(d).

    `amount` is in whole units of the table's money, `dealer` and `supervisor` are who confirmed.
    """

    box: int
    amount: int
    dealer: str = ""
    supervisor: str = ""
    converted: bool = False

    @property
    def accepted(self) -> bool:
        """Whether it is a wager of this round."""
        return bool(self.dealer and self.supervisor)


@dataclass(frozen=True)
class Round:
    """`order` is where the cards of the initial deal go; `owed` that the dealer's second card comes late.

    `peeks` counts the uses of the hole-card reader, `down` is which card of each player lies face down;
    `natural` is what the reader said of the dealer's hand in its turn. `hands` are followed from the first
    tap of one on, `insured` are boxes, and `match` those with a match-the-dealer wager; `cash` are such
    wagers by word. `dealer_hands` counts the hands of the dealer that were settled before the last (2.18);
    `left_out` are the places of which it was told that a card was left out.
    """

    number: int
    boxes: tuple[int, ...]
    cards: tuple[Dealt, ...] = ()
    order: tuple[str, ...] = ()
    owed: bool = False
    peeks: int = 0
    down: str = "none"
    natural: bool | None = None
    hands: tuple[Hand, ...] = ()
    insured: tuple[int, ...] = ()
    match: tuple[int, ...] = ()
    cash: tuple[Cash, ...] = ()
    dealer_hands: int = 0
    left_out: tuple[str, ...] = ()

    @property
    def placed(self) -> int:
        """How many places of the order are taken."""
        return len([card for card in self.cards if card.to != BURNED])


UNCERTAIN = ("events_lost", "shoe_rebooted")
"""Faults under which cards may have left the shoe unseen."""


@dataclass(frozen=True)
class Shoe:
    """The shoe cycle: `first_fact` is where it began, `drawn` counts what came out by card, "" for unread.

    `unseen` counts those of them that nobody may have seen: nothing is concluded from them yet (law 7).
    `early` are cards drawn before the bets were closed: each is used as the next card (R-32). `order` are the
    cards drawn, two letters each, "--" where not everybody saw it at once (law 7). `returned` counts cards
    that were drawn and went back in, as the shoe's own counter has it; `aside` are the cards of its
    segregated area; `by_choice` tells that the licensee ended this shoe (R-14). `told_empty`: since its last
    card the shoe said by itself that it is empty. `stub` and `face_up` count cards that came out of it
    for the stub, and turned the wrong way in the deal; `counted` is what the dealer counted of the stub
    before the settlement, `stub_wrong` that it is another number than is left of the deck; `asked` is up
    to which card, by its own counter, it was asked to let cards out in stacks. `untold`: no device
    counts, and nobody told how many cards a round took, so that fewer are left than its custody says.
    `loading`: cards are put in, and since then none came out and its lid was not closed. Of a continuous
    shuffler (R-60) `used` counts the cards in the rack when the bets were closed, `free` those of them that
    may go back between two rounds.
    """

    batch: str | None = None
    last_batch: str | None = None
    number: int = 0
    first_fact: int = 0
    drawn: Mapping[str, int] = field(default_factory=dict)
    unseen: Mapping[str, int] = field(default_factory=dict)
    foreign: int = 0
    empty: bool = True
    closing: Closing = Closing.NO
    cut_seen: bool = False
    cut_at: str | None = None
    unaccounted: int | None = None
    early: tuple[Dealt, ...] = ()
    order: str = ""
    returned: int = 0
    by_choice: bool = False
    aside: Mapping[str, int] = field(default_factory=dict)
    told_empty: bool = False
    used: int = 0
    free: int = 0
    stub: int = 0
    counted: int | None = None
    stub_wrong: bool = False
    face_up: int = 0
    asked: int = 0
    untold: bool = False
    loading: bool = False

    @property
    def count(self) -> int:
        """Cards of the batch drawn from this shoe so far."""
        return sum(self.drawn.values())

    @property
    def told(self) -> int:
        """How many cards the shoe's own counter should show."""
        return self.count + self.foreign + self.returned

    def copies(self, face: str) -> int:
        """How often this card came out for everyone to see."""
        return self.drawn.get(face, 0) - self.unseen.get(face, 0)


@dataclass(frozen=True)
class Device:
    """What was last journaled of a device; a driver resumes from here."""

    n: int = 0
    boot: int | None = None
    seq: int | None = None
    up: bool = False
    serial: str | None = None
    firmware: str | None = None
    hash: str | None = None
    known: bool = True
    locked: bool | None = None
    """What it last said of its lock."""
    held: bool = False
    """It was locked for the side wagers, so that this table unlocks it."""
    verdict: str | None = None
    """What the comparison with the list of approved devices came to (`firmware_bridge.identity`)."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A command sent, or about to be sent, whose end is not journaled yet."""

    device: str
    name: str


@dataclass(frozen=True)
class Fault:
    """A latched fault; its id is F and the number of the fact that latched it, `since`.

    `again` is the last fact that found the same cause once more. An alarm is one that blocks nothing: `gone`
    is the fact with which its cause went; it is kept until somebody acknowledged it (ISA-18.2), also when the
    cause comes back meanwhile.
    """

    id: str
    code: str
    blocks: Blocks
    cause: str
    since: int
    again: int
    batch: str | None = None
    device: str | None = None
    acknowledged: str = ""
    gone: int | None = None


KEYS_KEPT = 256
"""Idempotency keys remembered, newest last."""
SEALS_KEPT = 64
"""Certificates remembered, newest last: each is good for one batch."""


@dataclass(frozen=True)
class TableState:
    """`seq` is the number of the last fact applied; it equals the journal's.

    `day` is the gaming day, `inspected` the day on which each device was last found in order (R-42),
    `empty` are devices confirmed empty, `first_to_look` who of two people saw one empty. `played` is what
    it was opened for, `manual` that it was opened without its shuffler. `dry_in` is the phase in which the
    shoe ran out, while its rack is shuffled (R-35). `no_reader`: dealt without the reader (R-36a).
    `hour`, `day` and `local` are those of the last `inputs.Hour`; `set_back`: hours the clock went back in
    this start of the daemon, and did not come forward again.
    `settlement` is how the last round ended, if hands were followed. `burning`: the dealer told in this phase
    that a card is burned, and a shoe that counts is still to tell it.
    """

    seq: int = 0
    boot: str = ""
    booted_at: int = 0
    phase: Phase = Phase.CLOSED
    batches: Mapping[str, Batch] = field(default_factory=dict)
    shuffler: Shuffler = Shuffler()
    shoe: Shoe = Shoe()
    round: Round | None = None
    rounds: int = 0
    last_boxes: tuple[int, ...] = ()
    cutter: str | None = None
    declined: tuple[str, ...] = ()
    devices: Mapping[str, Device] = field(default_factory=dict)
    pending: Mapping[str, Pending] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    keys: Mapping[str, int] = field(default_factory=dict)
    day: str = ""
    hour: int = 0
    local: str = ""
    inspected: Mapping[str, str] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    first_to_look: Mapping[str, str] = field(default_factory=dict)
    played: str = ""
    manual: bool = False
    ending: Ending = Ending.SWAP
    dry_in: Phase | None = None
    no_reader: bool = False
    seals: tuple[str, ...] = ()
    set_back: int = 0
    settlement: Mapping[str, Any] | None = None
    burning: bool = False

    def batch_at(self, place: Place) -> str | None:
        """The id of the one batch that has cards at `place`, if any."""
        return next((b.id for b in self.batches.values() if b.at(place)), None)

    @property
    def batch_in_use(self) -> Batch:
        """The batch in the shoe, or in the dealer's hand: asked for only while there is one."""
        assert self.shoe.batch is not None
        return self.batches[self.shoe.batch]

    @property
    def uncertain(self) -> bool:
        """Whether cards may have left this shoe unseen, so that nobody can say which card lies where."""
        return any(f.code in UNCERTAIN and f.again >= self.shoe.first_fact for f in self.faults)

    @property
    def unfit_inside(self) -> bool:
        """Whether the batch in the shuffler is out of play: it may come out unshuffled."""
        return self.shuffler.batch is not None and self.batches[self.shuffler.batch].unfit is not None

    @property
    def taken(self) -> str | None:
        """The id of the shuffled batch in hand, not yet in the shoe.

        Of two it is the one shuffled by hand, which is to be cut, or else the one whose turn it may be.
        """
        proofs = {b.id: b.proof for b in self.batches.values() if b.proof and b.at(Place.IN_HAND)}
        by_hand = [batch for batch, proof in proofs.items() if proof.how is Shuffled.HAND]
        held = by_hand or list(proofs)
        return next((batch for batch in held if batch != self.shoe.last_batch), held[0] if held else None)

    def device(self, device: str) -> Device:
        """What is known of a device, also of one never seen."""
        return self.devices.get(device) or Device()

    def silent(self, device: str | None) -> bool:
        """Whether a device that this table has does not answer."""
        return device is not None and not self.device(device).up


def initial(rules: TableRules, seq: int = 0) -> TableState:
    """A table that was never opened: no card is in anyone's custody yet."""
    return TableState(seq=seq, batches={b.id: Batch(b.id) for b in rules.batches})
