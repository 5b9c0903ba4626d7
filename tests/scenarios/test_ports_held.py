"""Who holds a port: refused to a second program by name, and free again however the first one ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controller import open_tables
from controller.cli import app
from controller.cli.signals import ended_by_signals
from firmware_bridge.clock import SystemClock
from firmware_bridge.transports import libusb, open_receiver
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_host import UsbHost
from simulators.wire.framings import PACKETS
from tests.support.desk import Child, Desk, angel_eye, desk, managed_shoe, never_answered, served
from tests.support.plugs import Pty, Usb
from tests.support.umockdev import needs_umockdev

SHOE = "managed-shoe"
LOCK = (67, 1)
SOON_S = 5.0
"""A loaded machine takes a while to end a process; a signal that went unseen would take for ever."""


@pytest.fixture
def bench() -> Iterator[Desk]:
    with desk() as made:
        yield made


class Held(NamedTuple):
    """A command that holds a port until it is ended: when it is where we want it, and how it ends."""

    args: str
    prepare: Callable[[Any], Callable[[Child], bool]]
    code: int
    says: str


def at_its_events(device: Any) -> Callable[[Child], bool]:
    return lambda child: device.requests > 5


def in_its_session(device: Any) -> Callable[[Child], bool]:
    device.traps.set("silent", None)
    return lambda child: device.requests > 0


def in_its_command(device: Any) -> Callable[[Child], bool]:
    heard = never_answered(device, *LOCK)
    return lambda child: bool(heard)


def on_a_silent_line(device: Any) -> Callable[[Child], bool]:
    del device
    return lambda child: any("listening on" in line for line in child.err)


HELD = {
    "monitor": Held("monitor --driver angel-eye", on_a_silent_line, 0, "listening on"),
    "capture": Held("capture --driver managed-shoe -o FILE", at_its_events, 0, "listening on"),
    "send in its session": Held(
        "send --driver managed-shoe lock", in_its_session, 3, "lock was not sent: {signal} came first"
    ),
    "send in its command": Held(
        "send --driver managed-shoe lock", in_its_command, 3, "({signal} came before the answer): it was sent"
    ),
}


@pytest.mark.parametrize(
    ("wire", "held", "number"),
    [
        (Pty, "monitor", signal.SIGTERM),
        (Pty, "capture", signal.SIGTERM),
        (Pty, "send in its session", signal.SIGTERM),
        (Pty, "send in its command", signal.SIGINT),
        pytest.param(Usb, "send in its command", signal.SIGTERM, marks=needs_umockdev),
    ],
)
def test_i52_a_signal_ends_it_and_leaves_no_handle_and_no_lock(
    wire: type[Pty | Usb], held: str, number: signal.Signals, bench: Desk, tmp_path: Path
) -> None:
    args, prepare, code, says = HELD[held]
    line = wire(managed_shoe, tmp_path)
    ready = prepare(line.device)
    bench.hosts += line.hosts
    command, *rest = args.replace("FILE", str(tmp_path / "x.pcapng")).split()
    child = bench.cutcard(command, line.host.uri, *rest, alone=True, **line.env)
    bench.until(lambda: ready(child) or not child.open)
    assert not line.is_free()
    child.process.send_signal(number)
    took = bench.until(lambda: not child.open)
    assert (child.code, took < SOON_S) == (code, True), child.err
    assert says.format(signal=number.name) in "".join(child.err[-2:])
    assert "Traceback" not in "".join(child.err)
    bench.until(line.is_free)
    line.opens_again()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_a_signal_ends_a_read_under_way_without_an_exception(number: signal.Signals, tmp_path: Path) -> None:
    line = Pty(angel_eye, tmp_path)
    port = open_receiver(line.host.uri)
    port.open()
    stack = Path(f"/proc/self/task/{threading.get_native_id()}/wchan")
    clock, pause = SystemClock(), threading.Event()

    def strike() -> None:
        for _ in range(2000):  # then it surely waits, on a machine that does not say so too
            if "poll" in stack.read_text():
                break
            pause.wait(0.001)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=strike)
    with ended_by_signals(port.stop) as ending:
        thread.start()
        since = clock.now()
        assert port.read(5.0) == b""
        took = clock.now() - since
    thread.join()
    port.dispose()
    line.host.close()
    assert ending.by == number.name
    assert took < 1.0


def test_i52_a_signal_gives_claim_and_kernel_driver_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device = managed_shoe(PACKETS)
    host = UsbHost(device)
    host.usb.drivers = {0: "cutcard_test"}
    host.replug()
    monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(host.bus))
    monkeypatch.setattr(open_tables, "any_open", lambda: False)
    left: list[dict[str, int]] = []

    def terminate(_: Any) -> None:
        left.append(host.bus.left())
        os.kill(os.getpid(), signal.SIGTERM)

    device._commands[*LOCK, 2] = terminate  # type: ignore[assignment]
    with served(host), pytest.raises(SystemExit) as end:
        app.main(["send", f"{host.uri}?detach=on", "--driver", SHOE, "lock", "--json"])
    assert end.value.code == 3
    assert json.loads(capsys.readouterr().out)["outcome"] == "unknown"
    assert left[0]["claims"] == left[0]["detached drivers"] == 1
    assert host.bus.left() == {}


@pytest.mark.parametrize("wire", [Pty, pytest.param(Usb, marks=needs_umockdev)])
def test_i10_a_port_that_another_command_holds_is_busy(
    wire: type[Pty | Usb], bench: Desk, tmp_path: Path
) -> None:
    line = wire(managed_shoe, tmp_path)
    bench.hosts += line.hosts
    port = line.host.uri
    first = bench.cutcard("monitor", port, "--driver", SHOE, "--json", **line.env)
    bench.until(lambda: len(first.out) > 0 or not first.open)
    asked = [bench.cutcard("send", port, "--driver", SHOE, "lock", "--json", **line.env)]
    if wire is Pty:
        file = str(tmp_path / "x.pcapng")
        asked.append(bench.cutcard("monitor", port, "--driver", SHOE))
        asked.append(bench.cutcard("capture", port, "--driver", SHOE, "-o", file, alone=True))
    bench.until(lambda: not any(child.open for child in asked))
    # under the preload a device's file has another name than in this machine's /proc
    holder = f"process {first.pid} (" if wire is Pty else "another program"
    for child in asked:
        assert child.code == 3
        assert f"is held by {holder}" in child.err[-1]
        assert len([line for line in child.err if line.startswith("cutcard: ")]) == 1
    assert json.loads(asked[0].out[0]) == {
        "command": "lock", "outcome": "not_sent", "code": "busy", "answer": None,
    }  # fmt: skip
    assert first.open
    assert not line.device.machine.locked


def test_i10_a_program_that_writes_no_lock_file_holds_it_too(bench: Desk, tmp_path: Path) -> None:
    host = bench.serve(PtyHost(managed_shoe(), tmp_path / "port"))
    with (tmp_path / "port").open("rb+", buffering=0) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        child = bench.cutcard("send", host.uri, "--driver", SHOE, "lock")
        code, out, err = bench.end_of(child)
    assert (code, out) == (3, [])
    assert "lock was not sent" in err[0]
    assert "is held by" in err[0]
    assert len(err) == 1
