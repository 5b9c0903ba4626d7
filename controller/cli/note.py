"""`status`, `alarms` and `faults` for people: the note a floor supervisor would leave for the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from controller.cli.event_lines import printable

Answer = Mapping[str, Any]

PHASES = {
    "closed": "the table is closed",
    "opening": "the cards are prepared for the first shuffle",
    "first_loaded": "the first batch is in the shuffler, its shuffle is to be started",
    "first_shuffling": "the first shuffle was started, its batch tells how far it is",
    "batch_taken": "a shuffled batch is out, the other one goes into the shuffler",
    "other_loaded": "the other batch is in the shuffler, its shuffle is to be started",
    "cut_due": "the shuffled batch is to be cut",
    "cut_done": "the batch was cut, the cutting card goes in next",
    "cutting_card_in": "the batch is ready to be dealt",
    "burn_due": "a card is to be burned",
    "between_rounds": "no round is in play",
    "round_burn": "a card is to be burned before the first one of this round",
    "dealing": "the initial cards are dealt",
    "side_wagers": "side wagers are settled before any further card",
    "hole_card": "the dealer's second card is due",
    "playing": "a round is in play",
    "shoe_end": "the shoe has ended, its cards go to the discard rack",
    "rack_full": "no batch is in the shoe, a shuffled one comes next",
    "reshuffle_cut": "the cards ran out in a round: the rack was shuffled by hand and is to be cut",
    "reshuffle_load": "the cards ran out in a round: the cut ones are dealt next",
    "reshuffle_burn": "the cards ran out in a round: a card is to be burned before it goes on",
    "idle": "nobody plays",
    "closing": "the table is closing: every device is emptied, each batch counted",
}
PLACES = {
    "in_hand": "in hand",
    "shuffler": "in the shuffler",
    "shoe": "in the shoe",
    "table": "on the layout",
    "rack": "in the discard rack",
    "aside": "set aside in the shoe",
}
CYCLES = {
    "none": "not shuffled",
    "checking": "its shuffle is about to start",
    "starting": "its shuffle is about to start",
    "running": "being shuffled",
    "proved": "shuffled, waits for its turn",
}
MEANWHILE = ("cut_due", "cut_done", "cutting_card_in", "between_rounds", "side_wagers", "playing")
"""Phases in which nobody waits for the shuffler."""
STEPS = {
    "received": "to be inspected",
    "inspected": "inspected, to be verified by a supervisor",
    "verified": "verified, to be spread",
    "spread": "spread, to be inspected by a player",
    "player_inspected": "inspected by a player, to be washed",
    "washed": "washed, to be shuffled",
    "as_it_came": "as it came, to be shuffled",
    "certified": "certified, to be shuffled",
}
PROOFS = {
    "machine": "shuffled",
    "certificate": "certified, shuffled before it came",
    "hand": "shuffled by hand",
}
ENDINGS = {"idle": "then the table goes idle", "close": "then the table closes"}

UNUSABLE = ("device_down", "inspection_due")
"""Alarms of a device that is not used as long as they last."""


def row(name: str, text: str) -> str:
    """One line; a text may quote what a device says, which no terminal shall obey."""
    return f"{name:<11} {printable(text)}"


def kind(fact: Answer) -> str:
    """What a fact is called; an alarm is latched nowhere."""
    alarm = fact["kind"] == "fault_latched" and fact["blocks"] == "nothing"
    return "alarm_raised" if alarm else str(fact["kind"])


def status(s: Answer, now: datetime, *, bold: bool) -> Iterator[str]:
    rounds = f"round {s['round']['number']} in play" if s["round"] else _count(s["rounds"], "round")
    yield row("table", f"{s['table']}, {rounds}, fact {s['fact']}")
    phase = row("phase", f"{s['phase']}: {PHASES.get(s['phase'], 'see `cutcard machine`')}")
    yield phase.replace(s["phase"], f"\033[1m{s['phase']}\033[0m", 1) if bold else phase
    if s["round"]:
        yield row("round", _round(s["round"], counted=s["shoe"]["device"] is not None))
        if s["round"]["hands"]:
            yield row("hands", "; ".join(map(_hand, s["round"]["hands"])))
    if s["settlement"]:
        yield row("settled", _settlement(s["settlement"]))
    if s.get("side_wagers"):
        yield row("wagers", _wagers(s["side_wagers"]))
    if s["reader"] and s["reader"].get("procedure"):
        yield row("reader", s["reader"]["procedure"])
    yield row("shoe", _shoe(s))
    for name, batch in s["batches"].items():
        yield row(f"batch {name}", _batch(batch, s, now))
    if why := s["shuffler"]["not_started"]:
        yield row("not started", f"{why}{_since(s['shuffler']['since_at'], now)}")
    yield from _next(s)
    for device, who in s["first_to_look"].items():
        yield row("looked", f"into the {device}: {who} saw it empty; one more person must look")
    for place, name in enumerate(sorted({*s["ports"], *s["devices"]})):
        device = s["devices"].get(name, {})
        says = _port(s["ports"].get(name, {}), device.get("verdict"), up=device.get("up", False))
        if s["reader"] and s["reader"]["device"] == name and not s["reader"]["in_use"]:
            says += "; the table deals without it"
        yield row("" if place else "devices", f"{name}: {says}")
    without = ["the shuffler (out of service)"] if s["shuffler"]["out"] else []
    without += ["the hole-card reader"] if s["reader"] and not s["reader"]["in_use"] else []
    if without:
        yield row("without", " and ".join(without))
    if s["stopped"]:
        yield row("STOPPED", s["stopped"])
    yield from alarms(s["alarms"], now)
    if s["refused"]:
        yield row("refused", _refused(s["refused"], now))


def alarms(found: Sequence[Answer], now: datetime) -> Iterator[str]:
    """Each alarm and latched fault: since when, what it means for the table, what to do."""
    for alarm in found:
        yield from _alarm(alarm, now)


# --- where the cards are ---


def _round(round_: Answer, *, counted: bool) -> str:
    boxes = [str(number) for number in round_["boxes"]]
    where = f"box {boxes[0]}" if len(boxes) == 1 else f"boxes {', '.join(boxes[:-1])} and {boxes[-1]}"
    dealt = sum(card["to"] != "burned" for card in round_["cards"])
    words = f"{where}, {_count(dealt, 'card')}" if counted else where
    if round_["dealer_hands_in_all"] > 1:
        words += f", the dealer's hand {round_['dealer_hands'] + 1} of {round_['dealer_hands_in_all']}"
    owed = "; the dealer's second card is owed or came late: cards stay hidden until the round is settled"
    return words + owed if round_["owed"] else words


def _hand(hand: Answer) -> str:
    total = (
        "total not known" if hand["total"] is None else f"{'soft ' if hand['soft'] else ''}{hand['total']}"
    )
    return f"{hand['hand']} {total}, {hand['state']}{', insured' if hand['insured'] else ''}"


def _settlement(found: Answer) -> str:
    """How the last round ended, in the order in which it is settled, or why nobody can tell."""
    if "why" in found:
        return f"round {found['round']}: nobody can tell: {found['why']}"
    dealer = found["dealer"]
    house = "the dealer's hand unturned" if dealer is None else f"dealer {dealer['total']}"
    house += " (a natural)" if dealer and dealer["natural"] else ""
    hands = [f"{h['hand']} {_ends(h)}{', doubled' if h['doubled'] else ''}" for h in found["hands"]]
    insured = [f"insurance of box {i['box']} {_ends(i)}" for i in found["insurance"]]
    return f"round {found['round']}, {house}: {'; '.join([*hands, *insured])}"


def _ends(wager: Answer) -> str:
    words = {"win": "wins", "lose": "loses", "push": "is a push", "surrender": "loses half"}
    return " ".join(filter(None, (words[wager["outcome"]], wager["odds"])))


def _wagers(found: Answer) -> str:
    """The losers of match-the-dealer, which are collected first, then the winners; over/under-13 by box."""
    words = [f"box {row['box']} {_matched(row)}" for row in found.get("match", ())]
    if thirteens := found.get("over_under_13"):
        boxes = ", ".join(f"box {row['box']} {row['wins'] or 'neither'}" for row in thirteens)
        words.append(f"over/under-13: {boxes}")
    return "; ".join(words)


def _matched(row: Answer) -> str:
    if row["outcome"] == "won":
        return "wins " + " and ".join(f"{odds} to 1" for odds in row["pays"])
    return "lost" if row["outcome"] == "lost" else "cannot be told: look at its cards"


def _shoe(s: Answer) -> str:
    shoe = s["shoe"]
    if not shoe["batch"]:
        return f"empty, {shoe['number']} so far"
    words = f"number {shoe['number']}, batch {shoe['batch']}"
    words += ", nobody counts the cards" if shoe["left"] is None else f", {_count(shoe['left'], 'card')} left"
    words += ", locked" if shoe.get("locked") else ""
    words += ", the stub is to be counted" if shoe.get("stub_due") else ""
    if used := s["batches"][shoe["batch"]]["cards"].get("rack", 0) if "may_return" in shoe else 0:
        words += f", {_count(used, 'used card')} in the rack: {shoe['may_return'] or 'none'} may go back now"
    card = shoe["cutting_card"]
    if card["seen"]:
        words += f", cutting card out at {card['at']}" if card["at"] else ", cutting card out"
    if shoe["closing"] == "one_more_round":
        words += "; one more round"
    elif shoe["closing"] == "this_round":
        words += "; ends with this round" if s["round"] else "; it has ended"
    return f"{words}; {ENDINGS[s['ending']]}" if s["ending"] in ENDINGS else words


def _batch(batch: Answer, s: Answer, now: datetime) -> str:
    cards = batch["cards"]
    dealer = "with the dealer" if s["shoe"]["left"] is not None else "with the dealer or dealt"
    names = PLACES if s["shoe"]["device"] else {**PLACES, "shoe": dealer}
    places = ", ".join(f"{count} {names.get(place, place)}" for place, count in cards.items())
    words = f"{batch['back']}: {places or 'not at the table'}"
    if batch["unfit"]:
        missing = f", card {', '.join(batch['missing'])}" if batch["missing"] else ""
        return f"{words}; OUT OF PLAY ({batch['unfit']}{missing}){_since(batch['unfit_since_at'], now)}"
    if "shuffler" in cards:
        words += f"; {CYCLES.get(s['shuffler']['cycle'], '')}"
    elif batch["shuffled"]:
        words += f"; {PROOFS[batch['shuffled_by']]}{' and cut' if batch['cut'] else ', not cut'}"
    elif "in_hand" in cards and s["phase"] != "closing":
        spread = s["phase"] == "idle" and batch["prep"] in ("washed", "certified", "as_it_came")
        words += "; lies spread" if spread else f"; {STEPS[batch['prep']]}"
    age = batch.get("age_h")
    return f"{words}; {age} h at this table" if age and age >= 24 else words


# --- what is next ---


def _next(s: Answer) -> Iterator[str]:
    name = "next"
    for text, roles in s["allowed_to"].items():
        yield row(name, f"{text} ({_or(roles)})")
        name = ""
    shuffling = s["shuffler"]["cycle"] in ("starting", "running")
    meanwhile = shuffling and s["phase"] in MEANWHILE and str(s["awaiting"]).startswith("the shuffler ")
    if s["awaiting"] and not meanwhile:
        yield row("waiting", f"for {s['awaiting']}")
    elif not s["allowed_to"]:
        yield row(name, "nothing from you")


# --- what is wrong ---


def _alarm(alarm: Answer, now: datetime) -> Iterator[str]:
    latched = alarm.get("latched", True)
    about = [f"batch {alarm['batch']}"] if alarm["batch"] else []
    about += [alarm["device"]] if alarm["device"] else []
    what = f"{alarm['what']} ({', '.join(about)})" if about else alarm["what"]
    since = _since(alarm["since_at"], now)
    if alarm.get("state") == "gone":
        since = _since(alarm["gone_at"], now, "gone since")
    yield row(f"{'fault' if latched else 'alarm'} {alarm['id']}", what + since)
    yield row("", f"{alarm['cause']} ({alarm['code']})")
    if alarm.get("state") == "gone":
        yield row("", f"nobody acknowledged it: `cutcard do acknowledge alarm={alarm['id']}`")
        return
    waits = "; what needs the device waits" if alarm["code"] in UNUSABLE else ""
    yield row("", f"{alarm['stops']}{waits}: {alarm['remedy']}")
    if latched and alarm.get("cause_gone"):
        yield row("", f"its cause is gone: `cutcard faults clear {alarm['id']}` ({_or(alarm['cleared_by'])})")
    if alarm.get("acknowledged"):
        yield row("", f"acknowledged by {alarm['acknowledged']}")
    elif "state" in alarm:
        yield row("", "not acknowledged")


def _refused(refused: Answer, now: datetime) -> str:
    clause = f" [{refused['clause']}]" if refused["clause"] else ""
    what = refused["event"] or "an event that there is not"
    return f"last: {what} by {refused['who']}, {refused['code']}{clause}{_since(refused['at'], now, 'at')}"


# --- devices ---


def _port(port: Answer, verdict: str | None, *, up: bool) -> str:
    if port.get("hint"):
        return str(port["hint"])
    if verdict in {"CHANGED", "UNLISTED"}:
        return f"NOT THE APPROVED DEVICE ({verdict}): see `faults`; nothing it says is believed"
    if not up and port.get("link") == "open":
        return f"no session with the device yet ({port['text']}); `journal tail` tells why the last one ended"
    if not up:
        return port.get("text") or "waiting"
    age = port.get("last_frame_s")
    return "connected" if age is None else f"connected, last frame {age} s ago"


# --- words ---


def _since(at: str | None, now: datetime, word: str = "since") -> str:
    """`, since 14:02 (12 min)`, by the clock of whoever reads it."""
    if at is None:
        return ""
    then = datetime.fromisoformat(at)
    local, today = then.astimezone(), now.astimezone()
    shown = f"{local:%H:%M}" if local.date() == today.date() else f"{local:%d %b %H:%M}"
    return f", {word} {shown} ({_long((now - then).total_seconds())})"


def _long(seconds: float) -> str:
    minutes = int(max(seconds, 0)) // 60
    if minutes < 1:
        return "less than a minute"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours < 48 else f"{hours // 24} days"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _or(roles: Sequence[str]) -> str:
    return " or ".join(roles) or "nobody alone"
