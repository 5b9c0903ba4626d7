"""The pure core explored whole on a small table: the invariants of the rules' section M in every state."""

import pytest

from controller.table.faults import FAULTS, Blocks
from controller.table.hands import TAPS as HANDS
from controller.table.phases import IN_ROUND, RESHUFFLING, TRANSITIONS, Phase
from controller.table.profiles import Discretionary, FirstCardPolicy
from controller.table.state import Place
from devices.events import DECK, Sense
from tests.support.explore import Explorer, Node
from tests.support.explore_moves import ENDING, IRREGULAR, PREPARING, READING, SmallTable, TinyTable
from tests.support.table import BATCHES

TABLE = {"table": "BJ-07", "boxes": 1, "decks": 1, "batches": BATCHES}
EXTRA = (*PREPARING, *ENDING, *IRREGULAR, *READING, *HANDS, "reshuffle_by_hand", "void_round")
"""Taps that each have an exploration of their own, for all at once would be too many states for every run."""
STARTED = (
    *("start_shuffle", "settings done", "status done", "start done"),
    *("status done, cycle begun", "cycle started"),
)
TO_SHOE = (
    *(
        "load_shuffler batch=A",
        *STARTED,
        "cycle completed",
        "take_from_shuffler",
        "release done",
        "batch out",
    ),
    *("load_shuffler batch=B", *STARTED, "offer_cut box=1", "cut position=1"),
    *("insert_cutting_card position=2", "load_shoe batch=A"),
)
TO_ROUNDS = (*TO_SHOE, "card")
TO_PLAYING = (*TO_ROUNDS, "bets_closed boxes=1", *["card"] * 4)
TO_RACK = (
    *(*TO_SHOE, "shuffle_now", *["card"] * 5, "shoe empty", "collect_rack gauge=full", "cycle completed"),
)
ROUNDS = (Phase.BETWEEN_ROUNDS, *IN_ROUND)
CLOSING = (Phase.RACK_FULL, Phase.IDLE, Phase.CLOSING, Phase.CLOSED)
LATCHED = {code for code, kind in FAULTS.items() if kind.blocks is not Blocks.NOTHING}
OTHER_TABLES = (
    "continuous",
    "alone",
    "alone_no_cut",
    "by_eye",
    "by_eye_settle_first",
    "no_cutting_card",
    "no_hole_card",
)
"""Guards that hold at no table with two batches and a shoe that counts."""
UNMET = {
    *("machine_disagrees", "cards_missing", "order_pattern", "cycle_too_short", "deck_too_old"),
    *("dead_card", "reader_misuse", "reader_skipped", "reader_failed", "cards_in_shoe"),
    *("returned_early", "returned_twice", "count_drift", "wrong_stub"),
}
"""Faults that no one mishap of the main exploration latches: they need cards, a clock, a reader, a mode."""


class AceUp(TinyTable):
    """As TinyTable, with an ace as the up card of the first round, and a card to draw after its deal."""

    deck = (*DECK[1:3], DECK[0], *DECK[3:6])


def but(*kept: str) -> tuple[str, ...]:
    return tuple(event for event in EXTRA if event not in kept)


def explored(record_property, rules, mishaps=0, after=0, *, dead_ends=True, misuse=frozenset(), **how):
    report = Explorer(rules, mishaps, after, **{"without": EXTRA, **how}).run()
    record_property("explored", str(report))
    assert not dead_ends or [node.path() for node in report.dead_ends if not runs_dry(node)] == []
    if not mishaps:
        assert report.faults & LATCHED <= misuse, "where nothing goes wrong nothing is latched"
    return report


def runs_dry(node: Node) -> bool:
    """A deal that the shoe cannot finish, where shuffling the rack by hand (R-35) is left out."""
    state = node.state
    if state.round is None or state.phase is Phase.PLAYING:
        return False
    assert state.shoe.batch is not None
    return state.batches[state.shoe.batch].at(Place.SHOE) < len(state.round.order) - state.round.placed


def tiny(kind=TinyTable, **changes):
    return kind(**{**TABLE, "burn_on_dealer_change": False, **changes})


# The longest first and a short one behind it: a worker of `pytest -n` is given two tests to begin with.


@pytest.mark.timeout(600)
def test_every_mishap_in_every_state(record_property):
    report = explored(record_property, tiny(), 1)
    assert report.phases == {*Phase} - {
        Phase.ROUND_BURN,
        *RESHUFFLING,
        Phase.SIDE_WAGERS,
        Phase.IDLE,
        Phase.CLOSING,
        Phase.CLOSED,
    }
    assert report.faults & LATCHED == LATCHED - UNMET
    assert report.states > 10_000


def test_every_mishap_before_the_first_shuffle(record_property):
    within = (Phase.CLOSED, Phase.OPENING)
    report = explored(record_property, tiny(), 1, without=but(*PREPARING), prepared=False, within=within)
    assert report.states > 1_000


@pytest.mark.timeout(600)
def test_every_mishap_at_the_end_of_the_day(record_property):
    report = explored(record_property, tiny(), 1, without=but(*ENDING), begin=TO_RACK, within=CLOSING)
    assert report.phases == {*CLOSING}
    assert report.states > 5_000


def test_every_mishap_while_the_rack_is_shuffled_in_a_round(record_property):
    how = {"begin": (*TO_PLAYING, "shoe empty"), "within": (Phase.PLAYING, *RESHUFFLING)}
    report = explored(record_property, tiny(), 1, without=but("reshuffle_by_hand", "void_round"), **how)
    assert {*RESHUFFLING} < report.phases


