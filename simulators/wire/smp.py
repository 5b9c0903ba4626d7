"""A managed device's firmware: packets, the write cache, identity, settings and the event ring.

Written from docs/protocols/managed.md, sections 1 to 4.2. What differs between machines (groups 66, 67)
is in managed_shuffler.py and managed_shoe.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any
from zlib import crc32

from simulators.models.firmware import Flash, build
from simulators.models.machine import Happening, Machine, Traps
from simulators.wire import cbor, console
from simulators.wire.device import Refused, Silence, Silent, copies, earliest, lateness
from simulators.wire.framings import CONSOLE, Framing
from simulators.wire.images import IMAGE, Images, in_version_0
from simulators.wire.managed_commands import COMMANDS, EVERYWHERE
from simulators.wire.managed_ills import Ills
from simulators.wire.ring import Ring
from simulators.wire.uart import Uart

OS, DEVICE, EVENTS, SHUFFLER, SHOE, READER = 0, 64, 65, 66, 67, 68
READ, WRITE = 0, 2
UNKNOWN, BAD_BODY, WRONG_STATE, BUSY, TOKEN, OPEN, JAM, SETTINGS, NO_CARDS = range(1, 10)
NOT_SUPPORTED = 8
INVALID = 3
"""Group 0 codes are MCUmgr's: 3 invalid value, 8 not supported."""

MAX_BODY = 1024
MAX_EVENTS = 8
MAX_WAIT_MS = 1000
WRITES_KEPT = 4
REQUESTS_KEPT = 128
DEFAULT_BUFFER = 384
FRAME = 4
"""Length and check of a packet on a console line share its buffer."""
LINE_RATE = 115200
ANSWER_S = 0.002
"""What a small controller needs for an answer, when it is not to answer at once."""
RESET_AFTER_S = 0.25
RESET_OFF_S = 0.2
"""A reset answers first, then the device is off for a moment."""

_HEADER = Struct("!BBHHBB")

Body = Mapping[str, Any]
Command = Callable[[Body], Body]


@dataclass(slots=True)
class _Request:
    version: int
    op: int
    group: int
    sequence: int
    command: int
    body: bytes

    @property
    def key(self) -> tuple[int, int, int, bytes]:
        return self.group, self.command, self.sequence, self.body


@dataclass(frozen=True, slots=True)
class _Parked:
    request: _Request
    since: int
    most: int
    until: float


