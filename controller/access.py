"""Who may do which operator event, and who a caller on the control socket is.

Rights come from Unix groups (`cutcard-dealer`, ...); root and the daemon's own user have every role but
leave their name. Clearing a latched fault is never a dealer's right (law 6).
"""

from __future__ import annotations

import grp
import os
import pwd
from dataclasses import dataclass

from controller.table.inputs import Role

GROUP_PREFIX = "cutcard-"
SOCKET_GROUP = "cutcard"
GROUPS = tuple(GROUP_PREFIX + role for role in Role)

PLAY = frozenset(
    {
        "open", "inspect", "spread", "player_inspected", "wash", "load_shuffler", "start_shuffle",
        "take_from_shuffler", "offer_cut", "cut", "insert_cutting_card", "load_shoe", "take_in_hand", "burn",
        "dealer_change",
        "bets_closed", "dispense", "card_face_up", "count_stub",
        "cutting_card_at", "hit", "stand", "double", "split", "insurance", "surrender",
        "cash_wager", "cash_converted", "dealer_hand_settled",
        "side_wagers_settled", "peek", "round_settled", "collect_rack", "idle", "resume", "dead_card",
        "close", "certificate", "shuffle_demanded", "drawn_in_error", "dealer_skipped", "box_skipped",
        "reshuffle_by_hand", "shuffle_now",
        "count_batch", "confirm_empty",
    }
)  # fmt: skip
"""The dealer's own taps: steps and reports of the game, which the rules judge."""

SUPERVISION = frozenset(
    {
        "recut", "verify", "replace_batch", "void_round", "no_reader", "bart_carter",
    }
)  # fmt: skip
"""Decisions of the licensee or its floorperson (2.5(g), R-14, R-20)."""

UPKEEP = frozenset({"acknowledge", "clear", "out_of_service", "in_service", "confirm_empty"})
"""Alarms, latched faults, and machines that fail."""

RIGHTS: dict[Role, frozenset[str]] = {
    Role.DEALER: PLAY | {"acknowledge"},
    Role.SUPERVISOR: PLAY | SUPERVISION | UPKEEP,
    Role.TECHNICIAN: UPKEEP,
    Role.SURVEILLANCE: frozenset(),
}
EVENTS = PLAY | SUPERVISION | UPKEEP


def may(roles: frozenset[Role], event: str) -> bool:
    """Whether any of the roles has the right to this event."""
    return any(event in RIGHTS[role] for role in roles)


def who_may(event: str) -> tuple[Role, ...]:
    """The roles with the right to this event, in the order of `Role`."""
    return tuple(role for role in Role if event in RIGHTS[role])


def whose(event: str) -> str:
    """Whose right it is, in words."""
    words = f"{event} is the right of {' or '.join(who_may(event))}"
    return f"{words}; a device is inspected by a supervisor alone" if event == "inspect" else words


@dataclass(frozen=True, slots=True)
class Caller:
    """A peer of the control socket: a name for the journal, and roles."""

    name: str
    roles: frozenset[Role]


def caller(uid: int, gid: int, own_uid: int | None = None) -> Caller:
    """Name and roles of a peer by its credentials; a user without an entry is `uid N`."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        name, groups = f"uid {uid}", [gid]
    else:
        name = entry.pw_name.encode(errors="replace").decode()
        groups = [gid, *os.getgrouplist(entry.pw_name, entry.pw_gid)]
    if uid in {0, os.geteuid() if own_uid is None else own_uid}:
        return Caller(name, frozenset(Role))
    return Caller(name, frozenset(role for role in Role if _gid(role) in groups))


def _gid(role: Role) -> int | None:
    try:
        return grp.getgrnam(GROUP_PREFIX + role).gr_gid
    except KeyError:
        return None
