"""Whole shoes under a virtual clock: S1 to S4, played by the simulated dealer on simulated machines."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from controller.table.profiles import BatchRules, FirstCardPolicy, MatchTerms, TableRules
from simulators.rig.blackjack import Blackjack
from simulators.rig.stepped import Stepped
from tests.support.facts import comparable

BATCHES = (BatchRules("A", "red"), BatchRules("B", "blue"))
SOURCES = ("operator", "shoe", "shuffler")


def rules(**changes: object) -> TableRules:
    return TableRules(**{"table": "BJ-07", "boxes": 7, "decks": 2, "batches": BATCHES, **changes})


def played(seed: object, shoes: int, **changes: object) -> Stepped:
    world = Stepped(rules(**changes), seed, shoes)
    world.run()
    return world


def kinds(world: Stepped, *wanted: str) -> list[str]:
    return [e.fact.kind for e in world.journal.entries() if e.fact.kind in wanted]


@pytest.mark.rule("R-06", "R-07", "R-08", "R-14", "R-16", "R-23")
def test_s1_to_s4_six_decks_two_shoes() -> None:
    world = played("S1", 2, decks=6)
    assert world.felt.referee.violations == []
    assert world.view.faults == {}
    assert world.view.batches == ["A", "B"]
    assert world.view.cards == 2 * 312
    assert world.view.rounds > 20
    assert world.journal.verify().ok
    assert threading.active_count() == 1


@pytest.mark.rule("R-12", "R-13")
def test_s1_each_batch_is_inspected_and_verified_before_any_is_shuffled() -> None:
    world = Stepped(rules(), "open")
    world.run(lambda: world.view.phase == "first_loaded")
    steps = [
        (e.fact.kind, e.fact.data.get("batch", e.fact.data.get("device")))
        for e in world.journal.entries()
        if e.fact.source == "operator"
    ]
    inspection = ["inspect", "verify", "spread", "player_inspected", "wash"]
    assert steps == [
        ("inspect", "shoe"),
        ("inspect", "shuffler"),
        ("open", None),
        *((kind, "A") for kind in inspection),
        *((kind, "B") for kind in inspection),
        ("load_shuffler", "A"),
    ]


@pytest.fixture(scope="module")
def long_game() -> Stepped:
    return played("long", 11, decks=1)


@pytest.mark.rule("R-07")
def test_batches_alternate_over_many_shoes_and_no_card_is_lost(long_game: Stepped) -> None:
    assert long_game.view.batches == list("ABABABABABA")
    assert long_game.felt.referee.violations == []
    assert long_game.felt.referee.shoes == long_game.view.batches
    counted = [e.fact.data for e in long_game.journal.entries() if e.fact.kind == "deck_log"]
    assert [(c["batch"], c["cards"], c["missing"]) for c in counted] == [("A", 52, []), ("B", 52, [])]
    assert long_game.view.phase == "closed"


@pytest.mark.rule("R-17")
def test_s3_where_the_cutting_card_came_out_decides_who_cuts_next(long_game: Stepped) -> None:
    places: Counter[str] = Counter()
    at, boxes = None, []
    for fact in (e.fact for e in long_game.journal.entries()):
        if fact.kind == "bets_closed":
            boxes = fact.data["boxes"]
        if fact.kind in ("cut_card", "cutting_card_at") and fact.data["at"]:
            at = fact.data["at"]
        if fact.kind == "offer_cut" and at is not None:
            assert fact.data["to"] == (f"box {boxes[-1]}" if at == "dealer" else at)
            places[at.split()[0]] += 1
            at = None
    assert places["dealer"] > 0
    assert places["box"] > 0


@pytest.mark.rule("R-24", "R-30")
def test_s2_cards_go_round_in_the_order_of_the_deal() -> None:
    world = Stepped(rules(), "order")
    world.run(lambda: world.view.rounds == 1)
    facts = [e.fact for e in world.journal.entries()]
    boxes = next(f.data["boxes"] for f in facts if f.kind == "bets_closed")
    seats = [f"box {n}" for n in boxes]
    dealt = [f.data["to"] for f in facts if f.kind == "card_drawn"]
    assert dealt[0] == "burn"
    assert dealt[1 : 3 + 2 * len(seats)] == [*seats, "dealer", *seats, "hole"]
    assert set(dealt[3 + 2 * len(seats) :]) <= {"play"}


@pytest.mark.rule("R-37")
@pytest.mark.parametrize("locks", [False, True], ids=["the dealer waits", "the shoe is locked"])
def test_s2_side_wagers_are_settled_before_the_dealers_second_card(locks: bool) -> None:
    world = Stepped(rules(settle_first=True, shoe_locks=locks), "wagers")
    world.run(lambda: world.view.rounds == 2)
    told = [e.fact for e in world.journal.entries()]
    order = [
        f.data.get("to", f.data.get("locked", f.kind))
        for f in told
        if f.kind in ("side_wagers_settled", "lock_changed") or f.data.get("to") == "hole"
    ]
    one = [True, "side_wagers_settled", False, "hole"] if locks else ["side_wagers_settled", "hole"]
    assert order == one * 2
    assert world.felt.referee.violations == []


@pytest.mark.rule("R-38")
def test_in_a_whole_shoe_every_match_is_told_as_the_cards_lie_the_losers_first() -> None:
    world = played("matches", 2, decks=6, settle_first=True, shoe_locks=True, match=MatchTerms(4, 11))
    told = [e.fact.data for e in world.journal.entries() if e.fact.kind == "side_wagers_settled"]
    rows = [row for data in told for row in data.get("match", ())]
    assert {row["outcome"] for row in rows} == {"lost", "won"}
    assert {odds for row in rows for odds in row.get("pays", ())} <= {4, 11}
    assert world.felt.referee.violations == []
    acts = world.dealer.acts
    assert isinstance(acts, Blackjack)
    acts.view.matched = [{"box": 1, "outcome": "won", "pays": [11]}]
    acts.compare_matches({1: ["8S", "2C"]}, "8D")
    assert len(world.felt.referee.violations) == 1


@pytest.mark.rule("R-26")
def test_s3_the_round_of_the_cutting_card_is_finished_and_none_follows() -> None:
    seen = set()
    for seed in range(6):
        world = Stepped(rules(decks=1), seed)
        world.run(lambda world=world: "cut_card" in kinds(world, "cut_card"))
        phase, rounds = world.view.phase, world.view.rounds
        seen.add(phase)
        world.run(lambda world=world: world.view.phase == "shoe_end")
        assert world.view.rounds == rounds + 1
        assert world.tap("bets_closed", boxes="1")["refused"] == "unexpected"
        assert world.felt.referee.violations == []
        assert world.view.faults == {}
    assert {"dealing", "playing"} <= seen


@pytest.mark.rule("R-27")
@pytest.mark.parametrize(
    ("policy", "rounds_after"), [(FirstCardPolicy.PLAY_ONE_ROUND, 1), (FirstCardPolicy.RESHUFFLE_NOW, 0)]
)
def test_cutting_card_as_the_first_card_of_a_round(policy: FirstCardPolicy, rounds_after: int) -> None:
    world = Stepped(rules(first_card=policy), "first", 2)
    world.run(lambda: world.view.rounds == 3 and world.view.phase == "between_rounds")
    bring_cutting_card_to_front(world)
    world.run(lambda: world.view.phase == "shoe_end")
    assert world.view.rounds == 3 + rounds_after
    assert world.tap("bets_closed", boxes="1")["refused"] == "unexpected"
    world.run()
    assert world.view.batches == ["A", "B"]
    assert world.felt.referee.violations == []
    assert world.view.faults == {}


def bring_cutting_card_to_front(world: Stepped) -> None:
    shoe = world.felt.shoe
    index = next(i for i, item in enumerate(shoe.contents()) if item is world.felt.cutting_card)
    first = shoe.swap_in(0, world.felt.cutting_card)
    shoe.swap_in(index, first)


def test_one_seed_is_one_game_and_another_seed_another() -> None:
    one, again, other = (
        comparable(played(seed, 2, decks=1).journal.entries(), SOURCES) for seed in ("x", "x", "y")
    )
    assert one == again
    assert one["shoe"] != other["shoe"]


def test_the_same_seed_gives_the_same_journal_to_the_last_hash() -> None:
    one, again = played("hash", 1, decks=1), played("hash", 1, decks=1)
    assert one.journal.rows == again.journal.rows
