"""What a dealer and the players do at any table, each act a script; a mode puts them together."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from random import Random

from controller.table.phases import IN_ROUND
from devices.events import Sense
from simulators.models.cards import Card, CuttingCard
from simulators.rig.felt import Felt
from simulators.rig.referee import ASIDE, BURN, STUB
from simulators.rig.steps import Count, Pause, Script, Step, Stuck, Tap, Until
from simulators.rig.view import View

CARD_S = 1.2
BETS_S = 12.0
SETTLE_S = 6.0
PREPARE_S = 8.0
"""Seconds that a card, the bets, a settlement, and each step of preparing a batch take."""
TRIES = 8
REFUSES_CUT = 0.15
PREPARATION = ("inspect", "verify", "spread", "player_inspected", "wash")
"""What is done to each batch before its first shuffle (R-13)."""


class Acts:
    """One dealer at one table; `play` is the script of a mode.

    `decisions` is what people decided by the cards that they saw; `made` overrides it, whatever they see.
    """

    def __init__(
        self, felt: Felt, view: View, seed: object, shoes: int, made: Sequence[bool] | None = None
    ) -> None:
        self.felt, self.view, self.shoes = felt, view, shoes
        self.decisions: list[bool] = []
        self.made = made
        self.random = Random(f"{seed}/dealer")
        self.players = Random(f"{seed}/players")
        self.wagers = Random(f"{seed}/wagers")
        self.last_boxes: list[int] = []

    def play(self) -> Script:
        """Everything from opening to closing."""
        raise NotImplementedError

    def round(self) -> Script:
        """One round, from the bets to the cards picked up."""
        raise NotImplementedError

    def decide(self, wanted: bool) -> bool:
        """Whether somebody does something that his cards may call for."""
        made = wanted if self.made is None else self.made[len(self.decisions)]
        self.decisions.append(made)
        return made

    # Devices and batches

    def inspect_devices(self) -> Script:
        """Each device is inspected before the table opens (R-42)."""
        for device in self.felt.wires:
            yield Tap("inspect", {"device": device})

    def prepare(self, batch: str) -> Script:
        """S1: a fresh batch is inspected, spread and washed."""
        for event in PREPARATION:
            yield Tap(event, {"batch": batch})
            yield Pause(PREPARE_S)
        self.felt.wash(batch)

    def load_shuffler(self, batch: str) -> Script:
        """Put the batch in and see its cycle start."""
        yield Tap("load_shuffler", {"batch": batch})
        self.felt.load_shuffler(batch)
        yield from self.shuffle()

    def shuffle(self) -> Script:
        for _ in range(TRIES):
            yield Tap("start_shuffle")
            yield Until(lambda: self.view.cycle in ("running", "proved", "none"), "the cycle to start")
            if self.view.cycle != "none":
                return
        raise Stuck("the shuffler did not start its cycle")

    def take_out(self, taken: str) -> Script:
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

    def count_and_close(self) -> Script:
        """S10: all cards in hand, each batch counted, every device found empty."""
        for batch, pile in self.felt.piles.items():
            yield Tap("count_batch", {"batch": batch, "cards": len(pile)})
        yield Count()
        for device in self.felt.wires:
            yield Tap("confirm_empty", {"device": device})
        yield Tap("close")

    # The cut and the shoe

    def cut_batch(self, batch: str) -> Script:
        """R-15, R-16: whoever accepts cuts; then the cutting card, where one is in use."""
        rules = self.felt.rules
        yield from self.offer_cut()
        position = self.players.randint(10, rules.batch_size - 10)
        yield Tap("cut", {"position": position})
        self.felt.cut(batch, position)
        if rules.cutting_card:
            extra = self.random.randint(0, max(1, rules.batch_size // 30))
            behind = (rules.least_behind_cutting_card or rules.batch_size // 4) + extra
            yield Tap("insert_cutting_card", {"position": behind})
            self.felt.insert_cutting_card(batch, behind)
        if rules.mode == "hand-dealt":
            self.felt.cover(batch)
        yield Pause(PREPARE_S)

    def load_shoe(self, batch: str) -> Script:
        """The cut batch goes into the shoe, or the dealer's hand; its first card is burned where one is."""
        yield Tap(self.load_tap, {"batch": batch})
        self.felt.load_shoe(batch)
        if self.view.phase == "burn_due":
            yield from self.burn()
        yield Count()

    @property
    def load_tap(self) -> str:
        return "take_in_hand" if self.felt.rules.by_eye else "load_shoe"

    def burn(self) -> Script:
        if self.felt.rules.by_eye or self.view.phase != "reshuffle_burn":
            yield Tap("burn")
        yield from self.draw(BURN)

    def offer_cut(self) -> Script:
        """R-17: the first to arrive; later whose box had the cutting card, else farthest right, clockwise."""
        if len(self.view.batches) == 0:
            yield Tap("offer_cut", {"box": self.players.randint(1, self.felt.rules.boxes)})
            return
        seats = sorted(self.last_boxes)
        at = self.view.cut_at or "dealer"
        number = seats[-1] if at == "dealer" else int(at.removeprefix("box "))
        turn = seats.index(number)
        for seat in seats[turn:] + seats[:turn]:
            if self.players.random() >= REFUSES_CUT:
                yield Tap("offer_cut", {"box": seat})
                return
            yield Tap("offer_cut", {"box": seat, "refused": True})
        yield Tap("offer_cut", {"box": "dealer"})

    def end_of_shoe(self, batch: str) -> Script:
        """S4: the rest goes through the shoe to the rack, faces down; then the whole batch is collected."""
        while not self.felt.shoe.empty:
            yield from self.draw(STUB)
        yield Pause(PREPARE_S)
        rack = {"gauge": self.felt.rack.gauge(self.felt.rules.batch_size)}
        looked = {"other_backs": self.felt.other_backs(batch)}
        yield Tap("collect_rack", rack if Sense.BACK in self.felt.rules.shoe_senses else rack | looked)
        yield Count()
        self.felt.empty_rack(batch)

    # Cards

    def reshuffle_in_round(self) -> Script:
        """R-35: nothing is left to deal; the rack is shuffled by hand and cut, and the same round goes on."""
        batch = self.view.batches[-1]
        self.felt.lift_rack(batch)
        cards = len(self.felt.piles[batch])
        counted = {"cards": cards} if self.felt.rules.by_eye else {}
        yield Tap("reshuffle_by_hand", {"batch": batch, **counted})
        self.felt.shuffle(batch)
        least = min(10, cards // 2)
        position = self.players.randint(least, cards - least)
        yield Tap("cut", {"position": position})
        self.felt.cut(batch, position)
        yield Pause(PREPARE_S)
        yield Tap(self.load_tap, {"batch": batch})
        self.felt.load_shoe(batch, again=True)
        if self.view.phase == "reshuffle_burn":
            yield from self.burn()

    def must_draw(self, place: str) -> Generator[Step, None, str]:
        face = yield from self.draw(place)
        if face is None:
            raise Stuck("the shoe ended in the middle of a round")
        return face

    def draw(self, place: str) -> Generator[Step, None, str | None]:
        """One card to `place`; its face, or None when none comes. The cutting card is set aside."""
        while True:
            if self.felt.shoe.empty and self.view.phase in IN_ROUND:
                yield from self.reshuffle_in_round()
            if self.felt.early and place not in ASIDE:
                return self.felt.use_early(place).face
            if self.felt.shoe.locked:
                yield Until(lambda: not self.felt.shoe.locked, "the shoe to be unlocked")
            item = self.felt.draw(place)
            yield None
            if self.felt.face_up:
                yield from self.say_face_up()
                continue
            if isinstance(item, CuttingCard) and place != STUB:
                yield from self.say_where(place)
                if self.view.phase == "shoe_end":
                    return None
                continue
            if isinstance(item, Card):
                yield Pause(CARD_S)
                return item.face
            return None

    def say_face_up(self) -> Script:
        """R-31: where no shoe tells that a card lay face up in it, the dealer does."""
        if self.felt.rules.by_eye:
            yield Tap("card_face_up")
        elif not self.felt.rules.shoe_senses and self.view.phase in IN_ROUND:
            yield Tap("drawn_in_error", {"exposed": True, "burned": True})

    def say_where(self, place: str) -> Script:
        """In a hand after the initial deal only the dealer knows where the cutting card came out.

        That it came out at all he says where the shoe does not sense it.
        """
        sensed = Sense.CUT_CARD in self.felt.rules.shoe_senses
        after_deal = self.view.phase in ("playing", "round_burn") and self.view.cut_at is None
        if not sensed or after_deal:
            if place == BURN and self.view.phase in IN_ROUND:
                place = f"box {self.last_boxes[0]}"
            box = {} if place == BURN else {"box": place.removeprefix("box ")}
            yield Tap("cutting_card_at", box)
