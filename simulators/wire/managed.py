"""A managed device's firmware: the life of a request, identity, settings, events and images.

Written from docs/protocols/managed.md, sections 1 to 4.2. What differs between machines is in the other files
`managed_*.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from simulators.models.firmware import Flash, build
from simulators.models.machine import Happening, Machine, Traps
from simulators.wire import cbor, console
from simulators.wire.device import Refused, Silence, Silent, copies, earliest, lateness
from simulators.wire.framings import CONSOLE, Framing
from simulators.wire.images import IMAGE, Images
from simulators.wire.managed_commands import COMMANDS, EVERYWHERE
from simulators.wire.managed_ills import Ills
from simulators.wire.ring import Ring
from simulators.wire.smp import (
    BAD_BODY,
    DEVICE,
    EVENTS,
    INVALID,
    NOT_SUPPORTED,
    OS,
    READ,
    UNKNOWN,
    WRITE,
    WRITES_KEPT,
    Body,
    Request,
    Written,
    check_common,
    number,
)
from simulators.wire.uart import Uart

MAX_EVENTS = 8
MAX_WAIT_MS = 1000
DEFAULT_BUFFER = 384
FRAME = 4
"""Length and check of a packet on a console line share its buffer."""
LINE_RATE = 115200
ANSWER_S = 0.002
"""What a small controller needs for an answer, when it is not to answer at once."""
RESET_AFTER_S = 0.25
RESET_OFF_S = 0.2
"""A reset answers first, then the device is off for a moment."""

Command = Callable[[Body], Body]


@dataclass(frozen=True, slots=True)
class _Parked:
    request: Request
    since: int
    most: int
    until: float


class ManagedDevice:
    """Base of the managed devices, on a console line or (`framing`) with one packet a USB transfer.

    Traps, counted per request: silent (from then on; value s, else for ever), duplicate_answer,
    late_answer (value s, default 3), chatter (a line of text before the answer; value the text). Counted
    per erasing: watchdog (value s, default 5: an erasing that takes longer ends in a restart). Per event:
    overrun (its ring forgets it, and all before it).
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
        self.machine = machine
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
            self.machine.advance(self._reset_at)
            self._reset_at = None
            self.machine.power_cut(RESET_OFF_S)
        self.machine.advance(now)
        self._catch_up()
        if not self.machine.powered:
            self.uart.clear()
            self._parked.clear()
        elif self._parked:
            self._unpark(now)

    def _hear(self, data: bytes, now: float) -> None:
        if self.machine.powered:
            for packet in self._reader.feed(data):
                self._packet(packet, now)

    def deadline(self) -> float | None:
        parked = min((parked.until for parked in self._parked.values()), default=None)
        return earliest(self.machine.deadline(), self.uart.deadline(), parked, self._reset_at)

    def pace(self, *, real: bool) -> None:
        """From now on bytes of a console line and answers take their time, or none."""
        self.uart.paced = real and self._framing is CONSOLE
        self._answer_s = ANSWER_S if real else 0.0

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
        self._written = Written()
        self._busy_until = 0.0
        self._parked: dict[int, _Parked] = {}
        self.uart.clear()

    def _catch_up(self) -> None:
        happenings = self.machine.happenings
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
            t = round((happening.at - self.machine.booted_at) * 1000)
            self._ring.add({**keys, "t": t, "k": kind})
            if self.traps.sprung("overrun"):
                self._ring.run_over()

    def _events(self, since: int, most: int) -> Body:
        return {"boot": self.machine.boot, **self._ring.read(since, most)}

    def _unpark(self, now: float) -> None:
        for sequence, parked in list(self._parked.items()):
            if parked.since < self._ring.next or now >= parked.until:
                del self._parked[sequence]
                self._answer(parked.request, self._events(parked.since, parked.most), now)

    # Requests

    def _packet(self, packet: bytes, now: float) -> None:
        request = Request.of(packet)
        frame = FRAME if self._framing is CONSOLE else 0
        if request is None or len(packet) + frame > (DEFAULT_BUFFER if self.buffer is None else self.buffer):
            return
        self.requests += 1
        if self.heard is not None:
            self.heard(COMMANDS.get(request.key, "unknown"))
        if self._silence.covers(now):
            return
        if request.op == WRITE and (kept := self._written.answer(request, self.requests)) is not None:
            self._send(kept, now)
            return
        try:
            if (code := self.ills.refusal(now)) is not None:
                raise Refused(code)
            if (dip := self.ills.dips()) == "before":
                raise Silent
            answer = self._do(request, now)
            if dip:
                raise Silent
        except Silent:
            self.machine.power_cut(RESET_OFF_S)
            return
        except Refused as refused:
            answer = request.refused(refused, old_errors=self.old_errors)
        if answer is not None:
            self._answer(request, answer, now)

    def _do(self, request: Request, now: float) -> Body | None:
        """The answer's body, or None when it comes later."""
        group, bad = request.group, INVALID if request.group == OS else BAD_BODY
        try:
            body = cbor.decode(request.body)
        except cbor.CborError:
            raise Refused(bad) from None
        if not isinstance(body, dict):
            raise Refused(bad)
        key = request.key
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

    def _answer(self, request: Request, body: Body, now: float) -> None:
        packet = request.answered(cbor.encode(body))
        if request.op == WRITE:
            self._written.keep(request, self.requests, packet)
        self._send(packet, now)

    def _send(self, packet: bytes, now: float) -> None:
        pieces = [self._framing.encode(self.ills.packet(packet))]
        if trap := self.traps.sprung("chatter"):
            line = trap.value or f"[{now:.3f}] <inf> main: request {self.requests} served"
            pieces.insert(0, line.encode() + b"\r\n")
        now = max(now + lateness(self.traps) + self._answer_s, self._busy_until)
        for piece in pieces * copies(self.traps):
            self.uart.say(now, piece)

    def _read_events(self, request: Request, body: Body, now: float) -> Body | None:
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
        self._reset_at = self.machine.now + seconds
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
