"""The pure core explored whole on a small table: the invariants of the rules' section M in every state."""

import pytest

from controller.table.faults import FAULTS
from controller.table.phases import TRANSITIONS, Phase
from controller.table.profiles import FirstCardPolicy
from controller.table.round import deal_order
from controller.table.state import Place
from devices.events import Sense
from tests.support.explore import Explorer, Node
from tests.support.explore_moves import SmallTable, TinyTable
from tests.support.table import BATCHES

TABLE = {"table": "BJ-07", "boxes": 1, "decks": 1, "batches": BATCHES}
UNMET = {"machine_disagrees", "cards_missing"}
"""Faults that one mishap alone does not latch: the judges agree, and an early end is told at the rack."""


def explored(rules, mishaps, after, capsys, dead_ends=True):
    report = Explorer(rules, mishaps, after).run()
    with capsys.disabled():
        print(f"\n  explored: {report}")
    assert not dead_ends or [node.path() for node in report.dead_ends if not runs_dry(node)] == []
    return report


def runs_dry(node: Node) -> bool:
    """A deal that the shoe cannot finish: R-35 is not built, and the supervisor is called (`shoe_dry`)."""
    state = node.state
    if state.phase not in (Phase.DEALING, Phase.SIDE_WAGERS, Phase.HOLE_CARD):
        return False
    assert state.round is not None
    assert state.shoe.batch is not None
    due = len(deal_order(state.round.boxes)) - len(state.round.cards)
    return state.batches[state.shoe.batch].at(Place.SHOE) < due


@pytest.mark.timeout(600)
def test_every_mishap_in_every_state(capsys):
    report = explored(TinyTable(**TABLE, burn_on_dealer_change=False), 1, 0, capsys)
    assert report.phases == set(Phase) - {Phase.SIDE_WAGERS}
    assert report.faults == set(FAULTS) - UNMET
    assert report.states > 10_000


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(TinyTable(**TABLE), id="a burn for each dealer"),
        pytest.param(
            SmallTable(**{**TABLE, "boxes": 2}, settle_first=True, shoe_senses=frozenset()),
            id="side wagers, and a shoe that senses nothing",
        ),
        pytest.param(
            SmallTable(
                **TABLE, first_card=FirstCardPolicy.RESHUFFLE_NOW, shoe_senses=frozenset({Sense.EMPTY})
            ),
            id="a cutting card that comes first ends the shoe",
        ),
    ],
)
def test_every_tap_in_every_state_of_other_tables(rules, capsys):
    report = explored(rules, 0, 0, capsys)
    assert report.phases >= set(Phase) - {Phase.SIDE_WAGERS}
    assert report.states > 400


def test_the_ways_between_phases_are_all_taken(capsys):
    taken = set()
    for rules, mishaps in ((SmallTable(**TABLE, settle_first=True), 0),):
        report = explored(rules, mishaps, 0, capsys)
        taken |= {(source, trigger) for source, trigger, _ in report.ways}
    by_mishap = {
        "cycle_void",
        "lifted_out",
        "card_strayed",
        "cutting_card_late",
        "cutting_card_first",
        "dealt",
    }
    honest = {(s, t.trigger) for t in TRANSITIONS if t.dest and t.trigger not in by_mishap for s in t.sources}
    assert honest - taken == {
        (Phase.DEALING, "round_settled"),
        (Phase.HOLE_CARD, "round_settled"),
    }, "settled short of its cards only when some may have come out unseen"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_everything_that_follows_a_mishap(capsys):
    # what mends some faults (a device read back right) counts as another mishap: no dead ends are judged
    report = explored(TinyTable(**TABLE, burn_on_dealer_change=False), 1, 1000, capsys, dead_ends=False)
    assert report.faults == set(FAULTS) - {"machine_disagrees"}
