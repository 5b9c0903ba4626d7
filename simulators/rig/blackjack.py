"""A round of blackjack as the simulated dealer and players play it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from simulators.rig.acts import BETS_S, SETTLE_S, Acts
from simulators.rig.steps import Count, Pause, Script, Step, Tap

WAGERS_TOO = 0.4
"""How often a player wagers on the first cards as well."""


POINTS = {str(n): n for n in range(2, 10)} | dict.fromkeys("TJQK", 10) | {"A": 1, "X": 0}
"""What a card counts; a joker has no place here and counts nothing."""


def total(faces: Sequence[str]) -> tuple[int, bool]:
    """The best count of a hand and whether an ace counts eleven in it."""
    points = sum(POINTS[face[0]] for face in faces)
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


class Blackjack(Acts):
    """Acts of a table where blackjack is played."""

    def rounds(self) -> Script:
        """All rounds of a shoe. Without a cutting card it is dealt out, again and again, for a night."""
        rules, shoe = self.felt.rules, self.felt.shoe
        while self.view.phase == "between_rounds":
            last = rules.night and not rules.cutting_card and len(self.view.batches) >= self.shoes
            if shoe.empty:
                yield Tap("shuffle_now")
            elif last and len(shoe) < 5 * rules.boxes:
                yield Tap("close")
            else:
                yield from self.round()

    def round(self) -> Script:
        """S2, and S3 when the cutting card comes out in it."""
        rules = self.felt.rules
        enough = rules.boxes if rules.night else max(1, rules.least_behind_cutting_card // 4 - 1)
        players = self.players.randint(1, min(rules.boxes, enough))
        boxes = sorted(self.players.sample(range(1, rules.boxes + 1), players))
        yield Pause(BETS_S)
        wagered = [n for n in boxes if rules.match is not None and self.wagers.random() < WAGERS_TOO]
        match = {"match": ",".join(map(str, wagered))} if wagered else {}
        yield Tap("bets_closed", {"boxes": ",".join(map(str, boxes)), **match})
        self.last_boxes = boxes
        self.felt.referee.round_begins()
        if self.view.phase == "round_burn":
            yield from self.burn()
        hands: dict[str, list[str]] = {f"box {n}": [] for n in boxes}
        mine: list[str] = []
        for place in (*hands, "dealer", *hands):
            face = yield from self.draw(place)
            if face is None:
                self.felt.referee.round_over()
                return
            hands.get(place, mine).append(face)
        if self.view.phase == "side_wagers":
            yield Pause(SETTLE_S)
            yield Tap("side_wagers_settled")
            self.compare_matches({n: hands[f"box {n}"] for n in wagered}, mine[0])
        hole = yield from self.draw("dealer")
        natural = yield from self.look(mine[0], hole or "")
        yield from self.dealt()
        for place, hand in hands.items():
            if not natural:
                yield from self.player(place, hand, mine[0])
        mine.append(hole or "")
        all_bust = all(total(hand)[0] > 21 for hand in hands.values())
        yield from self.own_hand(mine, all_bust=all_bust)
        for _ in range(1, rules.dealer_hands):
            yield Tap("dealer_hand_settled")
            again = [mine[0], (yield from self.must_draw("dealer"))]  # each begins with the first card
            yield from self.own_hand(again, all_bust=all_bust)
        yield Pause(SETTLE_S)
        yield Tap("round_settled", {"cards": self.felt.laid()} if rules.by_eye else {})
        self.felt.pick_up()
        yield Count()

    def compare_matches(self, wagered: Mapping[int, Sequence[str]], up: str) -> None:
        """What the table told of match-the-dealer, by the cards that lie there; a card not read is no lie."""
        terms = self.felt.rules.match
        if terms is None:
            return
        true = {
            n: [terms.same_suit if face == up else terms.other_suit for face in own if face[0] == up[0]]
            for n, own in wagered.items()
        }
        told = [(row["box"], row.get("pays", [])) for row in self.view.matched if row["outcome"] != "unknown"]
        lies = [box for box, pays in told if pays != true.get(box)]
        late = [pays != [] for _, pays in told] != sorted(pays != [] for _, pays in told)
        if lies or late or {row["box"] for row in self.view.matched} != set(wagered):
            self.felt.referee.violation("side wagers", f"told {told}, by the cards {true}")

    def dealt(self) -> Script:
        """What is done once the initial deal is finished."""
        yield from ()

    def look(self, up: str, hole: str) -> Generator[Step, None, bool]:
        """R-25: with an ace or ten up, whether the dealer has a natural, as far as anybody may look.

        A reader tells; at a casino night the dealer looks at the card himself (13:47-20.22(g)8).
        """
        rules = self.felt.rules
        if up[0] not in "ATJQK":
            return False
        if rules.reader is None:
            return rules.night and self.decide(total([up, hole])[0] == 21)
        natural = self.felt.look()
        yield None
        return natural

    def player(self, place: str, hand: list[str], up: str) -> Script:
        while self.decide(total(hand)[0] != 21 and player_draws(hand, up)):
            hand.append((yield from self.must_draw(place)))

    def own_hand(self, hand: list[str], *, all_bust: bool) -> Script:
        while self.decide(not all_bust and dealer_draws(hand)):
            hand.append((yield from self.must_draw("dealer")))
