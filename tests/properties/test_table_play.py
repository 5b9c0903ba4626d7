"""The invariants of rules.md, section M, over random orders of taps, device events, faults and crashes.

Tables of full size. `FullSize` holds every step against the observer's memory of what happened.
"""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from hypothesis import Phase as Run
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from controller.table.inputs import OperatorEvent
from controller.table.phases import IN_ROUND, RESHUFFLING, TAPS, Phase
from controller.table.profiles import Discretionary
from controller.table.state import Cycle
from tests.support.explore_moves import Move
from tests.support.full_size import DEALER, STEPS, SUPERVISOR, FullSize, certificate
from tests.support.table import table_rules

BATCHES = [{"batch": "A"}, {"batch": "B"}]
EITHER = st.sampled_from(BATCHES)
DEVICES = st.sampled_from([{"device": d} for d in ("shoe", "shuffler", "reader")])
MACHINES = st.sampled_from([{"device": "shuffler"}] * 3 + [{"device": "shoe"}])
BOXES = ["1", "2,5", "1,2,3,4,5,6,7"]
SEATS = [{"box": str(n)} for n in range(1, 8)] + [{"box": "dealer"}]
ARGS = {
    **dict.fromkeys(("load_shuffler", "load_shoe", "verify", "spread", "player_inspected", "wash"), EITHER),
    **dict.fromkeys(("shuffle_demanded", "replace_batch", "reshuffle_by_hand"), EITHER),
    "open": st.sampled_from([{}, {}, {"mode": "manual-shoe"}]),
    "inspect": EITHER | DEVICES | st.just({"device": "shoe", "result": "faulty"}),
    "dead_card": st.sampled_from([{**b, **c} for b in BATCHES for c in ({}, {"card": "8S"})]),
    "offer_cut": st.sampled_from([*SEATS, {"box": "1", "refused": True}]),
    "cut": st.sampled_from([{"position": n} for n in (1, 9, 10, 52, 94, 95, 302, 303)]),
    "insert_cutting_card": st.sampled_from([{"position": n} for n in (25, 26, 77, 78)]),
    "bets_closed": st.sampled_from([{"boxes": b} for b in BOXES]),
    "cutting_card_at": st.sampled_from([{"box": "1"}, {"box": "dealer"}, {}]),
    "collect_rack": st.sampled_from(
        [{"gauge": "full"}] * 5 + [{"gauge": "short"}, {"gauge": "short", "shoe_empty": True}]
    ),
    "drawn_in_error": st.fixed_dictionaries({"exposed": st.booleans(), "burned": st.booleans()}),
    "dealer_skipped": st.sampled_from([{"card": "first"}, {"card": "second"}]),
    "box_skipped": st.fixed_dictionaries({"box": st.integers(1, 7), "cards": st.integers(0, 1)}),
    "void_round": st.just({"reason": "misdeal"}),
    "count_batch": st.sampled_from([{**b, "cards": n} for b in BATCHES for n in (104, 104, 312, 103)]),
    "confirm_empty": DEVICES | st.sampled_from([{"device": "shuffler", "cards": n} for n in (104, 312, 3)]),
    **dict.fromkeys(("out_of_service", "in_service"), MACHINES),
}
ROLES = st.sampled_from([DEALER, SUPERVISOR, SUPERVISOR])
WHO = st.sampled_from(["ann", "bob"])
DAYS = st.sampled_from(["1", "1", "2"])
SEED = st.integers(0, 2**32)
TOLD = ("drawn_in_error", "dealer_skipped", "box_skipped", "void_round", "side_wagers_settled")
"""What people tell of a round."""
LOOKS = ("hole card natural", "hole card not_natural", "hole card error")
STARTS = ("closed", "open", "papers", "shoe", "shoe", "round", "dry", "rack_full", "second_shoe", "manual")


@cache
def started(kind: type[AnyOrder], start: str) -> FullSize:
    """A table from which a run goes on, the devices inspected and a gaming day begun."""
    t = FullSize(kind.table)
    t.restart()
    t.links()
    for device in ("shoe", "shuffler", "reader"):
        t.tap("inspect", device=device)
    if start == "closed":
        return t
    if start == "manual":
        t.tap("out_of_service", device="shuffler")
        for who in ("ann", "bob"):
            t.tap("confirm_empty", who=who, device="shuffler")
    t.tap("open", **({"mode": "manual-shoe"} if start == "manual" else {}))
    if start == "open":
        return t
    for batch in "AB":
        t.prepare(batch, paper=start == "papers")
    if start == "papers":
        return t
    if start == "manual":
        t.tap("reshuffle_by_hand", batch="A")
        t.cut_and_load()
        return t
    t.shuffle("A")
    t.swap()
    assert t.state.phase is Phase.BETWEEN_ROUNDS
    if start == "round":
        t.tap("bets_closed", boxes="1,2")
        t.cards(4)
    if start == "dry":
        t.tap("bets_closed", boxes="1")
        t.cards(len(t.stack) - 2)
        assert t.state.phase in IN_ROUND
    if start in ("rack_full", "second_shoe"):
        t.tap("shuffle_now")
        t.end_of_shoe()
        assert t.state.phase is Phase.RACK_FULL
    if start == "second_shoe":
        t.swap()
        assert t.state.shoe.batch == "B"
    return t


