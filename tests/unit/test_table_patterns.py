"""Orders that no shuffle gives (INC-2, INC-3, INC-4, INC-7), and cycles that took too little time (R-75)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from controller.table import patterns
from controller.table.draft import Decision
from controller.table.inputs import Role
from controller.table.patterns import UNSEEN, found, grown
from controller.table.phases import Phase
from devices import events as ev
from devices.events import DECK, RANKS, SUITS
from firmware_bridge.link import Done, Unknown
from tests.support.table import SETTINGS, Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})

AS_SOLD = {
    "ace to king, four times": [r + s for s in "SDCH" for r in RANKS],
    "up, up, down, down": [r + s for s in "SDCH" for r in (RANKS if s in "SD" else RANKS[::-1])],
    "king to ace, four times": [r + s for s in "HCDS" for r in RANKS[::-1]],
}  # fmt: skip


def seats(boxes: int, random: Random) -> Iterator[bool]:
    """Whether everybody sees the next card: a burn, then rounds in which the hole card stays down."""
    yield False
    while True:
        yield from (True,) * (2 * boxes + 1)
        yield False
        yield from (True,) * random.randint(0, boxes + 2)


def dealt(cards: list[str], boxes: int, random: Random) -> list[str]:
    return [card if seen else UNSEEN for card, seen in zip(cards, seats(boxes, random), strict=False)]


def first_alarm(cards: list[str], earlier: tuple[str, ...] = ()) -> tuple[int | None, str | None]:
    """The number of cards drawn when the alarm came, and its words."""
    order = ""
    for number, card in enumerate(cards, 1):
        order = grown(order, None if card == UNSEEN else card)
        why = found(order, earlier)
        if why:
            return number, why
    return None, None


def shuffled(decks: int, random: Random) -> list[str]:
    cards = list(DECK) * decks
    random.shuffle(cards)
    return cards


@pytest.mark.parametrize("brand", list(AS_SOLD))
@pytest.mark.parametrize("boxes", [1, 3, 5, 7])
@pytest.mark.rule("R-75")
def test_inc_4_eight_decks_as_sold_are_found_before_the_order_repeats(brand: str, boxes: int) -> None:
    random, batch = Random(f"{brand} {boxes}"), AS_SOLD[brand] * 8
    for position in range(10, 10 + 52):
        cards = dealt(batch[position:] + batch[:position], boxes, random)
        number, why = first_alarm(cards)
        assert number is not None
        assert number <= (21 if boxes > 1 else 25), "within the first round or two"
        assert why == "6 cards came in the order of a new deck"


def put(table: Table, cards: list[str]) -> None:
    """The burn is out; this is the order of the cards left in the shoe."""
    table.stack = cards[1:][::-1]


@pytest.mark.rule("R-75", "R-74")
def test_inc_4_at_the_table_the_round_ends_and_no_other_begins() -> None:
    t = Table(table_rules(decks=8))
    t.open_to_shoe()
    cards = AS_SOLD["up, up, down, down"] * 8
    put(t, cards[200:] + cards[:200])
    t.play_round("1,2,3,4,5")
    assert t.codes == ["order_pattern"]
    (fault,) = [f for f in t.state.faults if f.code == "order_pattern"]
    assert (fault.batch, fault.cause) == ("A", "6 cards came in the order of a new deck")
    refused = t.refused("bets_closed", boxes="1,2,3,4,5")
    assert refused.code == "fault_latched"
    assert "end the shoe" in refused.why
    t.refused("clear", SUPERVISOR, fault=fault.id)
    t.tap("shuffle_now")
    t.end_shoe()
    t.tap("clear", SUPERVISOR, fault=fault.id)
    assert "order_pattern" not in t.codes


def sorted_batch(decks: int, *, by_suit: bool) -> list[str]:
    suits = [r + s for s in SUITS for r in RANKS for _ in range(decks)]
    return suits if by_suit else sorted(suits, key=lambda card: RANKS.index(card[0]))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("by_suit", [True, False])
@pytest.mark.parametrize("decks", [1, 2, 6, 8])
@pytest.mark.rule("R-76")
def test_inc_7_a_sorted_batch_is_found_wherever_it_is_cut(decks: int, by_suit: bool, turned: bool) -> None:
    random, batch = Random(f"{decks}{by_suit}{turned}"), sorted_batch(decks, by_suit=by_suit)
    batch = batch[::-1] if turned else batch
    for position in range(10, 52 * decks - 10, 7):
        cards = dealt(batch[position:] + batch[:position], 3, random)
        number, why = first_alarm(cards)
        assert number is not None
        assert number <= 30, (position, why)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("decks", [1, 2, 6, 8])
@pytest.mark.rule("R-75")
def test_inc_2_3_discards_dealt_again_without_a_shuffle_are_found(decks: int, turned: bool) -> None:
    """One of the last two shoes of the batch, as it was seen then, cut anywhere and dealt in other rounds."""
    for seed in range(40):
        random = Random(f"{decks} {turned} {seed}")
        batch = shuffled(decks, random)
        old = "".join(dealt(batch, 3, random))
        again = batch[::-1] if turned else batch
        position = random.randrange(10, len(batch) - 10)
        cards = dealt(again[position:] + again[:position], random.choice((1, 3, 5, 7)), random)
        other = "".join(dealt(shuffled(decks, random), 5, random))
        for earlier in ((old, other), (other, old)):
            number, why = first_alarm(cards, earlier)
            assert why == "7 cards came in the order of an earlier shoe of the batch"
            assert number is not None
            assert number <= 20


def played(cards: list[str], boxes: int, random: Random) -> tuple[str, list[str]]:
    """What everybody saw of a shoe, and its rack: each round picked up hand by hand, the stub on top."""
    rest = iter(cards)
    order, rack, left = UNSEEN, [next(rest)], len(cards) - 1
    while left > len(cards) // 4:
        hands: list[list[str]] = [[] for _ in range(boxes + 1)]
        turns = [*hands, *hands]
        for hand in hands:
            turns += [hand] * random.choice((0, 0, 1, 1, 2))
        for number, hand in enumerate(turns, 1):
            hand.append(next(rest))
            order += UNSEEN if number == 2 * len(hands) else hand[-1]
        left -= len(turns)
        rack += [card for hand in hands for card in hand]
    return order + UNSEEN * left, [*rack, *rest]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("boxes", [3, 5, 7])
@pytest.mark.parametrize("decks", [6, 8])
@pytest.mark.rule("R-75")
def test_inc_2_3_a_rack_that_came_out_of_the_shuffler_as_it_went_in(
    decks: int, boxes: int, turned: bool
) -> None:
    """Hands were picked up one by one: hardly seven cards come as they came before, and it is found."""
    found_at = []
    for seed in range(10):
        random = Random(f"{decks} {boxes} {turned} {seed}")
        old, rack = played(shuffled(decks, random), boxes, random)
        rack = rack[::-1] if turned else rack
        position = random.randrange(10, len(rack) - 10)
        order, _ = played(rack[position:] + rack[:position], random.choice((3, 5, 7)), random)
        number, why = first_alarm(pairs(order), (old, ""))
        found_at.append(number)
        assert why in (
            "48 cards came that lay together in the rack after an earlier shoe of the batch",
            "7 cards came in the order of an earlier shoe of the batch",
        )
    assert sorted(found_at)[4] <= 150, "half of them within a third of the shoe"


@pytest.mark.rule("R-75")
def test_inc_2_3_at_the_table_the_next_shoe_of_the_batch_is_compared() -> None:
    t = Table(table_rules(decks=2))
    t.open_to_shoe()
    orders = {}
    for batch in ("A", "B"):
        orders[batch] = list(reversed(t.stack))
        for _ in range(6):
            t.play_round()
        t.tap("shuffle_now")
        t.end_shoe()
        assert [len(o) for o in t.state.batches[batch].orders] == [2 * 104]
        t.complete()
        t.swap_to(t.rules.other(batch))
    assert t.codes == []
    put(t, ["", *orders["A"][17:], *orders["A"][:17]])
    t.play_round()
    assert t.codes == ["order_pattern"]
    assert t.state.faults[0].cause == "7 cards came in the order of an earlier shoe of the batch"


def test_a_batch_remembers_two_shoes_and_no_unseen_card() -> None:
    t = Table(table_rules(decks=1))
    t.open_to_shoe()
    for _ in range(3):
        for batch in ("A", "B"):
            t.play_round()
            t.tap("shuffle_now")
            t.end_shoe()
            assert len(t.state.batches[batch].orders) <= patterns.ORDERS_KEPT
            t.complete()
            t.swap_to(t.rules.other(batch))
    # the burn, six cards and the up card, the hole card, two more; the stub is never seen
    seen = [[c != UNSEEN for c in pairs(o)] for o in t.state.batches["B"].orders]
    whole = [False, *[True] * 7, False, True, True, *[False] * 41]
    assert seen == [whole, whole]


def pairs(order: str) -> list[str]:
    return [order[i : i + 2] for i in range(0, len(order), 2)]


# --- what is no pattern ---


def test_the_same_order_once_more_within_the_shoe_is_found_and_a_palindrome_needs_two_whole_halves() -> None:
    random = Random("within")
    cards = shuffled(1, random)[:20]
    assert first_alarm([*cards, *cards])[0] == 27
    assert first_alarm([*cards, *cards[::-1]])[0] == 27
    short = cards[:6]
    assert first_alarm([*short, *short[::-1]]) == (None, None)


@pytest.mark.rule("R-63")
def test_nothing_is_concluded_from_an_unseen_card() -> None:
    """Law 7: five seen cards of a run and a sixth that stays down are no pattern, whatever lies there."""
    run = [r + "S" for r in "23456"]
    assert first_alarm([*run, UNSEEN]) == (None, None)
    assert first_alarm([*run, UNSEEN, "8S"]) == (7, "6 cards came in the order of a new deck")
    assert first_alarm([*run, UNSEEN, "7S"]) == (None, None), "not its place in a new deck"
    assert first_alarm([*run, *[UNSEEN] * 4, "JS"]) == (None, None), "too long unseen"
    assert grown("", "joker") == grown("", None) == UNSEEN


@pytest.mark.parametrize(("decks", "shoes"), [(1, 300), (2, 150), (6, 40), (8, 30)])
def test_fair_shuffles_raise_no_alarm(decks: int, shoes: int) -> None:
    random, earlier = Random(f"fair {decks}"), ("", "")
    for _ in range(shoes):
        cards = dealt(shuffled(decks, random), random.randint(1, 7), random)
        assert first_alarm(cards, earlier) == (None, None)
        earlier = (earlier[1], "".join(cards))


@pytest.mark.parametrize(
    ("name", "cards", "per_end"),
    [("NEW_DECK", 3, 2 / 52**2), ("SORTED_SUIT", 3, 2 / 26**2), ("SORTED_RANK", 4, 2 / 6.5**3)],
)
def test_the_odds_told_are_those_of_fair_shuffles(
    name: str, cards: int, per_end: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer cards that must agree, chance does about what the formula says."""
    for other in ("NEW_DECK", "SORTED_SUIT", "SORTED_RANK", "REPEAT", "RACK"):
        monkeypatch.setattr(patterns, other, cards if other == name else 99)
    random, ends, alarms = Random(name), 0, 0
    for _ in range(120):
        order = ""
        for card in shuffled(8, random):
            order += card
            ends += 1
            alarms += found(order) is not None
    assert 0.5 < alarms / (ends * per_end) < 1.4


