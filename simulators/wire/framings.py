"""How a managed device's packets look on its wire (docs/protocols/managed.md, sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from simulators.wire import console


class Reader(Protocol):
    def feed(self, data: bytes) -> list[bytes]:
        """The packets that are whole now."""


@dataclass(frozen=True, slots=True)
class Framing:
    encode: Callable[[bytes], bytes]
    reader: Callable[[], Reader]


class _Transfers:
    """On USB every transfer is a packet."""

    def feed(self, data: bytes) -> list[bytes]:
        return [data]


CONSOLE = Framing(console.lines, console.ConsoleReader)
PACKETS = Framing(bytes, _Transfers)
