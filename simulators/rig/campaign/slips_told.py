"""What people tap wrongly, tell wrongly, or do out of turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from controller.table.phases import TAPPED_IN, Phase
from devices.events import Sense
from simulators.models.cards import Card
from simulators.rig.campaign.remedies import ROUND
from simulators.rig.campaign.slip import Scene, Slip, before, during
from simulators.rig.steps import Script, Tap, args_of

ONCE = ("open", "load_shuffler", "cut", "insert_cutting_card", "load_shoe", "bets_closed", "round_settled")
"""Taps that cannot be meant twice in a row."""
LOOKS_BACK = 40
"""The cards of a round are among so many things that happened to the shoe."""


def _wrong_tap(at: Scene) -> Script:
    phase = Phase(at.view.phase)
    events = [event for event, phases in TAPPED_IN.items() if phase not in phases]
    yield at.try_(at.random.choice(events))


def _double_tap(at: Scene) -> Script:
    yield Tap(at.dealer.sent["do"], args_of(at.dealer.sent), slip=True)


def _lost_answer(at: Scene) -> Script:
    sent = at.dealer.sent
    before = at.view.seq
    yield Tap(sent["do"], args_of(sent), sent.get("by", ""), id=sent["id"], slip=True)
    if not at.dealer.heard.get("ok") or any(f["fact"] > before for f in at.dealer.heard["facts"]):
        at.felt.referee.violation("double tap", f"{sent['do']} sent again under its id: {at.dealer.heard}")


def _used_id(at: Scene) -> Script:
    yield Tap("dealer_change", {}, id=at.dealer.sent["id"], slip=True)


def _forgotten_burn(at: Scene) -> Script:
    yield at.try_("bets_closed", boxes="1")


def _wrong_box_told(at: Scene) -> Script:
    played = at.dealer.acts.last_boxes
    others = [n for n in range(1, at.rules.boxes + 1) if n not in played]
    yield at.try_("cutting_card_at", box=at.random.choice(others or [at.rules.boxes + 1]))


def _bribed_clear(at: Scene) -> Script:
    yield at.try_("clear", "dealer", fault=next(iter(at.view.faults)))


def _peek_early(at: Scene) -> Script:
    yield at.try_("peek")


def _may_look_again(at: Scene) -> bool:
    """Whether the table was told an up card that asks for no look."""
    up = next(iter(at.felt.layout.places["dealer"]), None)
    told = [h.data["face"] for h in at.felt.shoe.happenings[-LOOKS_BACK:] if h.kind == "drawn"]
    return (
        at.event == "round_settled"
        and at.rules.reader in at.view.up
        and bool(at.rules.shoe_senses)
        and not at.view.faults
        and at.felt.laid() <= len(told)
        and None not in told
        and isinstance(up, Card)
        and up.face in told
        and up.rank not in "ATJQK"
    )


def _look_again(at: Scene) -> Script:
    up, hole = (item for item in at.felt.layout.places["dealer"][:2] if isinstance(item, Card))
    at.felt.reader.slide_in(up, hole)
    at.felt.reader.take_out()
    yield None


def _swap_in_round(at: Scene) -> Script:
    backs = {} if Sense.BACK in at.rules.shoe_senses else {"other_backs": 0}
    yield Tap("collect_rack", {"gauge": "full", **backs}, slip=True)


def _thin_cut(at: Scene) -> Script:
    yield at.try_("cut", position=at.random.choice((at.rules.least_cut - 1, at.rules.batch_size)))


def _verified_alone(at: Scene) -> Script:
    assert isinstance(at.step, Tap)
    yield Tap("inspect", at.step.args, "dealer")
    yield Tap("verify", at.step.args, "dealer", slip=True)


def _told_otherwise(**other: object) -> Callable[[Scene], Script]:
    """The tap is made, with something else said."""

    def act(at: Scene) -> Script:
        assert isinstance(at.step, Tap)
        yield Tap(at.step.event, {**at.step.args, **other}, at.step.by)

    return act


def _wrong_count_told(at: Scene) -> Script:
    assert isinstance(at.step, Tap)
    yield Tap(at.step.event, {**at.step.args, "cards": at.rules.batch_size - 1}, at.step.by)


def _torn_card(at: Scene) -> Script:
    batch = at.view.batches[-1]
    yield Tap("dead_card", {"batch": batch, "reason": at.random.choice(("damaged", "marked", "missing"))})


TOLD: Mapping[str, Slip] = {
    "wrong_tap": Slip("a tap that is not expected now", lambda _: True, _wrong_tap),
    "double_tap": Slip("the same tap once more", before(*ONCE), _double_tap, after=True),
    "lost_answer": Slip(
        "a tap is sent again under its id", lambda at: bool(at.event), _lost_answer, (), after=True
    ),
    "used_id": Slip("another tap under a used id", lambda at: bool(at.event), _used_id, after=True),
    "no_more_bets_twice": Slip("bets are closed twice", before("bets_closed"), _double_tap, after=True),
    "forgotten_burn": Slip("bets are closed before the burn", during("burn_due"), _forgotten_burn),
    "wrong_box_told": Slip(
        "the cutting card came out where nobody plays", during("playing"), _wrong_box_told
    ),
    "bribed_clear": Slip("a dealer clears a fault", lambda at: bool(at.view.faults), _bribed_clear),
    "peek_early": Slip(
        "the reader is asked before its time", during("dealing", "between_rounds"), _peek_early
    ),
    "looked_out_of_turn": Slip(
        "the dealer's cards go into the reader when no look is due",
        _may_look_again, _look_again, ("reader_misuse", "reader_failed"), over=True,
    ),
    "swap_in_round": Slip("the rack is collected in a round", during(*ROUND), _swap_in_round),
    "thin_cut": Slip("the cut is too near an end", before("cut"), _thin_cut),
    "verified_alone": Slip(
        "who inspected a batch verifies it",
        lambda at: isinstance(at.step, Tap) and at.step.event == "inspect" and "batch" in at.step.args,
        _verified_alone, instead=True,
    ),
    "wrong_gauge": Slip(
        "the rack is told to be short",
        before("collect_rack"), _told_otherwise(gauge="short"), ("rack_gauge",), instead=True,
    ),
    "wrong_count_told": Slip(
        "a card too few is told at the closing",
        before("count_batch"), _wrong_count_told, ("wrong_count",), instead=True,
    ),
    "torn_card": Slip(
        "a card of the batch in the shoe is torn", before("round_settled"), _torn_card, ("dead_card",)
    ),
}  # fmt: skip
