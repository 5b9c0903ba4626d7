"""The invariants of rules.md, section M, over random orders of taps, device events, faults and crashes."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controller.table.draft import Decision
from controller.table.evolve import evolve
from controller.table.inputs import OperatorEvent, Role
from controller.table.machine import TableMachine
from controller.table.phases import IN_ROUND, TAPS, Phase
from controller.table.rules import expected
from controller.table.state import Closing, Cycle, Place, checkpoint, initial, restore
from controller.table.view import snapshot
from devices import events as ev
from devices.events import DECK
from firmware_bridge.link import Done, NotSent, Refused, Unknown
from tests.support.table import SETTINGS, Table, table_rules

ARGS = {
    "load_shuffler": st.sampled_from([{"batch": "A"}, {"batch": "B"}]),
    "load_shoe": st.sampled_from([{"batch": "A"}, {"batch": "B"}]),
    "offer_cut": st.sampled_from([{"box": str(n)} for n in range(1, 8)] + [{"box": "dealer"}]),
    "cut": st.sampled_from([{"position": n} for n in (9, 10, 26, 42, 43)]),
    "insert_cutting_card": st.sampled_from([{"position": n} for n in (12, 13, 40)]),
    "bets_closed": st.sampled_from([{"boxes": "1"}, {"boxes": "1,2,7"}]),
    "cutting_card_at": st.sampled_from([{"box": "1"}, {"box": "dealer"}, {}]),
    "collect_rack": st.sampled_from(
        [{"gauge": "full"}] * 5 + [{"gauge": "short"}, {"gauge": "short", "shoe_empty": True}]
    ),
}
ROLES = st.sampled_from([frozenset({Role.DEALER}), frozenset({Role.SUPERVISOR})])


class AnyOrder(RuleBasedStateMachine):
    """Honest steps are offered as often as wild ones, so that runs get far and still go wrong."""

    senses = frozenset(ev.Sense)
    """What the shoe tells beside its cards."""

    @initialize(start=st.sampled_from(["closed", "shoe", "shoe", "round", "rack_full", "second_shoe"]))
    def begin(self, start):
        self.table = t = Table(table_rules(shoe_senses=self.senses))
        self.shoes: list[str] = []
        if start == "closed":
            t.boot()
            t.links_up()
            return
        t.open_to_shoe()
        self.shoes.append("A")
        if start == "round":
            t.deal("1,2")
        if start in ("rack_full", "second_shoe"):
            t.complete()
            t.tap("shuffle_now")
            t.end_shoe()
        if start == "second_shoe":
            t.swap_to("B")
            self.shoes.append("B")
        self.stack = t.stack

    # --- taps ---

    @precondition(lambda self: self.table.state.phase is Phase.BETWEEN_ROUNDS and len(self.stack) > 8)
    @rule(boxes=st.sampled_from(["1", "2,5"]), cut=st.booleans())
    def a_round(self, boxes, cut):
        t = self.table
        self.tap("bets_closed", {"boxes": boxes}, frozenset())
        while t.state.phase in (Phase.DEALING, Phase.HOLE_CARD):
            self.cards(1)
            if cut and not t.state.shoe.cut_seen:
                if ev.Sense.CUT_CARD in self.senses:
                    t.event(ev.CutCard)
                else:
                    self.tap("cutting_card_at", {"box": "dealer"}, frozenset())
        self.tap("round_settled", {}, frozenset())

    @precondition(lambda self: self.table.state.phase is Phase.SHOE_END)
    @rule()
    def the_stub(self):
        sensed = ev.Sense.EMPTY in self.senses
        while not self.table.state.shoe.empty and (self.stack or sensed):
            self.cards(1)
        more = {} if self.table.state.shoe.empty else {"shoe_empty": True}
        self.tap("collect_rack", {"gauge": "full", **more}, frozenset())

    @precondition(lambda self: self.table.state.phase in (Phase.RACK_FULL, Phase.BATCH_TAKEN))
    @rule()
    def the_swap(self):
        other = self.table.rules.other(self.table.state.shoe.last_batch or "B")
        self.tap("take_from_shuffler", {}, frozenset())
        self.honest_ends()
        self.tap("load_shuffler", {"batch": self.table.rules.other(other)}, frozenset())
        self.tap("start_shuffle", {}, frozenset())
        self.honest_ends()

    @precondition(lambda self: self.table.state.phase is Phase.CUT_DUE)
    @rule()
    def the_cut(self):
        self.expected_tap_of("offer_cut")
        self.tap("cut", {"position": 26}, frozenset())
        self.tap("insert_cutting_card", {"position": 13}, frozenset())
        self.expected_tap_of("load_shoe")

    def expected_tap_of(self, event):
        for line in expected(self.table.rules, self.table.state):
            if line.startswith(event):
                self.tap(event, dict(p.split("=") for p in line.split()[1:]), frozenset())
                return

    def honest_ends(self):
        while self.table.effects:
            self.end_honestly()

    @rule(event=st.sampled_from(TAPS), data=st.data(), roles=ROLES)
    def any_tap(self, event, data, roles):
        args = data.draw(ARGS.get(event, st.just({})))
        if event == "clear":
            args = {"fault": self.table.state.faults[-1].id} if self.table.state.faults else {}
        self.tap(event, args, roles)

    @rule(data=st.data())
    def expected_tap(self, data):
        lines = expected(self.table.rules, self.table.state)
        if lines:
            event, *pairs = data.draw(st.sampled_from(lines)).split()
            args = dict(p.split("=") for p in pairs)
            args = {k: v.split("..")[0].split("|")[0].replace("N", "1") for k, v in args.items()}
            self.tap(event, args, frozenset({Role.SUPERVISOR}))

    def tap(self, event, args, roles):
        before = self.table.state
        decision = self.table.give(OperatorEvent(event, args, roles=roles))
        if not isinstance(decision, Decision):
            assert self.table.state == before
            return
        if event == "load_shoe":
            batch = before.batches[args["batch"]]
            assert batch.proof is not None
            assert batch.cut
            assert batch.at(Place.IN_HAND) == 52
            self.shoes.append(args["batch"])
            self.stack = list(DECK)
        if event == "bets_closed":
            assert not before.shoe.cut_seen or before.shoe.closing is Closing.ONE_MORE_ROUND
            assert before.batches[before.shoe.batch].at(Place.RACK) >= 1, "burned before the first round"
        if event == "clear":
            assert Role.DEALER not in roles

    # --- devices ---

    @precondition(lambda self: self.table.effects)
    @rule(choice=st.sampled_from(["honest"] * 6 + ["refused", "not_sent", "unknown"]))
    def command_ends(self, choice):
        if choice == "honest":
            self.end_honestly()
        else:
            failed = {"refused": Refused("3"), "not_sent": NotSent("x"), "unknown": Unknown("x")}
            self.table.end(failed[choice])

    def end_honestly(self):
        t = self.table
        name = t.effects[0].name
        if name == "start":
            t.cycle += 1
            t.token = t.effects[0].args["token"]
        answers = {
            "settings": {"settings": {**SETTINGS, "decks": 1}, "crc_ok": True},
            "status": {"inside": 52, "cycle": t.cycle, "token": t.token},
            "start": {"cycle": t.cycle},
            "release": {"count": 52, "inside": 0},
        }
        command = t.end(Done(answers[name]))
        if name == "start":
            t.event(ev.CycleStarted, "shuffler", cycle=t.cycle, token=t.token)
        if name == "release" and t.state.shuffler.batch is not None:
            t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=command.args["token"])

    @precondition(lambda self: self.table.state.shuffler.stage is Cycle.RUNNING)
    @rule()
    def cycle_completes(self):
        self.table.complete()

    @precondition(lambda self: self.table.state.shoe.batch is not None)
    @rule(count=st.integers(1, 12))
    def some_cards(self, count):
        self.cards(count)

    def cards(self, count):
        for _ in range(count):
            if self.stack:
                back = self.table.rules.back(self.table.state.shoe.batch)
                back = back if ev.Sense.BACK in self.senses else None
                self.table.event(ev.CardDrawn, card=self.stack.pop(), back=back)
            elif ev.Sense.EMPTY in self.senses and not self.table.state.shoe.empty:
                self.table.event(ev.ShoeEmpty)

    @precondition(lambda self: len(self.table.facts) % 4 == 0)
    @rule(
        kind=st.sampled_from(
            [
                (ev.CutCard, "shoe", {}),
                (ev.Door, "shuffler", {"open": True}),
                (ev.Jam, "shuffler", {"place": "exit"}),
                (ev.CycleAborted, "shuffler", {"cycle": 1, "cause": "x"}),
                (ev.BatchReleased, "shuffler", {"count": 52, "inside": 0}),
                (ev.BatchReleased, "shuffler", {"count": 40, "inside": 12}),
                (ev.CycleStarted, "shuffler", {"cycle": 3, "token": "ff"}),
                (ev.GapPossible, "shuffler", {"missing": 2}),
                (ev.LinkDown, "shoe", {"reason": "x"}),
                (ev.CardDrawn, "shoe", {"card": "8S", "back": "blue"}),
                (ev.CardDrawn, "shoe", {"card": None, "back": None}),
                (ev.ShoeEmpty, "shoe", {}),
            ]
        )
    )
    def mishap(self, kind):
        event, device, fields = kind
        self.table.event(event, device, **fields)

    @rule(shuffler_boot=st.integers(1, 2), stage=st.sampled_from(["done", "loaded", "empty"]))
    def crash_and_restart(self, shuffler_boot, stage):
        t = self.table
        t.state = restore(checkpoint(t.state))
        t.machine = TableMachine(t.rules, t.state)
        t.boot(f"{len(t.facts):032x}")
        t.links_up(shuffler_boot=shuffler_boot, state=stage, inside=52 if stage != "empty" else 0)

    # --- what must hold whatever happened ---

    @invariant()
    def no_card_is_lost_or_made(self):
        if self.table.state.phase is not Phase.CLOSED:
            for batch in self.table.state.batches.values():
                assert sum(batch.cards.values()) == 52

    @invariant()
    def never_two_batches_in_shoe_rack_or_shuffler(self):
        for place in (Place.SHOE, Place.RACK, Place.SHUFFLER):
            holders = [b.id for b in self.table.state.batches.values() if b.at(place)]
            assert len(holders) <= 1, place

    @invariant()
    def batches_alternate(self):
        assert all(a != b for a, b in zip(self.shoes, self.shoes[1:], strict=False))

    @invariant()
    def no_round_without_a_batch_in_the_shoe(self):
        state = self.table.state
        if state.phase in IN_ROUND:
            assert state.shoe.batch is not None
            assert state.round is not None

    def teardown(self):
        """The journal rebuilds the state."""
        if hasattr(self, "table"):
            state = initial(self.table.rules)
            for fact in self.table.facts:
                state = evolve(state, fact)
            assert state == self.table.state

    @invariant()
    def the_view_names_no_unseen_card(self):
        state = self.table.state
        hidden = [c for c in (state.round.cards if state.round else ()) if not c.seen]
        shown = snapshot(self.table.rules, state)["round"]
        if shown:
            assert sum(c["card"] is None for c in shown["cards"]) >= len(hidden)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


class CardsAlone(AnyOrder):
    """The same with a shoe that tells its cards and nothing else."""

    senses = frozenset()


TestCardsAlone = CardsAlone.TestCase
TestCardsAlone.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
