"""A blackjack table with a Bee-Tek as its shoe: whole shoes, what goes wrong on its line, a restart."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from controller import config
from controller.journal import JournalReader
from controller.table.profiles import BatchRules, FirstCardPolicy, TableRules
from controller.table.state import Place
from devices.events import Sense
from simulators import faults
from simulators.rig import demo
from simulators.rig.referee import STUB
from simulators.rig.stepped import Stepped
from tests.support.facts import comparable

NOTHING: frozenset[Sense] = frozenset()
BATCHES = (BatchRules("A", "red"), BatchRules("B", "blue"))
CUTCARD = [sys.executable, "-P", "-c", "from controller.cli.app import main; main()"]
TABLE = (
    demo.TABLE.replace("decks_per_batch = 6", "decks_per_batch = 1")
    .replace('wagers = ["match-the-dealer"]\n', "")
    .replace('driver = "managed-shoe"', 'driver = "bee-tek"')
)


def world(seed: object, shoes: int, **changes: Any) -> Stepped:
    wanted = {"table": "BJ-07", "boxes": 7, "decks": 1, "batches": BATCHES, "shoe_senses": NOTHING}
    return Stepped(TableRules(**{**wanted, **changes}), seed, shoes, shoe="bee-tek")


def facts(played: Stepped, *kinds: str) -> list[Any]:
    return [e.fact for e in played.journal.entries() if e.fact.kind in kinds]


def codes(played: Stepped) -> list[str]:
    return [fault["code"] for fault in played.controller.view("faults")]


def test_the_configuration_takes_what_a_shoe_senses_from_its_driver() -> None:
    less, problems = config.examine(TABLE.encode())
    assert (problems, less and less.rules.shoe_senses) == ([], NOTHING)
    more, _ = config.examine(TABLE.replace("bee-tek", "managed-shoe").encode())
    assert more is not None
    assert more.rules.shoe_senses == frozenset(Sense)
    options = 'driver = "bee-tek"\ncard_order = "backwards"\n'
    _, problems = config.examine(TABLE.replace('driver = "bee-tek"\n', options).encode())
    assert [str(p) for p in problems] == [
        "devices.shoe: card_order is one of both, rank_first, suit_first, not 'backwards'"
    ]


# --- whole shoes ---


@pytest.fixture(scope="module")
def six_shoes() -> Stepped:
    played = world("bee", 6)
    played.run()
    return played


@pytest.mark.rule("R-06", "R-07", "R-22", "R-26")
def test_six_shoes_are_played_to_the_last_card(six_shoes: Stepped) -> None:
    view, referee = six_shoes.view, six_shoes.felt.referee
    assert referee.violations == []
    assert view.faults_latched == 0
    assert view.batches == list("ABABAB") == referee.shoes
    assert (view.cards, view.starts) == (6 * 52, 1)
    assert view.rounds > 10
    assert six_shoes.journal.verify().ok
    counted = [(f.data["batch"], f.data["cards"]) for f in facts(six_shoes, "deck_log")]
    assert counted == [("A", 52), ("B", 52)]


def test_every_card_is_told_as_it_lay_in_the_shoe_and_nothing_else_is(six_shoes: Stepped) -> None:
    drawn = [h.data["face"] for h in six_shoes.felt.shoe.happenings if h.kind == "drawn"]
    told = facts(six_shoes, "card_drawn")
    assert [f.whole["card"] for f in told] == drawn
    assert all((f.data["back"], f.data["foreign"]) == (None, False) for f in told)
    of_the_shoe = Counter(e.fact.kind for e in six_shoes.journal.entries() if e.fact.source == "shoe")
    assert of_the_shoe == {"link_up": 1, "card_drawn": 312, "shoe_empty": 6}
    assert all(f.data["by_count"] is True for f in facts(six_shoes, "shoe_empty"))


@pytest.mark.rule("R-17", "R-26")
def test_the_cutting_card_comes_by_the_dealers_tap_and_decides_who_cuts(six_shoes: Stepped) -> None:
    taps = facts(six_shoes, "cutting_card_at")
    assert [f.source for f in taps] == ["operator"] * 6
    at, boxes, rounds_after = None, [], []
    for fact in facts(six_shoes, "cutting_card_at", "bets_closed", "offer_cut", "collect_rack"):
        if fact.kind == "bets_closed":
            boxes = fact.data["boxes"]
            rounds_after.append(at)
        elif fact.kind == "cutting_card_at":
            at = fact.data["at"]
            assert fact.data["closing"] == "this_round"
            rounds_after = []
        elif fact.kind == "collect_rack":
            assert rounds_after == [], "no round followed"
        elif at is not None:
            assert fact.data["to"] == (f"box {boxes[-1]}" if at == "dealer" else at)
            at = None


def test_the_shoe_is_sent_nothing_and_could_not_be(six_shoes: Stepped) -> None:
    assert {f.data["device"] for f in facts(six_shoes, "command_issued")} == {"shuffler"}
    port = six_shoes.controller.ports["shoe"]
    assert not hasattr(port._transport, "write")
    assert not hasattr(port._driver, "command")


@pytest.mark.parametrize("policy", list(FirstCardPolicy))
@pytest.mark.rule("R-27")
def test_it_is_the_game_of_the_managed_shoe_card_for_card(policy: FirstCardPolicy) -> None:
    """The same seed at both shoes: same rounds, same cards at the same places, same ends of the shoes."""
    less = world("same", 4, first_card=policy)
    more = Stepped(TableRules("BJ-07", 7, 1, BATCHES, first_card=policy), "same", 4)
    dealt = []
    for played in (less, more):
        played.run()
        assert played.view.faults_latched == 0
        assert played.felt.referee.violations == []
        cards = facts(played, "card_drawn")
        dealt.append([(f.data["to"], f.data["round"], f.data["batch"], f.whole["card"]) for f in cards])
    assert dealt[0] == dealt[1]
    assert less.view.rounds == more.view.rounds


@pytest.mark.rule("R-27")
@pytest.mark.parametrize(
    ("policy", "rounds_after"), [(FirstCardPolicy.PLAY_ONE_ROUND, 1), (FirstCardPolicy.RESHUFFLE_NOW, 0)]
)
def test_the_cutting_card_as_the_first_card_of_a_round(policy: FirstCardPolicy, rounds_after: int) -> None:
    played = world("first", 2, decks=2, first_card=policy)
    played.run(lambda: played.view.rounds == 3 and played.view.phase == "between_rounds")
    shoe, card = played.felt.shoe, played.felt.cutting_card
    index = next(i for i, item in enumerate(shoe.contents()) if item is card)
    shoe.swap_in(index, shoe.swap_in(0, card))
    played.run(lambda: played.view.phase == "shoe_end")
    assert played.view.rounds == 3 + rounds_after
    played.run()
    assert played.view.batches == ["A", "B"]
    assert played.felt.referee.violations == []
    assert played.view.faults_latched == 0


# --- what goes wrong on the line ---


@pytest.mark.parametrize("unread", ["game", "both"])
def test_field_18_unread_cards_stay_in_their_places(unread: str) -> None:
    played = world("unread", 1)
    for fault in (
        "misread@4",
        "misread@9",
        "misread@30",
        f"unread:{unread}",
        "alarm:E9 Door@12",
        "warning@13",
    ):
        faults.apply(played.felt.shoe_wire, fault)
    played.run()
    assert played.felt.referee.violations == []
    assert codes(played) == []
    drawn = [h.data["face"] for h in played.felt.shoe.happenings if h.kind == "drawn"]
    assert [f.whole["card"] for f in facts(played, "card_drawn")] == drawn
    assert drawn.count(None) == 3
    alarms = [f.data["code"] for f in facts(played, "fault_raised")]
    assert alarms == (["E3", "E3", "E9", "E3"] if unread == "both" else ["E9"])
    assert len(facts(played, "warning")) == 1


def by_hand(played: Stepped, *, shoe_empty: bool) -> dict[str, Any]:
    """Settle, end the shoe and collect, as people do when the machine is not trusted."""
    if played.view.phase in ("dealing", "hole_card", "playing"):
        assert played.tap("round_settled")["ok"]
    played.felt.pick_up()
    assert played.tap("bets_closed", boxes="1")["refused"] == "fault_latched"
    if played.view.phase != "shoe_end":
        assert played.tap("shuffle_now")["ok"]
    while not played.felt.shoe.empty:
        played.felt.draw(STUB)
        played.settle(0.5)
    rack = {"gauge": played.felt.rack.gauge(52), "other_backs": played.felt.other_backs("A")}
    if shoe_empty:
        assert played.tap("collect_rack", **rack)["refused"] == "shoe_not_empty"
        rack["shoe_empty"] = True
    return played.tap("collect_rack", **rack)


@pytest.mark.rule("R-31")
def test_a_card_face_up_is_told_like_any_other_and_burned_by_a_tap() -> None:
    played = world("face up", 1)
    played.run(lambda: played.view.phase == "dealing" and played.dealer.settled())
    answer = played.tap("card_face_up")
    assert (answer["refused"], answer["expected"]) == (
        "told_as_drawn",
        ["drawn_in_error exposed=true burned=true"],
    )
    faults.apply(played.felt.shoe_wire, "face_up@1")
    played.run()
    (told,) = facts(played, "drawn_in_error")
    assert told.data["burned"] is True
    assert played.felt.referee.violations == []
    assert codes(played) == []
    assert played.view.cards == 52


@pytest.mark.parametrize("fault", ["damage@20", "damage:12@20", "line_cut@20"])
def test_a_damaged_card_is_said_and_the_gauge_proves_the_batch(fault: str) -> None:
    played = world("damage", 1)
    faults.apply(played.felt.shoe_wire, fault)
    played.run(lambda: played.felt.shoe_wire.newest == 20)
    played.settle(2.0)
    lost = fault != "damage:12@20"
    if not lost:  # the card came, and what it was is not believed
        assert played.view.cards == 20
        (card,) = (f for f in facts(played, "card_drawn") if "diag" in f.data)
        assert (card.whole["card"], card.data["diag"]) == (None, ["bad_card"])
        played.run()
        assert played.view.faults_latched == 0
        return
    assert played.view.cards == 19
    assert codes(played) == ["events_lost"]
    answer = by_hand(played, shoe_empty=True)
    assert answer["ok"], answer
    assert [(f.data["left"], f.data["by_gauge"]) for f in facts(played, "collect_rack")] == [(1, 1)]
    assert codes(played) == ["events_lost"]
    assert played.tap("clear", fault=played.controller.view("faults")[0]["id"])["ok"]
    assert dict(played.service.state.batches["A"].cards) == {Place.RACK: 52}


@pytest.mark.rule("R-69")
@pytest.mark.parametrize("phase", ["between_rounds", "playing"])
def test_after_a_restart_in_mid_shoe_the_shoe_ends_for_nobody_counted_meanwhile(phase: str) -> None:
    played = world("restart", 1)
    played.run(lambda: played.view.rounds == 1 and played.view.phase == phase)
    cards, out = played.view.cards, played.felt.shoe_wire.newest
    played.crash()
    played.restart()
    played.settle(2.0)
    assert codes(played) == ["events_lost"]
    assert played.service.state.shoe.count == cards
    assert (out - cards) == (phase == "playing"), "a card was on the wire"
    answer = by_hand(played, shoe_empty=out > cards)
    assert answer["ok"], answer
    collected = facts(played, "collect_rack")[0].data
    assert collected["left"] == collected["by_gauge"] == out - cards
    assert codes(played) == ["events_lost"]


def test_a_restart_with_no_shoe_loaded_costs_nothing() -> None:
    played = world("early", 1)
    played.run(lambda: played.view.phase == "cut_due")
    played.crash()
    played.restart()
    played.run()
    assert played.view.faults_latched == 0
    assert len(facts(played, "gap_possible")) == 1
    assert played.view.cards == 52


# --- on a pseudo-terminal, with the daemon as its own process ---


def test_cutcard_demo_plays_it_over_a_pty_as_the_stepped_world_does(tmp_path: Path) -> None:
    table, keep = tmp_path / "bee.toml", tmp_path / "kept"
    table.write_text(TABLE)
    done = subprocess.run(
        [*CUTCARD, "demo", "--shoes", "2", "--seed", "bee", "--config", table, "--keep", keep, "--json"],
        check=False, capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads(done.stdout)
    assert {k: summary[k] for k in ("shoes", "cards", "swaps", "batches", "violations", "faults")} == {
        "shoes": 2, "cards": 104, "swaps": 1, "batches": ["A", "B"], "violations": 0, "faults": 0,
    }  # fmt: skip
    assert summary["journal"]["verified"] is True
    with JournalReader(keep / "journal.db", keep / "seal.key") as reader:
        entries = list(reader.entries())
    kinds = Counter(e.fact.kind for e in entries)
    assert (kinds["cutting_card_at"], kinds["cut_card"], kinds["gap_possible"]) == (2, 0, 0)
    stepped = world("bee", 2, table="DEMO-1")
    stepped.run()
    stepped.close()
    sources = ("operator", "shoe", "shuffler")
    assert comparable(entries, sources) == comparable(stepped.journal.entries(), sources)
