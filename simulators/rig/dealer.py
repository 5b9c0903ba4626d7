"""The simulated dealer and players: a step machine over the facts, with hands on the felt.

Lock-step: the next act comes only when every fact of the last one is journaled and no command is pending.
People do not forget when the daemon restarts: a tap in flight is sent again under the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from devices.events import Sense
from simulators.models.cards import Card, CuttingCard
from simulators.rig.felt import Felt
from simulators.rig.referee import BURN, STUB, custody_of
from simulators.rig.view import View

CARD_S = 1.2
BETS_S = 12.0
SETTLE_S = 6.0
PREPARE_S = 8.0
"""Seconds that a card, the bets, a settlement, and each step of preparing a batch take."""
TRIES = 8
REFUSES_CUT = 0.15

_RETRY = frozenset({"device_absent", "shuffler_busy", "stopping"})
"""Refusals that only mean: not yet."""
_FIRST = {"fault_latched": "clear", "inspection_due": "inspect"}
"""Refusals that name what mends them: the event among `expected` that comes first."""
PREPARATION = ("inspect", "verify", "spread", "player_inspected", "wash")
"""What is done to each batch before its first shuffle (R-13)."""


@dataclass(frozen=True, slots=True)
class Tap:
    event: str
    args: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Tap:
        """A tap as `expected` and `cutcard do` write it."""
        event, *pairs = text.split()
        return cls(event, dict(pair.split("=", 1) for pair in pairs))


@dataclass(frozen=True, slots=True)
class Until:
    """Wait for what no tap can bring."""

    ready: Callable[[], bool]
    what: str


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Count:
    """A quiet point: the controller's custody must equal the cards on the felt."""


Step = Tap | Until | Pause | Count | None
"""None only waits until everything is journaled."""
Script = Generator[Step, None, None]


class Stuck(Exception):
    """The dealer cannot go on; the text says where and why."""


def total(faces: Sequence[str]) -> tuple[int, bool]:
    """The best count of a hand and whether an ace counts eleven in it."""
    points = sum(10 if face[0] in "TJQK" else 1 if face[0] == "A" else int(face[0]) for face in faces)
    soft = points <= 11 and any(face[0] == "A" for face in faces)
    return (points + 10 if soft else points), soft


def player_draws(faces: Sequence[str], up: str) -> bool:
    """Simple strategy: stand on 17, on soft 18, and on 12 against a weak dealer."""
    points, soft = total(faces)
    if soft:
        return points < 18
    weak = up[0] in "23456"
    return points < (12 if weak else 17)


def dealer_draws(faces: Sequence[str]) -> bool:
    """The dealer draws to 17 and stands on all 17s."""
    return total(faces)[0] < 17