# --- cycles that took too little time ---


class Timed(Table):
    now = 1000.0

    def event(self, kind: type[ev.DeviceEvent], device: str = "shoe", **fields: Any) -> Decision:
        return super().event(kind, device, mono=self.now, **fields)


def loaded(least: int) -> Timed:
    t = Timed(table_rules(decks=1, least_cycle_s=least))
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    return t


@pytest.mark.rule("R-75")
def test_a_cycle_faster_than_the_machine_can_shuffle_counts_for_nothing() -> None:
    t = loaded(least=22)
    t.start()
    t.now += 21.4
    t.complete()
    assert t.codes == ["cycle_too_short"]
    assert t.state.faults[0].cause == "cycle 41 took less than 22 s"
    assert t.state.batches["A"].proof is None
    assert t.state.phase is Phase.FIRST_LOADED
    t.start()
    t.now += 21.5  # an event may be read half a second late
    t.complete()
    assert t.state.batches["A"].proof is not None
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    assert t.codes == []


@pytest.mark.rule("R-75")
def test_no_time_is_judged_that_more_than_one_session_saw() -> None:
    t = loaded(least=22)
    t.start()
    t.event(ev.LinkDown, "shuffler", reason="unplugged")
    t.links_up(state="shuffling", cycle=t.cycle, token=t.token, inside=t.size)
    t.now += 5.0
    t.complete()
    assert t.codes == []
    assert t.state.batches["A"].proof is not None


@pytest.mark.rule("R-75")
def test_a_start_that_is_read_in_the_next_session_is_not_timed() -> None:
    t = loaded(least=22)
    t.tap("start_shuffle")
    t.end(Done({"settings": {**SETTINGS, "decks": 1}, "crc": 1, "crc_ok": True}))
    t.end(Done({"inside": t.size, "cycle": t.cycle, "token": t.token}))
    t.cycle += 1
    t.token = t.effects[-1].args["token"]
    t.end(Unknown("the link was lost"))
    t.effects.clear()
    t.event(ev.LinkDown, "shuffler", reason="unplugged")
    t.links_up(state="shuffling", cycle=t.cycle, token=t.token, inside=t.size)
    t.event(ev.CycleStarted, "shuffler", cycle=t.cycle, token=t.token)
    t.complete()
    assert "cycle_too_short" not in t.codes
    assert t.state.batches["A"].proof is not None


def test_without_a_least_time_none_is_judged() -> None:
    t = loaded(least=0)
    t.start()
    t.complete()
    assert t.codes == []
