"""Which table a shoe opens, and what goes wrong there: everything drawn from the campaign's seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from controller.table.profiles import TableRules
from simulators.faults import FAULTS, UnfitFault
from simulators.faults.script import ANY, Step, near, quoted
from simulators.hosts.line import Line
from simulators.hosts.memory_host import MemoryHost
from simulators.models.shoe import Shoe
from simulators.rig.campaign.blows import BLOWS, DAEMON, DEALER
from simulators.rig.campaign.kinds import KINDS, LISTENED, Kind, rules_of, wire_of
from simulators.rig.campaign.slips import SLIPS
from simulators.rig.felt import BEE_TEK, CONTINUOUS, MANAGED_SHOE, READER, SHUFFLER, STACK_SHOE, Felt
from simulators.wire.angel_eye import SEQUENCES, STARTS
from simulators.wire.bee_tek import MODES, SEPARATORS, UNREAD
from simulators.wire.device import WireDevice

PER_SHOE = (1, 1, 1, 2, 2, 3)
"""How many faults are planned for a shoe; each number as likely."""
SETTINGS = 1
"""Settings at one table at most: they stay."""
OBSCURE = 1
"""How often at one table cards are hidden, power is lost or people do wrong: what follows has one cause."""
WHOLE = {**{name: blow.device for name, blow in BLOWS.items()}, **dict.fromkeys(SLIPS, DEALER)}
"""What befalls a whole table, and the device that a script names for it."""
LAYER_OF = {
    **{name: fault.layer for name, fault in FAULTS.items()},
    **dict.fromkeys(BLOWS, "daemon"),
    **dict.fromkeys(SLIPS, "people"),
}
DARK = frozenset(
    {
        "power_dip", "reboot", "reboot_mid_cycle", "reboot_mid_round", "brown_out", "freeze",
        "face_up", "cut_unseen", "early_card", "drop", "sticks", "extra_card", "no_slot",
    }
)  # fmt: skip
"""Faults of machines by which cards may be missed, though the machine knows where they are."""
ONLY_UPLOADS = frozenset(
    {
        "keep_old", "spoil", "stay_in_bootloader", "quiet_bootloader", "upload_reboot", "upload_refused",
        "remembers_upload", "erase_first", "slow_erase", "watchdog", "small_buffer", "no_parameters",
        "no_images",
    }
)  # fmt: skip
"""The daemon loads nothing into a device: at a table these never strike."""
BY_PEOPLE = frozenset({"door"})
"""At a table somebody does it, who closes it and goes on: door_opened_mid_cycle."""
ONLY_ANSWERS = frozenset({"mute"})
"""What is harmless where the host asks again: what a shoe tells once is lost, the last card for ever."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One table: what is played there, from which seed, for how many shoes, and what goes wrong.

    `table` is the name of its kind, `shoe` the driver of its shoe, `first` the number of its first shoe.
    Without `rules` there is a shoe alone, and a driver that listens to it.
    """

    table: str
    rules: TableRules | None
    shoe: str = MANAGED_SHOE
    seed: str = ""
    shoes: int = 1
    steps: tuple[Step, ...] = ()
    first: int = 1


Draw = Callable[[Random], str | None]


def _seconds(least: float, most: float) -> Draw:
    return lambda random: f"{_scaled(random, least, most):.2g}"


def _whole(least: int, most: int) -> Draw:
    return lambda random: str(random.randint(least, most))


def _word(*words: str) -> Draw:
    return lambda random: random.choice(words)


def _maybe(draw: Draw) -> Draw:
    """Now and then no VALUE: what the fault takes by itself."""
    return lambda random: draw(random) if random.random() < 0.7 else None


VALUES: Mapping[str, Draw] = {
    **dict.fromkeys(("silent", "deaf", "mute", "busy_answers", "stall"), _seconds(0.3, 20)),
    **dict.fromkeys(("unplug", "gone_and_back", "busy", "denied"), _maybe(_seconds(0.1, 60))),
    **dict.fromkeys(
        ("reboot", "reboot_mid_cycle", "power_cut_at_card", "reboot_mid_round", "early_card"),
        _maybe(_seconds(0.1, 5)),
    ),
    **dict.fromkeys(
        ("late_answer", "delay", "line_cut", "second_reader", "duplicate"), _maybe(_seconds(0.05, 6))
    ),
    **dict.fromkeys(("power_cut", "power_dip"), _maybe(_seconds(0.1, 60))),
    **dict.fromkeys(
        ("stuck", "counted_twice", "missing", "extra", "unreadable", "miscount_out"), _maybe(_whole(1, 3))
    ),
    "miscount": _maybe(_word("1", "-1", "2")),
    "sticks": _maybe(_seconds(1, 60)),
    "latency": _maybe(_seconds(0.004, 0.3)),
    "leave_inside": _whole(1, 16),
    "recovered_jam": _maybe(_whole(1, 4)),
    "wear": _maybe(_word("0.02", "0.05", "0.2")),
    "wrong_back_card": _word("green"),
    "refuse": _maybe(_word(*"123456789")),
    "brown_out": _maybe(_word("before", "after")),
    "wrong_identity": _maybe(_word("serial", "product", "vendor", "class", "protocol")),
    "settings_differ": _maybe(_word("crc", "decks", "mode")),
    "clock_jump": _maybe(_word("-86400", "-3600", "-5", "5", "3600")),
    "separator": _word(*sorted(SEPARATORS)),
    "mode": _word(*sorted(MODES)),
    "unread": _word(*sorted(UNREAD)),
    "pace": _word("real"),
    "sequence": _word(*sorted(SEQUENCES)),
    "start_again": _word(*STARTS),
    "drop_copy": _maybe(_word("1", "2", "3", "12", "23", "123")),
    "damage": _maybe(_whole(0, 20)),
    "wrong_baud": _maybe(_word("0.5", "2", "4")),
}
"""Values by fault; without a row it gets none."""
COMMANDS: Mapping[str, tuple[str, ...]] = {
    MANAGED_SHOE: ("lock", "unlock", "status", ANY),
    STACK_SHOE: ("dispense", "status", ANY),
    CONTINUOUS: ("start", "status", ANY),
    BEE_TEK: (),
    SHUFFLER: ("start", "release", "report", "status", ANY),
    READER: ("peek", ANY),
    DAEMON: ("start", "release", ANY),
}
"""What the daemon sends, by driver; a step of the daemon itself waits for what it sends to any."""
MOMENTS: Mapping[str, tuple[str, ...]] = {
    "crash_before_commit": ("nth",),
    "crash_after_commit": ("nth",),
    "disk_full": ("nth",),
    "crash_before_send": ("command",),
    "crash_after_send": ("command",),
}
"""Triggers of faults that cannot have every one."""


ALL: Mapping[str, Kind] = {**KINDS, **LISTENED}


class UnknownFault(ValueError):
    """Nothing of this name can go wrong at a table: one line for people."""


def chosen(text: str) -> tuple[str, ...] | None:
    """What `--faults` names: None for all, () for none. Raises UnknownFault."""
    if text in ("all", "none"):
        return None if text == "all" else ()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    known = {*LAYER_OF, *LAYER_OF.values()}
    for name in names:
        if name in ("all", "none"):
            raise UnknownFault(f"--faults {quoted(text)}: {name} stands alone, without other names")
        if name not in known:
            nearest = near(name, sorted({*known, "all", "none"}))
            raise UnknownFault(f"--faults {quoted(text)}: there is no fault {quoted(name)}{nearest}")
        if not any(_fitting(table, (name,)) for table in ALL):
            raise UnknownFault(f"--faults {quoted(text)}: at no table of a campaign can {name!r} strike")
    return names


def draw(seed: str, first: int, shoes: int, faults: tuple[str, ...] | None = None) -> Plan:
    """The table that is opened with shoe number `first` and plays `shoes`; `faults` as from `chosen`."""
    random = Random(f"{seed}/{first}/plan")
    table = random.choices(list(ALL), [kind.weight for kind in ALL.values()])[0]
    driver = ALL[table].devices.get("shoe", MANAGED_SHOE)
    steps = tuple(_steps(table, shoes, faults, random))
    rules = None if table in LISTENED else rules_of(table)
    return Plan(table, rules, driver, f"{seed}/{first}", shoes, steps, first)


def _steps(table: str, shoes: int, faults: tuple[str, ...] | None, random: Random) -> Iterator[Step]:
    fitting, settings, obscure = _fitting(table, faults), 0, 0
    if not fitting:
        return
    for _ in range(sum(random.choice(PER_SHOE) for _ in range(shoes))):
        fault = random.choice(list(fitting))
        settings += _kind(fault) == "setting"
        if _kind(fault) == "setting" and settings > SETTINGS:
            continue
        obscure += _obscure(fault)
        if _obscure(fault) and obscure > OBSCURE:
            continue
        device = random.choice(fitting[fault])
        value = VALUES[fault](random) if fault in VALUES else None
        kind = ALL[table]
        moment = _moment(fault, kind.devices.get(device, device), kind, shoes, random)
        yield Step(fault, value, device, **moment)


def _kind(fault: str) -> str:
    """Trap, setting or act; what befalls a whole table is done to it."""
    return FAULTS[fault].kind if fault in FAULTS else "act"


def _obscure(fault: str) -> bool:
    return fault in DARK or fault in SLIPS or (fault in FAULTS and FAULTS[fault].hides)


def _fitting(table: str, faults: tuple[str, ...] | None) -> Mapping[str, tuple[str, ...]]:
    """The faults that this kind of table can have, of those named, with the devices that can have them."""
    return {
        name: devices
        for name, devices in _possible(table).items()
        if faults is None or name in faults or LAYER_OF[name] in faults
    }


@cache
def _possible(table: str) -> Mapping[str, tuple[str, ...]]:
    listened, driver = table in LISTENED, ALL[table].devices.get("shoe", MANAGED_SHOE)
    wires: Mapping[str, WireDevice] = (
        {"shoe": wire_of(driver, Shoe(Random(0)))}
        if listened
        else Felt(rules_of(table), "", shoe=driver).wires
    )
    possible = {
        name: tuple(device for device, wire in wires.items() if _can_have(name, wire))
        for name in FAULTS
        if name not in ONLY_UPLOADS | BY_PEOPLE and not (listened and name in ONLY_ANSWERS)
    }
    possible |= {} if listened else {name: (device,) for name, device in WHOLE.items()}
    return {name: devices for name, devices in possible.items() if devices}


def _can_have(fault: str, wire: WireDevice) -> bool:
    value = VALUES[fault](Random(0)) if fault in VALUES else None
    return unfit(Step(fault, value), wire) is None


def unfit(step: Step, wire: WireDevice) -> str | None:
    """Why a device of a table cannot have this step, or None."""
    try:
        MemoryHost(Line(wire, Random(0), [step]))
    except UnfitFault as error:
        return str(error)
    return None


# When it strikes


def _moment(fault: str, driver: str, table: Kind, shoes: int, random: Random) -> dict[str, Any]:
    """A trigger that comes at this table, most times; none for a setting."""
    kind, commands = _kind(fault), COMMANDS.get(driver, ())
    if kind == "setting":
        return {}
    ways = ["time"]
    if driver != READER:
        ways.append("card")
    if commands:
        ways.append("command")
    if kind == "trap":
        ways += ["nth", "chance"]
    match random.choice(MOMENTS.get(fault, ways)):
        case "card":
            return {"card": random.randint(1, shoes * table.cards)}
        case "command":
            name = random.choice(commands)
            return {"command": name, "nth": int(_scaled(random, 1, 60 if name == ANY else 4 * shoes))}
        case "nth":
            return {"nth": int(_scaled(random, 1, table.cards))}
        case "chance":
            return {"chance": float(f"{_scaled(random, 0.001, 0.1):.2g}")}
    return {"time": round(random.uniform(0, shoes * table.seconds), 1)}


def _scaled(random: Random, least: float, most: float) -> float:
    """Between the two, small ones as likely as large ones."""
    return least * math.exp(random.random() * math.log(most / least))
