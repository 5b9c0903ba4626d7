"""A table without devices behind a real control socket, and a client of it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from controller import log
from controller.control import ControlServer
from controller.daemon import Controller
from controller.factlog import MemoryJournal
from controller.notify import Notifier
from controller.render import entry_json
from controller.service import Service
from controller.table.profiles import BatchRules, TableRules
from firmware_bridge.clock import SystemClock

RULES = TableRules("T1", 7, 1, (BatchRules("A", "red"), BatchRules("B", "blue")))
masked = partial(entry_json, masked=True)


class Client:
    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(str(path))
        self.stream = self.sock.makefile("rb")

    def send(self, *requests: Any) -> None:
        self.sock.sendall(b"".join(json.dumps(request).encode() + b"\n" for request in requests))

    def line(self) -> dict[str, Any]:
        line = self.stream.readline()
        assert line.endswith(b"\n"), line
        return dict(json.loads(line))

    def ask(self, request: Any) -> dict[str, Any]:
        self.send(request)
        return self.line()

    def close(self) -> None:
        self.stream.close()
        self.sock.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def serving(server: ControlServer) -> Iterator[ControlServer]:
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


@contextmanager
def running(path: Path, journal: MemoryJournal | None = None) -> Iterator[Controller]:
    """A table without devices: a real controller thread, a real socket, a journal in memory."""
    clock = SystemClock()
    service = Service(RULES, journal or MemoryJournal(clock), {})
    service.recover()
    service.start("00")
    controller = Controller(service, clock, Notifier({}), log.get())
    server = ControlServer(path, controller, masked)
    controller.control = server
    service.publish = server.publish
    thread = threading.Thread(target=controller.run)
    with serving(server):
        thread.start()
        try:
            yield controller
        finally:
            controller.stop()
            thread.join()
