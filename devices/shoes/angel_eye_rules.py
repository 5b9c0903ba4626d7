"""Session rules of the Angel Eye: what is a copy, a gap, a hand (sections 1.6 and 1.7 of its page).

They judge telegrams and add to them; no telegram is removed or delayed by a rule but an exact copy.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

ALPHABETS = {"digits19": "123456789", "digits09": "0123456789", "hex": "0123456789ABCDEF"}
PROFILES = ("learn", *ALPHABETS, "free")
REPEAT_WINDOW = 0.4
"""Seconds for which a telegram is remembered."""
REMEMBERED = 4
"""The fourth newer telegram pushes one out."""
POSITIONS = ("player 1", "player 2", "banker 1", "banker 2")
"""The cards without which there is no result."""


@dataclass(frozen=True, slots=True)
class _Seen:
    seq: str
    content: tuple[str, bytes]
    raw: bytes
    first: float
    session: int


class Repeats:
    """Telegrams accepted of late: each comes three times. Knows copies, and conflicts between sequences."""

    def __init__(self) -> None:
        self._seen: deque[_Seen] = deque(maxlen=REMEMBERED)
        self._session = 0

    def is_copy(self, seq: str, code: str, data: bytes, now: float) -> bool:
        return any(s.seq == seq and s.content == (code, data) for s in self._alive(now))

    def accept(self, seq: str, code: str, data: bytes, raw: bytes, now: float) -> bytes | None:
        """Remember a telegram; the raw bytes of one with the same sequence and other content, if any.

        `S` numbers anew: neither it nor anything before it conflicts with what follows.
        """
        session = self._session + (code == "S")
        rivals = (s.raw for s in self._alive(now) if s.seq == seq and s.session == session)
        other = next(rivals, None)
        if code == "S":
            self._session = session + 1
        self._seen.append(_Seen(seq, (code, data), raw, now, session))
        return other

    def _alive(self, now: float) -> list[_Seen]:
        return [s for s in self._seen if now - s.first <= REPEAT_WINDOW]


@dataclass(frozen=True, slots=True)
class Gap:
    """`missing` telegrams by the alphabet, None when the alphabets disagree."""

    missing: int | None


class Sequence:
    """Whether a sequence character is in order, by one alphabet or by those that still fit what was seen.

    A learner that meets a character outside every alphabet says so once and judges no more.
    """

    def __init__(self, profile: str = "learn") -> None:
        self._all = tuple(ALPHABETS.values()) if profile == "learn" else (ALPHABETS.get(profile, ""),)
        self._free, self._learning = profile == "free", profile == "learn"
        self._fitting = self._all
        self._last: str | None = None
        self._same_is_next = False

    def forget(self) -> None:
        """The line was lost: anything may come next."""
        self._last = None

    def judge(self, seq: str, *, start: bool, rejected: bool, conflict: bool) -> Gap | None:
        """The gap before this telegram, if any. `start`: it is `S`, which may carry any character.

        After `S`, after a rejected payload and in a conflict the same character is in order.
        """
        if rejected and seq == self._last:
            return None  # a spoilt copy of the telegram before it
        last, same = self._last, self._same_is_next or conflict
        self._last, self._same_is_next = seq, start or rejected
        if self._free or last is None or start or (seq == last and same):
            return None
        in_order = tuple(a for a in self._fitting if _distance(a, last, seq) == 1)
        if in_order:
            self._fitting = in_order
            return None
        sizes = {_distance(a, last, seq) for a in self._fitting}
        self._fitting = tuple(a for a in self._all if seq in a) or self._all
        self._free = self._learning and not any(seq in a for a in self._all)
        ahead = sizes.pop() if len(sizes) == 1 else None
        return Gap(ahead - 1 if ahead else None)


def _distance(alphabet: str, last: str, seq: str) -> int | None:
    """Steps from one character to another; 0 for the same one, None outside the alphabet."""
    if last not in alphabet or seq not in alphabet:
        return None
    return (alphabet.index(seq) - alphabet.index(last)) % len(alphabet)


@dataclass(frozen=True, slots=True)
class Result:
    aligned: bool
    missing: tuple[str, ...]
    """Positions without a card; empty when none is needed."""


class Hand:
    """The cards of one hand, and whether the hand is known from its start (Player 1)."""

    def __init__(self, *, redeal: bool) -> None:
        self._redeal = redeal
        self._redealing = False
        self._cards: dict[str, tuple[str | None, bytes]] = {}
        self._open = False
        self._cut_card_out = False

    def lost(self) -> None:
        """Nobody knows what happened meanwhile: aligned again at the next Player 1, no new shoe expected."""
        self._close()
        self._cut_card_out = False

    def started(self) -> tuple[str, ...]:
        """`S`: a new shoe only after a cutting card, and once; otherwise a diagnostic."""
        new_shoe, self._cut_card_out = self._cut_card_out, False
        self._close()
        return () if new_shoe else ("no_cut_card_before",)

    def cut_card(self) -> tuple[str, ...]:
        again, self._cut_card_out = self._cut_card_out, True
        return ("cut_card_again",) if again else ()

    def card(self, position: str, index: int, card: str | None, raw: bytes) -> bytes | None:
        """A card in the game; the bytes of the card that already lies there when it is another one.

        Player 1 starts a hand, whatever came before; no other card is ever overwritten.
        """
        self._redealing = False
        place = f"{position} {index}"
        other = self._place(place, card, raw) if self._open else None
        if place == POSITIONS[0] and (not self._open or other is not None):
            self._cards, self._open = {place: (card, raw)}, True
        return other

    def reassigned(self, position: str, index: int, card: str | None, raw: bytes) -> None:
        """`R` is for the next round; in the other reading it deals the hand again."""
        if not self._redeal:
            return
        if not self._redealing:
            self._cards, self._redealing = {}, True
        place = f"{position} {index}"
        self._place(place, card, raw)
        self._open = self._open or place == POSITIONS[0]

    def result(self, outcome: str) -> Result:
        """The end of a hand. A forced quit needs no cards, but a known start."""
        if outcome == "forced_quit":
            result = Result(self._open, ())
        else:
            missing = tuple(p for p in POSITIONS if not self._open or p not in self._cards)
            result = Result(not missing, missing)
        self._close()
        return result

    def _place(self, place: str, card: str | None, raw: bytes) -> bytes | None:
        held, bytes_ = self._cards.get(place, (None, b""))
        if held is None:
            self._cards[place] = (card, raw)
        return bytes_ if held is not None and card is not None and card != held else None

    def _close(self) -> None:
        self._cards, self._open, self._redealing = {}, False, False
