"""The control socket: NDJSON requests in, answers and facts out (contracts: "Control socket").

One thread with a selector serves every client; it decides nothing. A client's requests are answered one
after the other, buffers are bounded, and a follower that does not read is cut off with a reason rather than
waited for. The `Desk` behind it is the controller; its answers come back through a mailbox.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from controller.access import GROUPS, Caller, caller
from controller.control_requests import (
    LINE_LIMIT,
    TOO_LONG,
    Line,
    Misunderstood,
    error_line,
    listen,
    parse,
    refused_line,
    value_of,
    view_of,
)
from controller.record import Entry
from controller.service import Reply
from controller.table.inputs import OperatorEvent, Refusal

OUT_LIMIT = 1024 * 1024
"""Bytes that may wait for one client before it is cut off."""
MOST_CLIENTS = 64
HISTORY_STEP = 200
"""Past facts fetched at once for a follower."""
KEY_LIMIT = 128
"""Characters of an idempotency key."""


class Desk(Protocol):
    """What the socket asks of the controller. Answers may come from another thread, later."""

    def submit(self, event: OperatorEvent, answer: Callable[[Reply], None]) -> None:
        """Have the event decided; `answer` is called once, after its facts are committed."""

    def history(self, since: int, limit: int, answer: Callable[[Sequence[Entry], int], None]) -> None:
        """The next `limit` entries above `since`, and the number of the newest entry at that moment."""

    def view(self, what: str) -> Any:
        """One of `VIEWS` as plain data, masked."""


@dataclass
class _Client:
    sock: socket.socket
    who: Caller
    incoming: bytearray = field(default_factory=bytearray)
    outgoing: bytearray = field(default_factory=bytearray)
    waiting: bool = False
    """An answer of the controller is due; later requests wait."""
    skipping: bool = False
    """In the rest of a line that was too long."""
    closing: bool = False
    """Cut off: what is queued may still leave, nothing more is taken."""
    ended: bool = False
    """It sends nothing more (it may still read): it is let go once it has all that it asked for."""
    sent_all: bool = True
    next: int | None = None
    """For a follower, the number of the next fact it gets."""
    live: bool = False
    fetching: bool = False
    events: int = 0


class ControlServer:
    """Listens at `path`. `serve` runs until `stop`; `publish`, `ping` and `stop` may come from any thread."""

    def __init__(
        self,
        path: Path,
        desk: Desk,
        to_json: Callable[[Entry], Line],
        *,
        out_limit: int = OUT_LIMIT,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        self._desk = desk
        self._to_json = to_json
        self._out_limit = out_limit
        self._beat = beat
        self._mail: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._closed = False
        self._clients: dict[int, _Client] = {}
        self._stopping = False
        self._listener = listen(path)
        self._inode = path.stat().st_ino
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._wake_in, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_out, selectors.EVENT_READ)

    # --- from any thread ---

    def publish(self, entries: Sequence[Entry]) -> None:
        """Hand freshly committed entries to the followers, in the order of commits."""
        self._post(lambda: self._spread(entries))

    def ping(self) -> None:
        """Have the serving thread call `beat`: proof that it is alive."""
        self._post(self._beat)

    def stop(self) -> None:
        """End `serve` after what is already in the mailbox."""

        def stopping() -> None:
            self._stopping = True

        self._post(stopping)

    def _post(self, letter: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:  # the wake pipe's number may belong to another file by now
                return
            self._mail.append(letter)
            with suppress(BlockingIOError):  # full: a wake-up is on its way
                os.write(self._wake_in, b"w")

    # --- the serving thread ---

    def serve(self) -> None:
        """Serve clients until stopped, then close the socket and remove its name."""
        try:
            while not self._stopping:
                ready = self._selector.select()
                for key, events in ready:
                    if key.fd == self._wake_out:
                        self._read_mail()
                    elif key.fd in self._clients:
                        self._turn(self._clients[key.fd], events)
                if any(key.fileobj is self._listener for key, _ in ready):
                    self._accept()  # last: who left makes room first
        finally:
            self.close()

    def close(self) -> None:
        """Close every handle; safe to call twice. Only a name that is still ours is removed."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.close(self._wake_in)
        for client in list(self._clients.values()):
            with suppress(OSError):
                client.sock.send(client.outgoing)
            self._drop(client)
        self._selector.close()
        self._listener.close()
        os.close(self._wake_out)
        with suppress(FileNotFoundError):
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:  # gone again, or no descriptor left: the listener stays readable
            return
        sock.setblocking(False)
        _, uid, gid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        client = _Client(sock, caller(uid, gid))
        self._clients[sock.fileno()] = client
        if len(self._clients) > MOST_CLIENTS:
            self._cut_off(client, f"{MOST_CLIENTS} clients are connected already: close one of them")
            return
        self._interest(client)

    def _turn(self, client: _Client, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                self._flush(client)
            if events & selectors.EVENT_READ:
                data = client.sock.recv(LINE_LIMIT)
                client.ended = not data
                if not client.closing:
                    client.incoming += data
                    self._requests(client)
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        self._interest(client)

    def _read_mail(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wake_out, 4096):
                pass
        while self._mail:
            self._mail.popleft()()

    def _requests(self, client: _Client) -> None:
        """Take whole lines while no answer is due; tell what is wrong with one and go on."""
        while not client.waiting and not client.closing:
            end = client.incoming.find(b"\n")
            if end < 0:
                if len(client.incoming) > LINE_LIMIT:
                    if not client.skipping:
                        self._say(client, error_line(TOO_LONG))
                    client.skipping = True
                    client.incoming.clear()
                return
            line = bytes(client.incoming[:end])
            del client.incoming[: end + 1]
            if client.skipping:
                client.skipping = False
            elif len(line) > LINE_LIMIT:
                self._say(client, error_line(TOO_LONG))
            elif line.strip():
                self._request(client, line)

    def _request(self, client: _Client, line: bytes) -> None:
        try:
            request = parse(line)
            if not client.who.roles:
                why = f"{client.who.name} has no role here: join one of the groups {', '.join(GROUPS)}"
                self._say(client, refused_line(Refusal("not_allowed", why)))
            elif "do" in request:
                self._do(client, request)
            elif "get" in request:
                what = view_of(request)
                self._say(client, {"ok": True, what: self._desk.view(what)})
            else:
                self._follow(client, request)
        except Misunderstood as error:
            self._say(client, error_line(str(error)))

    def _do(self, client: _Client, request: Line) -> None:
        event, key = request.pop("do"), request.pop("id", None)
        if not isinstance(event, str) or not event:
            raise Misunderstood('"do" takes the name of an operator event')
        if key is not None and (not isinstance(key, str) or not 0 < len(key) <= KEY_LIMIT):
            raise Misunderstood(f'"id" takes a text of up to {KEY_LIMIT} characters')
        args = {name: value_of(name, value) for name, value in request.items()}
        client.waiting = True
        self._desk.submit(
            OperatorEvent(event, args, client.who.name, client.who.roles, key),
            lambda reply: self._post(lambda: self._answered(client, key, reply)),
        )

    def _answered(self, client: _Client, key: str | None, reply: Reply) -> None:
        if self._clients.get(client.sock.fileno()) is not client:
            return
        answer: Line
        refusal = reply.refusal
        if refusal is None:
            answer = {"ok": True, "facts": [self._to_json(entry) for entry in reply.entries]}
        else:
            answer = refused_line(refusal)
        if key is not None:
            answer["id"] = key
        client.waiting = False
        self._say(client, answer)
        self._requests(client)
        self._interest(client)

    # --- followers: the past first, then live, each fact once ---

    def _follow(self, client: _Client, request: Line) -> None:
        since = request.pop("follow")
        if isinstance(since, bool) or not isinstance(since, int) or since < 0:
            raise Misunderstood('"follow" takes the number of the last fact you have, 0 for all')
        if request:
            raise Misunderstood(f'"follow" does not take {next(iter(request))!r}')
        client.next, client.live = since + 1, False
        self._fetch(client)

    def _fetch(self, client: _Client) -> None:
        """Ask for the next past facts; one question at a time, and none while much is still unsent."""
        if client.next is None or client.live or client.fetching or client.closing:
            return
        if len(client.outgoing) > self._out_limit // 2:
            return
        client.fetching = True
        self._desk.history(
            client.next - 1,
            HISTORY_STEP,
            lambda entries, head: self._post(lambda: self._fetched(client, entries, head)),
        )

    def _fetched(self, client: _Client, entries: Sequence[Entry], head: int) -> None:
        """Past facts came. Nothing newer than `head` was published before this letter, so none is missed."""
        if self._clients.get(client.sock.fileno()) is not client:
            return
        client.fetching = False
        self._feed(client, entries)
        if client.next is not None and client.next > head:
            client.live = True
        self._fetch(client)
        self._interest(client)

    def _spread(self, entries: Sequence[Entry]) -> None:
        for client in list(self._clients.values()):
            if client.live and not client.closing:
                self._feed(client, entries)
                self._interest(client)

    def _feed(self, client: _Client, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if client.next is None or client.closing or entry.seq < client.next:
                continue
            client.next = entry.seq + 1
            self._say(client, self._to_json(entry))

    # --- bytes out ---

    def _say(self, client: _Client, line: Line) -> None:
        if client.closing:
            return
        client.outgoing += json.dumps(line, separators=(",", ":")).encode() + b"\n"
        if len(client.outgoing) <= self._out_limit:
            return
        with suppress(OSError):
            self._flush(client)
        if len(client.outgoing) > self._out_limit:
            self._cut_off(client, "you did not read fast enough: connect again and follow from the last fact")

    def _flush(self, client: _Client) -> None:
        while client.outgoing:
            sent = client.sock.send(memoryview(client.outgoing)[: 256 * 1024])
            client.sent_all = client.outgoing[sent - 1] == 0x0A
            del client.outgoing[:sent]
        if client.closing:
            raise ConnectionAbortedError
        self._fetch(client)

    def _cut_off(self, client: _Client, why: str) -> None:
        """Keep the rest of a line that is half sent, say why, and take nothing more from this client."""
        rest = b"" if client.sent_all else client.outgoing[: client.outgoing.find(b"\n") + 1]
        client.outgoing = bytearray(rest) + json.dumps(error_line(why)).encode() + b"\n"
        client.incoming.clear()
        client.closing = True
        try:
            self._flush(client)
        except BlockingIOError:
            self._interest(client)
        except OSError:
            self._drop(client)

    def _interest(self, client: _Client) -> None:
        """Watch what this client can do now: its backlog of requests is bounded by not reading."""
        fd = client.sock.fileno()
        if self._clients.get(fd) is not client:
            return
        if client.outgoing and not client.closing:
            try:
                self._flush(client)
            except BlockingIOError:
                pass
            except OSError:
                self._drop(client)
                return
        fed = client.next is None or client.live  # a follower that ended has the past at least
        if client.ended and fed and not client.waiting and not client.outgoing:
            self._drop(client)
            return
        events = selectors.EVENT_WRITE if client.outgoing else 0
        if not client.ended and len(client.incoming) <= LINE_LIMIT:
            events |= selectors.EVENT_READ
        if events == client.events:
            return
        if client.events == 0:
            self._selector.register(client.sock, events)
        elif events == 0:
            self._selector.unregister(client.sock)
        else:
            self._selector.modify(client.sock, events)
        client.events = events

    def _drop(self, client: _Client) -> None:
        fd = client.sock.fileno()
        if self._clients.get(fd) is client:
            del self._clients[fd]
            if client.events:
                self._selector.unregister(client.sock)
        client.sock.close()