class Dealer:
    """Plays `shoes` shoes. `draws` (the dealer's own draws round by round) overrides what the hole says.

    `unhurried` false saves time by resting once a round instead of after each card.
    """

    def __init__(
        self,
        felt: Felt,
        view: View,
        seed: object,
        shoes: int,
        *,
        draws: Sequence[int] | None = None,
        unhurried: bool = False,
    ) -> None:
        self.felt, self.view, self.shoes = felt, view, shoes
        self.done = False
        self.draws: list[int] = []
        self._script_draws = draws
        self._seed = seed
        self._random = Random(f"{seed}/dealer")
        self._players = Random(f"{seed}/players")
        self._unhurried = unhurried
        self._owed = 0.0
        self._taps = 0
        self._sent_at = 0
        self._in_flight: dict[str, Any] | None = None
        self._queued: list[Tap] = []
        self._retry: tuple[int, Tap] | None = None
        self._tries = 0
        self._step: Step = None
        self._wake: float | None = None
        self._last_boxes: list[int] = []
        self._script = self._play()

    # The step machine

    @property
    def quiet(self) -> bool:
        """Everything that happened is journaled: simulated time may pass."""
        return self._in_flight is None and self._retry is None and self.settled()

    @property
    def wake(self) -> float | None:
        """When the dealer goes on by himself."""
        return self._wake

    def settled(self) -> bool:
        """Every event of the machines is a fact, and no command is pending."""
        view, newest = self.view, self.felt.newest()
        return not view.pending and view.seen == newest and len(view.up) == len(newest)

    def turn(self, now: float) -> list[dict[str, Any]]:
        """Go on as far as the facts allow; requests to send, each with its key."""
        requests: list[dict[str, Any]] = []
        while not self.done and not requests and self._may_go_on(now):
            self._wake = None
            if self._queued:
                requests.append(self._request(self._queued.pop(0)))
                continue
            try:
                self._step = next(self._script)
            except StopIteration:
                self.done = True
                break
            if isinstance(self._step, Tap):
                self._tries = 0
                requests.append(self._request(self._step))
            elif isinstance(self._step, Count):
                self._in_flight = {"get": "status"}
                requests.append(self._in_flight)
            elif isinstance(self._step, Pause):
                self._owed += self._step.seconds
                if self._owed and (self._unhurried or self._step.seconds >= SETTLE_S):
                    self._wake, self._owed = now + self._owed, 0.0
        return requests

    def answered(self, answer: Mapping[str, Any]) -> None:
        """The daemon answered the tap in flight. Raises Stuck for a refusal that no patience mends."""
        request, self._in_flight = self._in_flight, None
        if request is None or answer.get("id") != request.get("id"):
            raise Stuck(f"an answer nobody waited for: {answer}")
        if "get" in request:
            self.felt.referee.check(custody_of(answer["status"]))
            return
        if answer["ok"]:
            return
        tap = Tap(request["do"], {k: v for k, v in request.items() if k not in ("do", "id")})
        self._tries += 1
        mends = _FIRST.get(answer["refused"])
        first = [Tap.of(text) for text in answer.get("expected", ()) if text.split()[0] == mends]
        if self._tries > TRIES:
            raise Stuck(f"{tap.event} was refused {TRIES} times: {answer}")
        if first:
            self._queued = [*first, tap]
        elif answer["refused"] in _RETRY:
            self._retry = (self._sent_at, tap)
        else:
            raise Stuck(f"{tap.event} {dict(tap.args)} was refused: {answer}")

    def reconnected(self) -> dict[str, Any] | None:
        """The tap in flight when the daemon went away, to be sent again under its key."""
        return self._in_flight

    def _request(self, tap: Tap) -> dict[str, Any]:
        self._taps += 1
        self._in_flight = {"do": tap.event, "id": f"{self._seed}/{self._taps}", **tap.args}
        self._sent_at = self.view.seq
        return self._in_flight

    def _may_go_on(self, now: float) -> bool:
        if self._in_flight is not None:
            return False
        if self._retry is not None:
            since, tap = self._retry
            if self.view.seq <= since or not self.settled():
                return False
            self._retry, self._queued = None, [tap]
        if not self.settled():
            return False
        if isinstance(self._step, Until) and not self._step.ready():
            return False
        return self._wake is None or now >= self._wake

    @property
    def doing(self) -> str:
        """What is waited for, for people."""
        if self._in_flight is not None:
            return f"an answer to {self._in_flight}"
        if not self.settled():
            missing = {k: v for k, v in self.felt.newest().items() if self.view.seen.get(k) != v}
            return f"facts of {missing or self.view.pending or 'devices that are not up'}"
        return self._step.what if isinstance(self._step, Until) else "the next act"

    # What is played

    def _play(self) -> Script:
        rules = self.felt.rules
        first, second = (batch.id for batch in rules.batches)
        yield from self._open(first, second)
        batch = first
        for number in range(1, self.shoes + 1):
            yield from self._cut_and_load(batch)
            while self.view.phase == "between_rounds":
                yield from self._round()
            yield from self._end_of_shoe(batch)
            if number < self.shoes:
                other = second if batch == first else first
                yield from self._swap(taken=other, loaded=batch)
                batch = other
        yield from self._close(second if batch == first else first)

    def _open(self, first: str, second: str) -> Script:
        """S1: the devices inspected; each batch prepared and washed; then A shuffled, B after it."""
        for device in self.felt.wires:
            yield Tap("inspect", {"device": device})
        yield Tap("open")
        for batch in (first, second):
            for event in PREPARATION:
                yield Tap(event, {"batch": batch})
                yield Pause(PREPARE_S)
            self.felt.wash(batch)
        yield Tap("load_shuffler", {"batch": first})
        self.felt.load_shuffler(first)
        yield from self._shuffle()
        yield from self._swap(taken=first, loaded=second)

    def _shuffle(self) -> Script:
        for _ in range(TRIES):
            yield Tap("start_shuffle")
            yield Until(lambda: self.view.cycle in ("running", "proved", "none"), "the cycle to start")
            if self.view.cycle != "none":
                return
        raise Stuck("the shuffler did not start its cycle")

    def _swap(self, *, taken: str, loaded: str) -> Script:
        """S4: take the shuffled batch out, put the other in and see its cycle start."""
        yield from self._take_out(taken)
        yield Tap("load_shuffler", {"batch": loaded})
        self.felt.load_shuffler(loaded)
        yield from self._shuffle()
        yield Pause(PREPARE_S)

    def _take_out(self, taken: str) -> Script:
        """Wait for the proof of the batch in the shuffler, and take it out."""
        yield Until(lambda: self.view.cycle == "proved", f"the shuffle of batch {taken}")
        for _ in range(TRIES):
            yield Tap("take_from_shuffler")
            yield None
            if self.view.taken == taken:
                break
        else:
            raise Stuck(f"the shuffler did not let batch {taken} out")
        self.felt.take_tray(taken)

    def _close(self, stored: str) -> Script:
        """S10: all cards in hand, each batch counted, every device found empty."""
        yield Tap("close")
        yield from self._take_out(stored)
        for batch, pile in self.felt.piles.items():
            yield Tap("count_batch", {"batch": batch, "cards": len(pile)})
        yield Count()
        for device in self.felt.wires:
            yield Tap("confirm_empty", {"device": device})
        yield Tap("close")

    def _cut_and_load(self, batch: str) -> Script:
        size, least = self.felt.rules.batch_size, self.felt.rules.least_behind_cutting_card
        yield from self._offer_cut()
        position = self._players.randint(10, size - 10)
        yield Tap("cut", {"position": position})
        self.felt.cut(batch, position)
        behind = least + self._random.randint(0, max(1, size // 30))
        yield Tap("insert_cutting_card", {"position": behind})
        self.felt.insert_cutting_card(batch, behind)
        yield Pause(PREPARE_S)
        yield Tap("load_shoe", {"batch": batch})
        self.felt.load_shoe(batch)
        yield Tap("burn")
        yield from self._draw(BURN)
        yield Count()

    def _offer_cut(self) -> Script:
        """R-17: the first to arrive; later whose box had the cutting card, else farthest right, clockwise."""
        if len(self.view.batches) == 0:
            yield Tap("offer_cut", {"box": self._players.randint(1, self.felt.rules.boxes)})
            return
        seats = sorted(self._last_boxes)
        at = self.view.cut_at or "dealer"
        number = seats[-1] if at == "dealer" else int(at.removeprefix("box "))
        turn = seats.index(number)
        for seat in seats[turn:] + seats[:turn]:
            if self._players.random() >= REFUSES_CUT:
                yield Tap("offer_cut", {"box": seat})
                return
            yield Tap("offer_cut", {"box": seat, "refused": True})
        yield Tap("offer_cut", {"box": "dealer"})

    def _round(self) -> Script:
        """S2, and S3 when the cutting card comes out in it."""
        rules = self.felt.rules
        most = max(1, min(rules.boxes, rules.least_behind_cutting_card // 4 - 1))
        boxes = sorted(self._players.sample(range(1, rules.boxes + 1), self._players.randint(1, most)))
        yield Pause(BETS_S)
        yield Tap("bets_closed", {"boxes": ",".join(map(str, boxes))})
        self._last_boxes = boxes
        self.felt.referee.round_begins()
        hands: dict[str, list[str]] = {f"box {n}": [] for n in boxes}
        mine: list[str] = []
        for place in (*hands, "dealer", *hands):
            face = yield from self._draw(place)
            if face is None:
                self.felt.referee.round_over()
                return
            hands.get(place, mine).append(face)
        if self.view.phase == "side_wagers":
            yield Pause(SETTLE_S)
            yield Tap("side_wagers_settled")
        hole = yield from self._draw("dealer")
        natural = yield from self._look(mine[0])
        for place, hand in hands.items():
            while not natural and total(hand)[0] != 21 and player_draws(hand, mine[0]):
                hand.append((yield from self._must_draw(place)))
        mine.append(hole or "")
        yield from self._own_hand(mine, all_bust=all(total(hand)[0] > 21 for hand in hands.values()))
        yield Pause(SETTLE_S)
        yield Tap("round_settled")
        self.felt.pick_up()
        yield Count()

    def _look(self, up: str) -> Generator[Step, None, bool]:
        """R-25: with an ace or ten up, whether the reader tells that the dealer has a natural."""
        if self.felt.rules.reader is None or up[0] not in "ATJQK":
            return False
        natural = self.felt.look()
        yield None
        return natural

    def _own_hand(self, hand: list[str], *, all_bust: bool) -> Script:
        before = len(hand)
        if self._script_draws is not None:
            for _ in range(self._script_draws[len(self.draws)]):
                hand.append((yield from self._must_draw("dealer")))  # noqa: PERF401 - each waits for its fact
        elif not all_bust:
            while dealer_draws(hand):
                hand.append((yield from self._must_draw("dealer")))
        self.draws.append(len(hand) - before)

    def _end_of_shoe(self, batch: str) -> Script:
        """S4: the rest goes through the shoe to the rack, faces down; then the whole batch is collected."""
        while not self.felt.shoe.empty:
            yield from self._draw(STUB)
        yield Pause(PREPARE_S)
        rack = {"gauge": self.felt.rack.gauge(self.felt.rules.batch_size)}
        looked = {"other_backs": self.felt.other_backs(batch)}
        yield Tap("collect_rack", rack if Sense.BACK in self.felt.rules.shoe_senses else rack | looked)
        yield Count()
        self.felt.empty_rack(batch)

    def _must_draw(self, place: str) -> Generator[Step, None, str]:
        face = yield from self._draw(place)
        if face is None:
            raise Stuck("the shoe ended in the middle of a round")
        return face

    def _draw(self, place: str) -> Generator[Step, None, str | None]:
        """One card to `place`; its face, or None when none comes. The cutting card is set aside."""
        while True:
            item = self.felt.draw(place)
            yield None
            if isinstance(item, CuttingCard) and place != STUB:
                yield from self._say_where(place)
                if self.view.phase == "shoe_end":
                    return None
                continue
            if isinstance(item, Card):
                yield Pause(CARD_S)
                return self.view.last_card or item.face
            return None

    def _say_where(self, place: str) -> Script:
        """In a hand after the initial deal only the dealer knows where the cutting card came out.

        That it came out at all he says where the shoe does not sense it.
        """
        sensed = Sense.CUT_CARD in self.felt.rules.shoe_senses
        if not sensed or (self.view.phase == "playing" and self.view.cut_at is None):
            box = {} if place == BURN else {"box": place.removeprefix("box ")}
            yield Tap("cutting_card_at", box)