class ManagedDevice:
    """Base of the managed devices, on a console line or (`framing`) with one packet a USB transfer.

    Traps, counted per request: silent (from then on; value s, else for ever), duplicate_answer,
    late_answer (value s, default 3), chatter (a line of text before the answer; value the text). Counted
    per erasing: watchdog (value s, default 5: an erasing that takes longer ends in a restart).
    `ills` and `images` have traps of their own; `images` None (`flash` False): a device without that group.
    `buffer`: bytes of a packet, on a console line with its length and check; None: it tells none and takes
    384. `old_errors`: errors in the form of SMP version 0. `banner`: lines it prints at each start on a
    console line. `tells`: its bootloader says who it is. `paced`: bytes of a console line take their time,
    and an answer `ANSWER_S`.
    """

    product = ""
    kind = ""
    groups: frozenset[int] = frozenset({OS, DEVICE, EVENTS})

    def __init__(
        self,
        machine: Machine,
        *,
        serial: str,
        vendor: str = "Cutcard",
        firmware: str = "1.0.0",
        ring: int = 512,
        waits: bool = True,
        framing: Framing = CONSOLE,
        flash: Flash | bool = True,
        buffer: int | None = console.MAX_PACKET + FRAME,
        old_errors: bool = False,
        banner: str = "",
        paced: bool = False,
    ) -> None:
        self._machine = machine
        self.traps = Traps()
        self.flash = flash if isinstance(flash, Flash) else Flash(build(firmware, self.product))
        self.images = Images(self.flash, self.traps) if flash else None
        self.buffer = buffer
        self.old_errors = old_errors
        self.banner = banner
        self.tells = True
        self.heard: Callable[[str], None] | None = None
        self._framing = framing
        self._firmware = firmware
        self.serial = serial
        self.requests = 0
        self._identity = {
            "vendor": vendor,
            "product": self.product,
            "serial": serial,
            "protocol": 1,
            "class": self.kind,
        }
        self._ring_size = ring
        self._waits = waits
        self._seen = 0
        self._silence = Silence(self.traps)
        self.ills = Ills(self.traps)
        self._reset_at: float | None = None
        self._commands: dict[tuple[int, int, int], Command] = {
            (OS, 0, READ): self._echo,
            (OS, 0, WRITE): self._echo,
            (OS, 5, WRITE): lambda _: self._restart_in(RESET_AFTER_S),
            (OS, 6, READ): lambda _: self._parameters(),
            (DEVICE, 0, READ): lambda _: self.ills.identity(
                {**self._identity, **self._runs(), "boot": machine.boot}
            ),
            (DEVICE, 1, READ): lambda _: self._settings_echo(),
            (DEVICE, 1, WRITE): self._write_settings,
        }
        self._busy_until = 0.0
        self.uart = Uart(LINE_RATE)
        self.pace(real=paced)
        self._start()

    def _runs(self) -> Body:
        if self.in_bootloader:
            return {"firmware": "", "bootloader": True}
        image = self.flash.running
        if self.images is None or image is None:
            return {"firmware": self._firmware}
        return {"firmware": image.version, "hash": image.hash}

    @property
    def in_bootloader(self) -> bool:
        """No image runs: there are the groups OS and images, and who it is where it `tells`."""
        return self.images is not None and self.flash.bootloader

    @property
    def machine(self) -> Machine:
        return self._machine

    @property
    def ring_size(self) -> int:
        """How many events it keeps."""
        return self._ring_size

    @ring_size.setter
    def ring_size(self, size: int) -> None:
        self._ring_size = self._ring.size = size

    @property
    def commands(self) -> list[str]:
        """The names of its commands."""
        return list(dict.fromkeys(COMMANDS[key] for key in (*self._commands, *EVERYWHERE)))

    @property
    def newest(self) -> int:
        """The number of the newest event of the ring, 0 before the first."""
        self._catch_up()
        return self._ring.next - 1

    # The wire

    def receive(self, data: bytes, now: float) -> None:
        self.uart.come(data, now)
        self.advance(now)

    def transmit(self, now: float) -> bytes:
        return b"".join(self.packets(now))

    def packets(self, now: float) -> list[bytes]:
        """As `transmit`, piece by piece: on USB each is a transfer."""
        self.advance(now)
        return self.uart.said(now)

    def advance(self, now: float) -> None:
        for at, data in self.uart.heard(now):
            self._live(at)
            self._hear(data, at)
        self._live(now)

    def _live(self, now: float) -> None:
        if self._reset_at is not None and now >= self._reset_at:
            self._machine.advance(self._reset_at)
            self._reset_at = None
            self._machine.power_cut(RESET_OFF_S)
        self._machine.advance(now)
        self._catch_up()
        if not self._machine.powered:
            self.uart.clear()
            self._parked.clear()
        elif self._parked:
            self._unpark(now)

    def _hear(self, data: bytes, now: float) -> None:
        if self._machine.powered:
            for packet in self._reader.feed(data):
                self._packet(packet, now)

    def deadline(self) -> float | None:
        parked = min((parked.until for parked in self._parked.values()), default=None)
        return earliest(self._machine.deadline(), self.uart.deadline(), parked, self._reset_at)

    def pace(self, *, real: bool) -> None:
        """From now on bytes of a console line and answers take their time, or none."""
        self.uart.paced = real and self._framing is CONSOLE
        self._answer_s = ANSWER_S if real else 0.0

    def reboot(self, off_s: float = 0.0) -> None:
        """Cut the power; ring, cache and whatever was on its way are lost."""
        self._machine.power_cut(off_s)

    # What differs between machines

    def event_of(self, happening: Happening) -> tuple[str, Body] | None:
        """Kind and further keys of the ring event for a happening; None when the protocol has none."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """The settings map that the device holds; a write changes it in place."""
        raise NotImplementedError

    def check_settings(self, wanted: Body) -> None:
        """Raises Refused when the device cannot take these settings now."""

    # Power-up and the ring

    def _start(self) -> None:
        self._reader = self._framing.reader()
        self._ring = Ring(self._ring_size)
        self._cache: dict[tuple[int, int, int, bytes], tuple[int, bytes]] = {}
        self._busy_until = 0.0
        self._parked: dict[int, _Parked] = {}
        self.uart.clear()

    def _catch_up(self) -> None:
        happenings = self._machine.happenings
        while self._seen < len(happenings):
            self._seen += 1
            self._notice(happenings[self._seen - 1])

    def _notice(self, happening: Happening) -> None:
        if happening.kind == "booted":
            self.flash.boot()
            self._start()
            if self.flash.leaves_after is not None:
                self._reset_at = happening.at + self.flash.leaves_after
            if self.banner and self._framing is CONSOLE:
                self.uart.say(happening.at, self.banner.encode())
        elif (event := self.event_of(happening)) is not None:
            kind, keys = event
            t = round((happening.at - self._machine.booted_at) * 1000)
            self._ring.add({**keys, "t": t, "k": kind})

    def _events(self, since: int, most: int) -> Body:
        return {"boot": self._machine.boot, **self._ring.read(since, most)}

    def _unpark(self, now: float) -> None:
        for sequence, parked in list(self._parked.items()):
            if parked.since < self._ring.next or now >= parked.until:
                del self._parked[sequence]
                self._answer(parked.request, self._events(parked.since, parked.most), now)

    # Requests

    def _packet(self, packet: bytes, now: float) -> None:
        if len(packet) < _HEADER.size:
            return
        first, _, length, group, sequence, command = _HEADER.unpack_from(packet)
        version, op, body = first >> 3 & 3, first & 7, packet[_HEADER.size :]
        if version > 1 or op not in (READ, WRITE) or length != len(body) or length > MAX_BODY:
            return
        frame = FRAME if self._framing is CONSOLE else 0
        if len(packet) + frame > (DEFAULT_BUFFER if self.buffer is None else self.buffer):
            return
        self.requests += 1
        if self.heard is not None:
            self.heard(COMMANDS.get((group, command, op), "unknown"))
        if self._silence.covers(now):
            return
        request = _Request(version, op, group, sequence, command, body)
        if op == WRITE and (kept := self._cache.get(request.key)):
            if self.requests - kept[0] <= REQUESTS_KEPT:
                self._send(kept[1], now)
                return
            del self._cache[request.key]
        try:
            if (code := self.ills.refusal(now)) is not None:
                raise Refused(code)
            if (dip := self.ills.dips()) == "before":
                raise Silent
            answer = self._do(request, now)
            if dip:
                raise Silent
        except Silent:
            self._machine.power_cut(RESET_OFF_S)
            return
        except Refused as refused:
            answer = self._refusal(request, refused)
        if answer is not None:
            self._answer(request, answer, now)

    def _refusal(self, request: _Request, refused: Refused) -> Body:
        """In the form of version 0 there are general codes alone; MCUmgr tells those so in either version."""
        if refused.general or request.group == OS:
            return {"rc": refused.rc}
        if self.old_errors or not request.version:
            return {"rc": in_version_0(refused.rc) if request.group == IMAGE else refused.rc}
        return {"err": {"group": request.group, "rc": refused.rc}}

    def _do(self, request: _Request, now: float) -> Body | None:
        """The answer's body, or None when it comes later."""
        group, bad = request.group, INVALID if request.group == OS else BAD_BODY
        try:
            body = cbor.decode(request.body)
        except cbor.CborError:
            raise Refused(bad) from None
        if not isinstance(body, dict):
            raise Refused(bad)
        key = (group, request.command, request.op)
        if group == IMAGE or self.in_bootloader:
            return self._manage(key, body, now)
        if key == (EVENTS, 0, READ):
            return self._read_events(request, body, now)
        command = self._commands.get(key)
        if command is None:
            missing = group == OS or group not in self.groups
            raise Refused(NOT_SUPPORTED if missing else UNKNOWN, general=missing)
        return command(body)

    def _manage(self, key: tuple[int, int, int], body: Body, now: float) -> Body:
        """What the image group answers, and everything that a bootloader does."""
        images = self.images
        if images is not None and key == (IMAGE, 0, READ):
            return images.state(body)
        if images is not None and key == (IMAGE, 0, WRITE) and not self.in_bootloader:
            return images.set_state(body)
        if images is not None and key == (IMAGE, 1, WRITE):
            try:
                return images.upload(body)
            finally:
                self._work(images.busy, now)
        if (key[0] == OS and key in self._commands) or (self.tells and key == (DEVICE, 0, READ)):
            return self._commands[key](body)
        raise Refused(NOT_SUPPORTED, general=True)

    def _work(self, seconds: float, now: float) -> None:
        """Answer nothing for so long; a watchdog may not wait for the end of it."""
        self._busy_until = now + seconds
        if seconds and (trap := self.traps.sprung("watchdog")):
            limit = trap.seconds(5.0)
            if limit < seconds:
                self._restart_in(limit)

    def _answer(self, request: _Request, body: Body, now: float) -> None:
        encoded = cbor.encode(body)
        packet = (
            _HEADER.pack(
                request.version << 3 | (request.op + 1),
                0,
                len(encoded),
                request.group,
                request.sequence,
                request.command,
            )
            + encoded
        )
        if request.op == WRITE:
            self._cache[request.key] = (self.requests, packet)
            if len(self._cache) > WRITES_KEPT:
                del self._cache[next(iter(self._cache))]
        self._send(packet, now)

    def _send(self, packet: bytes, now: float) -> None:
        pieces = [self._framing.encode(self.ills.packet(packet))]
        if trap := self.traps.sprung("chatter"):
            line = trap.value or f"[{now:.3f}] <inf> main: request {self.requests} served"
            pieces.insert(0, line.encode() + b"\r\n")
        now = max(now + lateness(self.traps) + self._answer_s, self._busy_until)
        for piece in pieces * copies(self.traps):
            self.uart.say(now, piece)

    def _read_events(self, request: _Request, body: Body, now: float) -> Body | None:
        since, most, wait = number(body, "since"), number(body, "max", MAX_EVENTS), number(body, "wait", 0)
        most = min(max(most, 1), MAX_EVENTS)
        if since != self._ring.next or not wait or not self._waits:
            return self._events(since, most)
        if len(self._parked) >= WRITES_KEPT and request.sequence not in self._parked:
            return self._events(since, most)
        until = now + min(wait, MAX_WAIT_MS) / 1000
        self._parked[request.sequence] = _Parked(request, since, most, until)
        return None

    def _echo(self, body: Body) -> Body:
        if not isinstance(body.get("d"), str):
            raise Refused(INVALID)
        return {"r": body["d"]}

    def _restart_in(self, seconds: float) -> Body:
        self._reset_at = self._machine.now + seconds
        return {}

    def _parameters(self) -> Body:
        if self.buffer is None:
            raise Refused(NOT_SUPPORTED, general=True)
        return {"buf_size": self.buffer, "buf_count": 4}

    def _settings_echo(self) -> Body:
        held = self.settings()
        return self.ills.settings({"settings": held, "crc": crc32(cbor.encode(held))})

    def _write_settings(self, body: Body) -> Body:
        wanted = body.get("settings")
        if not isinstance(wanted, dict):
            raise Refused(BAD_BODY)
        self.check_settings(wanted)
        check_common(wanted)
        held = self.settings()
        held.update({key: value for key, value in wanted.items() if key in held})
        return self._settings_echo()


def number(body: Body, key: str, default: int | None = None) -> int:
    """An unsigned integer of a body. Raises Refused(BAD_BODY) when it is missing or no such number."""
    value = body.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Refused(BAD_BODY)
    return value


def check_common(wanted: Body) -> None:
    """What settings of any device must be, where given. Raises Refused(SETTINGS)."""
    if not isinstance(wanted.get("recognition", True), bool):
        raise Refused(SETTINGS)
    for key, top in (("decks", 12), ("cards_per_deck", 78)):
        if key in wanted:
            value = wanted[key]
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= top:
                raise Refused(SETTINGS)
