"""Whatever a tap carries, in whatever phase: a decision that can be journaled, or a refusal in words."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.record import encode, plain
from controller.table.draft import Decision
from controller.table.inputs import OperatorEvent, Role
from controller.table.phases import TAPS
from controller.table.rules import decide
from devices import events as ev
from tests.support.table import Table

NAMES = ("batch", "box", "boxes", "position", "gauge", "other_backs", "refused", "fault", "")
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["A", "B", "dealer", "box 3", "²", "٣", "1,2", "1,,2", "full", "26", "true", "\ud800", 26, 13]
    ),
    st.lists(st.integers() | st.text(max_size=2), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def states() -> list:
    """A state of each stretch of play, from the opening to the full rack."""
    t = Table()
    kept = [t.state]
    give = t.give

    def watch(given_):
        decision = give(given_)
        if t.state.phase != kept[-1].phase:
            kept.append(t.state)
        return decision

    t.give = watch
    t.open_to_shoe()
    t.deal("1,2")
    t.event(ev.CutCard)
    t.tap("cutting_card_at", box="2")
    t.tap("round_settled")
    t.complete()
    t.end_shoe()
    return kept


STATES = states()
RULES = Table().rules


@settings(max_examples=300)
@given(
    state=st.sampled_from(STATES),
    event=st.sampled_from((*TAPS, "no_such_event", "")),
    args=st.dictionaries(st.sampled_from(NAMES), ODD, max_size=3),
    key=st.none() | st.text(max_size=4),
)
def test_any_argument_is_judged_and_never_breaks_the_table(state, event, args, key):
    decision = decide(RULES, state, OperatorEvent(event, args, "ann", frozenset(Role), key))
    if isinstance(decision, Decision):
        assert decision.facts[0].kind == event
        for fact in decision.facts:
            assert encode(plain(fact.data))
    else:
        assert decision.code
        assert decision.why
