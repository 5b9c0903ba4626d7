"""One shoe played twice, with its unseen cards in another order: all that left the table (law 7)."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, TypeVar

import structlog

from controller.render import entry_json
from controller.table.profiles import BatchRules, Burn, CardDown, MatchTerms, TableRules
from devices.events import Sense
from devices.registry import load
from simulators.hosts.memory_host import Endpoint
from simulators.models.cards import Card
from simulators.rig.referee import BURN, STUB
from simulators.rig.stepped import Stepped

T = TypeVar("T")
BATCHES = (BatchRules("A", "red"), BatchRules("B", "blue"))
REFUSED = (
    ("bets_closed", {"boxes": "99"}),
    ("cut", {"position": 3}),
    ("load_shoe", {"batch": "A"}),
    ("clear", {"fault": "F1"}),
    ("no_such_event", {}),
)
"""Taps that are refused in every phase in which they are tried here."""


class Run:
    """One shoe with everything that leaves the table written down, up to the rack's collection."""

    locked = True
    """The shoe is locked for side wagers, where it takes the command."""

    def __init__(
        self,
        decks: int,
        seed: object,
        shoe: str = "managed-shoe",
        *,
        twin: Run | None = None,
        unseen: Sequence[int] = (),
    ) -> None:
        self.info, self.debug, self.printed = io.StringIO(), io.StringIO(), io.StringIO()
        self.seed, self.twin = seed, twin
        self.unseen: list[int] = []
        senses = load(shoe).senses
        rules = self.rules(decks, senses)
        log = both_levels(self.info, self.debug)
        made = None if twin is None else twin.world.dealer.acts.decisions
        with redirect_stdout(self.printed), redirect_stderr(self.printed):
            self.world = Stepped(rules, seed, 1, shoe=shoe, made=made, log=log)
            self.lines = self.world.listen()
            self.sent = {name: sent_to(host.endpoint) for name, host in self.world.hosts.items()}
            self.world.run(lambda: not self.world.felt.shoe.empty)
            self.order = [card for card in self.world.felt.shoe.contents() if isinstance(card, Card)]
            self.permute(unseen if twin is None else twin.unseen)
            self.play()
            self.world.settle(1)
        shown = [json.dumps(entry_json(e, masked=False)) for e in unkeyed(self.world)]
        self.outputs = {
            "lines": self.lines,
            "info": self.info.getvalue(),
            "debug": self.debug.getvalue(),
            "printed": self.printed.getvalue(),
            "wire": self.sent,
            "show": shown,
        }

    def rules(self, decks: int, senses: frozenset[Sense]) -> TableRules:
        wagers = {"settle_first": True, "match": MatchTerms(4, 11)}
        locks = self.locked and senses == frozenset(Sense)
        return TableRules("BJ-07", 7, decks, BATCHES, shoe_senses=senses, shoe_locks=locks, **wagers)

    def play(self) -> None:
        """The rig's dealer plays the shoe."""
        self.watch_draws()
        self.world.run(lambda: self.world.view.rounds == 1)
        self.refused()
        self.world.run(lambda: self.world.view.phase == "shoe_end" and self.world.felt.shoe.empty)

    def refused(self) -> None:
        for event, args in REFUSED:
            answer = self.world.tap(event, **args)
            assert answer["ok"] is False
            self.lines.append(json.dumps(answer))

    @property
    def dealt(self) -> list[str]:
        """The faces of all cards as they came out of the shoe."""
        return [h.data["face"] for h in self.world.felt.shoe.happenings if h.kind == "drawn"]

    def permute(self, unseen: Sequence[int]) -> None:
        """The same cards at the unseen places, in another order."""
        shoe = self.world.felt.shoe
        places = [i for i, item in enumerate(shoe.contents()) if isinstance(item, Card)]
        for index, card in zip(unseen, turned([self.order[i] for i in unseen]), strict=True):
            shoe.swap_in(places[index], card)

    def watch_draws(self) -> None:
        """Note which cards of the shoe nobody sees when they come out."""
        felt, draw = self.world.felt, self.world.felt.draw

        def watched(place: str) -> Any:
            count, before = felt.referee.cards, len(felt.layout.places.get(place, ()))
            item = draw(place)
            if isinstance(item, Card) and (place in (BURN, STUB) or self.lies_down(place, before)):
                self.unseen.append(count)
            return item

        felt.draw = watched  # type: ignore[method-assign]

    def lies_down(self, place: str, before: int) -> bool:
        """Whether a hand's next card, after `before` others, lies face down: the dealer's second one."""
        return place == "dealer" and before == 1


class Night(Run):
    """A casino night at which each player's second card lies face down."""

    def rules(self, decks: int, senses: frozenset[Sense]) -> TableRules:
        night: dict[str, Any] = {"profile": "nj-casino-night", "mode": "manual-shoe", "shuffler": None}
        night |= {"burn": Burn.EACH_ROUND, "player_card_down": CardDown.SECOND, "shoe_senses": senses}
        return TableRules("CN-01", 7, decks, BATCHES[:1], **night)

    def lies_down(self, place: str, before: int) -> bool:
        return before == 1


def turned(cards: Sequence[T]) -> list[T]:
    """The cards in another order."""
    third = max(1, len(cards) // 3)
    return [*cards[third:], *cards[:third]]


def both_levels(info: io.StringIO, debug: io.StringIO) -> Any:
    """A logger like the daemon's, once at each level; without the wall time, which no card decides."""

    class Both:
        def __init__(self, loggers: list[Any]) -> None:
            self._loggers = loggers

        def __getattr__(self, name: str) -> Any:
            calls = [getattr(logger, name) for logger in self._loggers]
            if name == "bind":
                return lambda **values: Both([call(**values) for call in calls])
            return lambda *args, **values: [call(*args, **values) for call in calls]

    def logger(stream: io.StringIO, level: int) -> Any:
        return structlog.wrap_logger(
            structlog.WriteLogger(stream),
            processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer(default=repr)],
            wrapper_class=structlog.make_filtering_bound_logger(level),
        )

    return Both([logger(info, logging.INFO), logger(debug, logging.DEBUG)])


def sent_to(endpoint: Endpoint) -> list[bytes]:
    """Everything that the daemon writes to a device from now on."""
    sent: list[bytes] = []
    write: Callable[[bytes], None] = endpoint.write

    def noted(data: bytes) -> None:
        sent.append(data)
        write(data)

    endpoint.write = noted  # type: ignore[method-assign]
    return sent


def unkeyed(world: Stepped) -> list[Any]:
    """The journal as `journal show` reads it without the key."""
    from controller.factlog import entry_of

    return [entry_of(row, None) for row in world.journal.rows]


def lengths(row: Any) -> tuple[int, ...]:
    return (len(row.data), len(row.sealed or b""), len(row.hidden or ""))


def played_twice(decks: int, seed: object, shoe: str = "managed-shoe", kind: type[Run] = Run) -> Run:
    """Play a shoe and its twin; every output that exists is the same, and the journal of the same lengths."""
    first = kind(decks, seed, shoe)
    second = kind(decks, seed, shoe, twin=first)
    assert second.dealt != first.dealt, "nothing was permuted"
    assert second.unseen == first.unseen
    for name, lines in first.outputs.items():
        assert second.outputs[name] == lines, f"seed {seed}: {name} tells an unseen card"
    one, two = first.world.journal.rows, second.world.journal.rows
    assert [row.hash for row in one] != [row.hash for row in two]
    assert [lengths(row) for row in one] == [lengths(row) for row in two]
    return first