def test_a_dead_card_and_a_new_batch_at_every_step_of_a_swap(record_property):
    kept = but("dead_card", "replace_batch", *PREPARING[:5])
    report = explored(
        record_property, tiny(), 1, without=kept, begin=TO_RACK, within=(Phase.RACK_FULL, Phase.BATCH_TAKEN)
    )
    assert "dead_card" in report.faults


def test_certificates_and_demands_up_to_the_first_round(record_property):
    within = (*(p for p in Phase if p not in (*ROUNDS, *RESHUFFLING, Phase.SHOE_END)),)
    report = explored(record_property, tiny(), without=but(*PREPARING), prepared=False, within=within)
    assert (Phase.CUT_DUE, "proof_lost", Phase.RACK_FULL) in report.ways


@pytest.mark.parametrize(
    "kept",
    [("drawn_in_error",), ("dealer_skipped", "box_skipped"), ("bart_carter",)],
    ids=["drawn in error", "skipped", "Bart Carter"],
)
def test_what_people_tell_of_a_round_in_every_order(kept, record_property):
    report = explored(
        record_property, tiny(), without=but(*kept), begin=TO_ROUNDS, within=ROUNDS, dead_ends=False
    )
    assert report.states > 200


def test_the_reader_is_used_once_with_an_ace_or_ten_up(record_property):
    rules, how = tiny(AceUp, reader="reader"), {"begin": TO_ROUNDS, "within": ROUNDS}
    misuse = {"reader_misuse", "reader_skipped", "card_out_of_turn"}
    report = explored(record_property, rules, without=but(*READING), misuse=misuse, dead_ends=False, **how)
    assert misuse <= report.faults


def test_hands_are_followed_in_every_order(record_property):
    how = {"without": but(*HANDS), "begin": TO_ROUNDS, "within": ROUNDS, "dead_ends": False}
    report = explored(record_property, tiny(), **how)
    assert report.states > 100


def test_the_shoe_is_locked_until_side_wagers_are_settled_whatever_becomes_of_a_command(record_property):
    rules, within = tiny(settle_first=True, shoe_locks=True), (Phase.SIDE_WAGERS, Phase.HOLE_CARD)
    begin = (*TO_ROUNDS, "bets_closed boxes=1", *["card"] * 3)
    report = explored(
        record_property, rules, 1, without=but("void_round"), begin=begin, within=within, dead_ends=False
    )
    assert {"shoe_not_locked", "shoe_stays_locked"} <= report.faults


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
def test_every_tap_in_every_state_of_other_tables(rules, record_property):
    report = explored(record_property, rules)
    assert report.states > 400


def test_the_same_batch_again_where_a_switch_says_so(record_property):
    rules = tiny(discretionary=Discretionary.SAME_BATCH)
    within = {*Phase} - {*IN_ROUND, *RESHUFFLING}
    report = explored(record_property, rules, without=but("reshuffle_by_hand"), begin=TO_RACK, within=within)
    assert (Phase.RACK_FULL, "reshuffle_by_hand", Phase.CUT_DUE) in report.ways


def test_a_shoe_that_runs_dry_in_a_round_and_the_ways_between_phases(record_property):
    taken = set()
    side = SmallTable(**TABLE, settle_first=True)
    for rules in (side, tiny(), tiny(settle_first=True, burn_after_dry=False)):
        kept = but("reshuffle_by_hand", "void_round") if isinstance(rules, TinyTable) else EXTRA
        report = explored(record_property, rules, without=kept)
        taken |= {(source, trigger) for source, trigger, _ in report.ways}
    elsewhere = {
        *(
            "take_in_hand",
            "burn",
            "cycle_void",
            "lifted_out",
            "card_strayed",
            "cutting_card_late",
            "cutting_card_first",
            "dealt",
        ),
        *(
            *PREPARING,
            *ENDING,
            *IRREGULAR,
            "open",
            "proof_lost",
            "collect_rack",
            "hole_dealt",
            "deal_goes_on",
        ),
    }
    here = [t for t in TRANSITIONS if t.dest and t.trigger not in elsewhere and t.guard not in OTHER_TABLES]
    honest = {(s, t.trigger) for t in here for s in t.sources if s is not Phase.ROUND_BURN}
    assert honest - taken == {
        *((phase, "reshuffle_by_hand") for phase in (Phase.OPENING, Phase.RACK_FULL)),
        (Phase.RACK_FULL, "load_shuffler"),
        *((phase, "round_settled") for phase in (Phase.DEALING, Phase.HOLE_CARD)),
    }, "a certificate, a hand shuffle between shoes, and cards that may have come out unseen are elsewhere"


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_everything_that_follows_a_mishap(record_property):
    # what mends some faults (a device read back right) counts as another mishap: no dead ends are judged
    report = explored(record_property, tiny(), 1, 1000, dead_ends=False)
    assert report.faults & LATCHED == LATCHED - UNMET | {"cards_missing"}


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_every_mishap_of_a_round_with_a_reader(record_property):
    rules, how = tiny(AceUp, reader="reader"), {"begin": TO_PLAYING, "within": (Phase.PLAYING,)}
    report = explored(record_property, rules, 1, without=but(*READING), **how)
    assert {"reader_misuse", "reader_failed"} <= report.faults
