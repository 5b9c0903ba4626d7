"""A device's side of serial GAT v3.50, on a machine that hashes its own programs."""

from __future__ import annotations

from collections.abc import Callable
from xml.sax.saxutils import escape

from simulators.models.machine import CannotDo, Traps
from simulators.models.verifier import CALCULATING, ERROR, FINISHED, REQUESTED, Outcome, Task, Verifier
from simulators.wire.device import Silence, copies, earliest, lateness
from simulators.wire.uart import Uart

SQ, LASQ, LARQ, IACQ = 1, 2, 3, 4
TEXT, XML = 1, 2
LEVEL = 0xBA
LINE_RATE = 9600
ANSWER_S = 0.02
"""From the last byte of a request to the first of its answer; the public host waits about 0.2 s."""
QUIET_S = 0.5
"""After so long without a byte half a request is forgotten."""
_FLAGS = {REQUESTED: 0x01, CALCULATING: 0x09, FINISHED: 0x06, ERROR: 0x0C}
_IDLE = 0x04
_COMMANDS = {SQ: "status", LASQ: "last", LARQ: "results"}
_SIZES = {SQ: (4, 4), LASQ: (4, 4), LARQ: (7, 7), IACQ: (5, 255)}


def check(data: bytes) -> bytes:
    """CRC-16/MODBUS, high byte first."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0xA001 if crc & 1 else crc >> 1
    return crc.to_bytes(2, "big")


def frame(code: int, data: bytes = b"") -> bytes:
    body = bytes((code, len(data) + 4)) + data
    return body + check(body)


class GatDevice:
    """Answers what it is asked, and is silent when the check bytes are wrong.

    `version` in BCD; `formats` of its reports, bits 1 text and 2 XML; `piece` bytes of a report go into one
    frame; `utf16` reports are written so; `paced` False: no byte takes time.

    Traps, per request: silent, bad_crc, chatter, duplicate_answer, late_answer (value s, default 3),
    two_masters (another host is served just before us); per frame of a report: wrong_frame; per calculation
    asked for: level_error, nak.
    """

    commands = ("status", "last", "results", "functions", "component")

    def __init__(
        self,
        verifier: Verifier,
        *,
        version: int = 0x0350,
        formats: int = TEXT | XML,
        piece: int = 248,
        utf16: bool = False,
        paced: bool = True,
    ) -> None:
        self.verifier = verifier
        self.traps = Traps()
        self.heard: Callable[[str], None] | None = None
        self.requests = 0
        self.bad = 0
        self._silence = Silence(self.traps)
        self.version = version
        self.formats = formats
        self._piece = piece
        self._utf16 = utf16
        self._buffer = bytearray()
        self._heard_at = 0.0
        self._boot = verifier.boot
        self.uart = Uart(LINE_RATE, paced=paced)

    @property
    def machine(self) -> Verifier:
        return self.verifier

    def receive(self, data: bytes, now: float) -> None:
        self.advance(now)
        self.uart.come(data, now)
        self.advance(now)

    def transmit(self, now: float) -> bytes:
        self.advance(now)
        return b"".join(self.uart.said(now))

    def advance(self, now: float) -> None:
        for at, data in self.uart.heard(now):
            self._live(at)
            self._hear(data, at)
        self._live(now)

    def deadline(self) -> float | None:
        return earliest(self.verifier.deadline(), self.uart.deadline())

    def _live(self, now: float) -> None:
        self.verifier.advance(now)
        if not self.verifier.powered or self.verifier.boot != self._boot:
            self._boot = self.verifier.boot
            self.uart.clear()
            self._buffer.clear()

    def _hear(self, data: bytes, now: float) -> None:
        if not self.verifier.powered:
            return
        if now - self._heard_at > QUIET_S:
            self._buffer.clear()
        self._heard_at = now
        self._buffer += data
        while (request := self._next()) is not None:
            self._request(request, now)

    def report(self, wanted: int) -> bytes | None:
        """The last report in one format; None when there is none."""
        outcome = self.verifier.outcome
        if outcome is None or not wanted & self.formats:
            return None
        text = _xml(outcome, self.verifier) if wanted == XML else _text(outcome, self.verifier)
        return text.encode("utf-16") if self._utf16 else text.encode()

    def _next(self) -> bytes | None:
        """The next whole request; whatever stands before it is no request."""
        buffer = self._buffer
        while buffer:
            if len(buffer) == 1 and buffer[0] in _SIZES:
                return None
            shortest, longest = _SIZES.get(buffer[0], (1, 0))
            size = buffer[1] if len(buffer) > 1 else 0
            if shortest <= size <= longest:
                if len(buffer) < size:
                    return None
                request = bytes(buffer[:size])
                if check(request[:-2]) == request[-2:]:
                    del buffer[:size]
                    return request
                self.bad += 1
            del buffer[0]
        return None

    def _request(self, request: bytes, now: float) -> None:
        self.requests += 1
        if self.heard is not None:
            what = "functions" if request[4:5] == b"G" else "component"
            self.heard(_COMMANDS.get(request[0], what))
        if self._silence.covers(now):
            return
        at = now + ANSWER_S
        if self.traps.sprung("two_masters"):
            self.uart.say(at, self._answer(frame(IACQ, bytes((LEVEL, 0)) + b"Get Special Functions")))
        answer = self._answer(request)
        if self.traps.sprung("bad_crc"):
            answer = answer[:-1] + bytes((answer[-1] ^ 0x10,))
        at += lateness(self.traps)
        if self.traps.sprung("chatter"):
            answer = b"\x83\xff boot\r\n\x00" + answer
        for _ in range(copies(self.traps)):
            self.uart.say(at, answer)

    def _answer(self, request: bytes) -> bytes:
        code, data = request[0], request[2:-2]
        if code == SQ:
            flags = _FLAGS.get(self.verifier.state, _IDLE)
            return frame(0x81, self.version.to_bytes(2, "big") + bytes((flags, self.formats)))
        if code == LASQ:
            last = self.verifier.outcome
            seconds = 0 if last is None else int(self.verifier.now - last.at)
            return frame(0x82, bytes((LEVEL if last else 0,)) + seconds.to_bytes(4, "big"))
        if code == LARQ:
            return frame(0x83, self._result(data[0], int.from_bytes(data[1:], "big")))
        return frame(0x84, bytes((self._initiate(data),)))

    def _result(self, wanted: int, number: int) -> bytes:
        report = self.report(wanted)
        start = (number - 1) * self._piece
        if report is None or not 0 <= start < max(1, len(report)):
            return bytes((0x01,)) + number.to_bytes(2, "big")
        last = start + self._piece >= len(report)
        number += bool(self.traps.sprung("wrong_frame"))
        return bytes((last << 1,)) + number.to_bytes(2, "big") + report[start : start + self._piece]

    def _initiate(self, data: bytes) -> int:
        """The flags of IACR: 1 acknowledged, 2 started, 4 level error."""
        if self.traps.sprung("level_error") or data[:2] != bytes((LEVEL, 0)) or self.version < 0x0300:
            return 0x04
        name, *more = data[2:].decode("latin-1").split("\t")
        if self.traps.sprung("nak") or name not in ("Get Special Functions", "Component"):
            return 0x00
        try:
            self.verifier.begin(_task(more) if name == "Component" else Task())
        except (CannotDo, ValueError, IndexError):
            return 0x00
        return 0x01 if self.verifier.pickup else 0x03


def _task(words: list[str]) -> Task:
    salt = words[1]
    if salt == "(none)":
        return Task(words[0])
    bytes.fromhex(salt.lower().removeprefix("0x"))
    return Task(words[0], salt)


def _rows(outcome: Outcome, verifier: Verifier) -> list[tuple[str, str]]:
    task = outcome.task
    image = verifier.components[task.component or ""]
    return [
        ("Name", task.component or ""),
        ("Salt", task.salt or "(none)"),
        ("Size", str(len(image))),
        ("SHA1_HMAC" if task.salt else "SHA1", outcome.digest or ""),
        *((f"Part{n}", f"offset {n * 4096} length 4096 loaded from flash bank 0") for n in range(8)),
    ]


def _xml(outcome: Outcome, verifier: Verifier) -> str:
    """Without an encoding in its declaration: terminals choke on one."""
    head = '<?xml version="1.0"?>\n'
    if outcome.task.component is None:
        functions = [
            "<Feature>Get Special Functions</Feature>",
            *(
                f"<Feature>Component</Feature><Parameter>{escape(name)}</Parameter>"
                "<Parameter>%%SHA1_HMAC%%</Parameter>"
                for name in verifier.components
            ),
        ]
        rows = "\n".join(f"<Function>{function}</Function>" for function in functions)
        return f"{head}<SpecialFunctions>\n{rows}\n</SpecialFunctions>\n"
    rows = "\n".join(f"  <{key}>{escape(value)}</{key}>" for key, value in _rows(outcome, verifier))
    return f"{head}<Component>\n{rows}\n</Component>\n"


def _text(outcome: Outcome, verifier: Verifier) -> str:
    if outcome.task.component is None:
        return "".join(f"Component\t{name}\r\n" for name in ("", *verifier.components) if name)
    return "".join(f"{key}: {value}\r\n" for key, value in _rows(outcome, verifier))