def in_phase(*phases):
    return precondition(lambda self: self.t.state.phase in phases)


class AnyOrder(RuleBasedStateMachine):
    """Honest steps are offered as often as wild ones, so that runs get far and still go wrong."""

    table = table_rules(decks=2, reader="reader", deck_age_h=30)

    @initialize(start=st.sampled_from(STARTS))
    def begin(self, start):
        self.t = started(type(self), start).again()

    # --- taps ---

    @rule(event=st.sampled_from(TAPS), data=st.data(), roles=ROLES, who=WHO)
    def any_tap(self, event, data, roles, who):
        if event == "certificate":
            batch = data.draw(EITHER)["batch"]
            args = certificate(self.table, batch)
        elif event in ("clear", "acknowledge"):
            name = "fault" if event == "clear" else "alarm"
            args = {name: data.draw(st.sampled_from([f.id for f in self.t.state.faults] or ["F0"]))}
        else:
            args = data.draw(ARGS.get(event, st.just({})))
        before = self.t.state
        if not self.t.make(Move(event, OperatorEvent(event, args, who, roles), 0, "tap")):
            assert self.t.state is before

    @in_phase(*IN_ROUND)
    @rule(event=st.sampled_from(TOLD), data=st.data(), cards=st.integers(0, 2))
    def told_of_the_round(self, event, data, cards):
        self.t.tap(event, **data.draw(ARGS.get(event, st.just({}))))
        self.t.cards(cards)

    @rule(seed=SEED, steps=st.integers(1, 8))
    def what_is_expected(self, seed, steps):
        """The main line of play, as the table itself calls for it."""
        random = Random(seed)
        for _ in range(steps):
            self.t.machines(complete=random.random() < 0.5)
            if not self.t.expected_tap(random, ending=random.random() < 0.1):
                self.t.cards(1)

    @rule(data=st.data(), role=ROLES)
    def a_fault_is_cleared(self, data, role):
        if self.t.state.faults:
            fault = data.draw(st.sampled_from(self.t.state.faults))
            self.t.tap("acknowledge", role, alarm=fault.id)
            self.t.tap("clear", role, fault=fault.id)

    # --- whole stretches ---

    @in_phase(Phase.BETWEEN_ROUNDS)
    @rule(boxes=st.sampled_from(BOXES), cut=st.booleans(), extra=st.integers(0, 12))
    def a_round(self, boxes, cut, extra):
        self.t.round(boxes, cut=cut, extra=extra)

    @in_phase(Phase.SHOE_END, Phase.BETWEEN_ROUNDS, Phase.BURN_DUE)
    @rule(event=st.sampled_from(["shuffle_now", "idle", "close"]))
    def the_end_of_the_shoe(self, event):
        if self.t.state.phase is not Phase.SHOE_END:
            self.t.tap(event)
        self.t.end_of_shoe()

    @in_phase(Phase.OPENING, Phase.RACK_FULL, Phase.BATCH_TAKEN)
    @rule()
    def the_swap(self):
        if self.t.state.phase is Phase.OPENING:
            self.t.shuffle(self.table.other(self.t.state.shoe.last_batch or "B"))
        self.t.swap()

    @in_phase(Phase.CUT_DUE, Phase.CUT_DONE, Phase.CUTTING_CARD_IN)
    @rule()
    def the_cut(self):
        self.t.cut_and_load()

    @precondition(lambda self: len(self.t.stack) > 0 and self.t.state.phase in IN_ROUND)
    @rule(more=st.booleans())
    def the_shoe_runs_dry(self, more):
        self.t.cards(len(self.t.stack) + 1)
        if more:
            self.t.tap("reshuffle_by_hand")
            self.the_rack_is_loaded()

    @in_phase(*RESHUFFLING)
    @rule()
    def the_rack_is_loaded(self):
        self.t.tap("cut", position=len(self.t.stack) // 2)
        self.t.tap("load_shoe", batch=self.t.state.shoe.batch)
        self.t.cards(2)

    @in_phase(Phase.IDLE, Phase.RACK_FULL)
    @rule(back=st.booleans())
    def nobody_plays(self, back):
        self.t.tap("idle")
        self.t.tap("spread")
        if back:
            self.t.tap("resume")

    @in_phase(Phase.OPENING, Phase.RACK_FULL, Phase.CLOSING)
    @rule(opens=st.booleans())
    def the_closing(self, opens):
        self.t.close()
        if opens:
            self.t.tap("open")

    @rule(batch=EITHER, paper=st.booleans(), steps=st.integers(1, 5), new=st.booleans())
    def a_batch_is_prepared(self, batch, paper, steps, new):
        if new:
            self.t.tap("replace_batch", **batch)
        if paper:
            self.t.prepare(batch["batch"], paper=True)
        for event in STEPS[:steps]:
            self.t.tap(event, who="ann" if event == "inspect" else "bob", **batch)

    # --- machines, the clock, crashes ---

    @rule(complete=st.booleans())
    def machines_go_on(self, complete):
        self.t.links()
        self.t.machines(complete=complete)

    @rule(data=st.data())
    def one_thing_happens(self, data):
        names = [m.name for m in self.t.may(0)]
        if names:
            self.t.happens((data.draw(st.sampled_from(names)),))

    @precondition(lambda self: len(self.t.facts) % 4 == 0)
    @rule(data=st.data())
    def mishap(self, data):
        by_name = {m.name: m for m in self.t.may(1)}
        self.t.make(by_name[data.draw(st.sampled_from(list(by_name)))])

    @rule(count=st.integers(1, 12))
    def some_cards(self, count):
        self.t.cards(count)

    @precondition(lambda self: len(self.t.facts) % 3 == 0)
    @rule(name=st.sampled_from(["face-up card", "face-up card", "unread card", "card of the other back"]))
    def an_odd_card(self, name):
        self.t.odd_card(name)

    @in_phase(*IN_ROUND)
    @rule(name=st.sampled_from(LOOKS), asked=st.booleans())
    def a_look_at_the_hole_card(self, name, asked):
        if asked:
            self.t.tap("peek")
        by_name = {m.name: m for m in self.t.may(1)}
        if name in by_name:
            self.t.make(by_name[name])

    @rule(hours=st.sampled_from([1, 1, 5, 25, -1, -30]), day=DAYS, found=st.booleans())
    def time_goes_on(self, hours, day, found):
        self.t.new_hour(hours, day)
        if found:
            for device in ("shoe", "shuffler", "reader"):
                self.t.tap("inspect", device=device)

    @rule(up=st.booleans())
    def crash_and_restart(self, up):
        self.t.restart()
        if up:
            self.t.links()

    @precondition(lambda self: self.t.state.shuffler.stage is Cycle.NONE)
    @rule(back=st.booleans())
    def the_shuffler_goes_out_of_service(self, back):
        self.t.tap("out_of_service", device="shuffler")
        if back:
            self.t.tap("in_service", device="shuffler")

    # --- what must hold whatever happened (the rest is checked at every step) ---

    @invariant()
    def the_view_names_no_unseen_card(self):
        if hasattr(self, "t"):
            self.t.seen()

    def teardown(self):
        if hasattr(self, "t"):
            self.t.replays()


class SixDecks(AnyOrder):
    """Side wagers, six decks, and the other reading of every switch."""

    table = table_rules(
        decks=6,
        settle_first=True,
        double_shoe=True,
        burn_after_dry=False,
        burn_on_dealer_change=False,
        discretionary=Discretionary.SAME_BATCH,
        reader="reader",
    )


class CardsAlone(AnyOrder):
    """A shoe that tells its cards and nothing else."""

    table = table_rules(decks=2, shoe_senses=frozenset(), reader="reader")


MACHINES_OF = {"two decks": (AnyOrder, 60), "six decks": (SixDecks, 30), "cards alone": (CardsAlone, 40)}


@pytest.mark.parametrize("name", MACHINES_OF)
def test_any_order(name):
    """The same walks each time: a change is judged by what it changes. New ones come with `make soak`."""
    play(*MACHINES_OF[name], derandomize=True)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MACHINES_OF)
def test_any_order_for_long(name):
    machine, examples = MACHINES_OF[name]
    play(machine, 40 * examples, steps=80)


def play(machine, examples, steps=40, *, derandomize=False):
    """Shrinking would take minutes: what failed tells its path."""
    how = {
        "max_examples": examples,
        "stateful_step_count": steps,
        "deadline": None,
        "derandomize": derandomize,
    }
    phases = (Run.explicit, Run.reuse, Run.generate)
    run_state_machine_as_test(machine, settings=settings(phases=phases, report_multiple_bugs=False, **how))
