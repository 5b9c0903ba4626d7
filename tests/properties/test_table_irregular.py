"""Seeded walks over rounds in which everything goes wrong that people can tell (R-31 to R-36)."""

from __future__ import annotations

from random import Random

import pytest

from controller.table.draft import Decision
from controller.table.inputs import OperatorEvent
from controller.table.phases import IN_ROUND, Phase
from controller.table.rules import accepts, expected_taps
from devices import events as ev
from tests.support.custody import SUPERVISOR, Felt
from tests.support.table import table_rules


def told(random: Random) -> tuple[str, dict[str, object]]:
    """Something that people may say in a round."""
    box, cards = random.randint(1, 3), random.randint(0, 1)
    return random.choice(
        [
            ("dealer_skipped", {"card": "first"}),
            ("dealer_skipped", {"card": "second"}),
            ("box_skipped", {"box": box, "cards": cards}),
            ("drawn_in_error", {"exposed": random.random() < 0.5}),
            ("drawn_in_error", {"exposed": random.random() < 0.5, "burned": True}),
            ("side_wagers_settled", {}),
            ("reshuffle_by_hand", {}),
            ("round_settled", {}),
            *([("void_round", {"reason": "misdeal"})] if random.random() < 0.1 else []),
        ]
    )


def step(t: Felt, random: Random) -> None:
    state, before = t.state, dict(enumerate(t.state.round.cards if t.state.round else ()))
    chance = random.random()
    if state.phase in (Phase.RESHUFFLE_CUT, Phase.RESHUFFLE_LOAD):
        taps = [tap for tap in expected_taps(t.rules, state).values() if tap.event in ("cut", "load_shoe")]
        assert taps, "no way on with the rack in hand"
        t.tap(taps[0].event, **dict(taps[0].args))
    elif state.phase is Phase.BETWEEN_ROUNDS:
        for fault in [f.id for f in state.faults if f.code == "card_out_of_turn"]:
            t.tap("clear", fault=fault)
        t.tap("bets_closed", boxes=random.choice(["1", "1,2", "1,2,3"]))
    elif state.phase in IN_ROUND and chance < 0.3:
        event, args = told(random)
        if accepts(t.rules, state, OperatorEvent(event, args, roles=SUPERVISOR)):
            t.tap(event, **args)
    elif t.stack:
        t.draw(face_up=chance > 0.97)
        if not t.stack:
            t.event(ev.ShoeEmpty)
    elif t.state.phase in IN_ROUND or t.state.phase is Phase.RESHUFFLE_BURN:
        ways = {tap.event for tap in expected_taps(t.rules, t.state).values()}
        assert ways & {"reshuffle_by_hand", "round_settled", "void_round", "side_wagers_settled"}, (
            "a dead end"
        )
        if ways & {"void_round"}:
            t.tap("void_round", reason="shoe_dry")
    if t.state.round is not None and state.round is not None:
        shown = [f for f in t.facts[-2:] if f.kind == "exposed"]
        for i, card in before.items():
            assert card.seen or not t.state.round.cards[i].seen or shown or card.to == "stray"
        assert [c.card for c in t.state.round.cards[: len(before)]] == [c.card for c in before.values()]
    if random.random() < 0.05:
        t.restart()


@pytest.mark.rule("R-31", "R-33", "R-34", "R-35", "R-36")
@pytest.mark.parametrize("settle_first", [False, True])
def test_cards_stay_where_they_lie_and_hidden_ones_hidden_whatever_is_told(settle_first: bool) -> None:
    met: set[Phase] = set()
    for seed in range(20):
        random = Random(f"irregular {seed}")
        t = Felt(rules=table_rules(settle_first=settle_first, burn_after_dry=seed % 2 == 0))
        t.random = random
        t.open_to_shoe()
        for _ in range(150):
            if t.state.phase is Phase.SHOE_END:
                break
            step(t, random)
            met.add(t.state.phase)
        if t.state.phase is Phase.SHOE_END:
            t.complete()
            while t.stack:
                t.draw()
            t.event(ev.ShoeEmpty)
            found = t.give(OperatorEvent("collect_rack", {"gauge": "full"}, who="ann", roles=SUPERVISOR))
            assert isinstance(found, Decision)
        assert set(t.codes) <= {"card_out_of_turn"}, t.codes
    assert met >= {Phase.RESHUFFLE_CUT, Phase.RESHUFFLE_LOAD, Phase.RESHUFFLE_BURN, Phase.SHOE_END}
