"""What happens to ports at tables: others talk first, hosts fall asleep, clocks jump, peers go silent."""

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from select import select
from types import SimpleNamespace

import pytest

from controller import log
from controller.daemon import Controller
from controller.notify import Notifier
from controller.table.inputs import Observed
from devices.base import Setup
from devices.events import DeviceEvent
from devices.managed import ring, session
from devices.registry import load
from firmware_bridge import errors
from firmware_bridge import port as port_module
from firmware_bridge.clock import SystemClock, VirtualClock
from firmware_bridge.link import Complete, Done
from firmware_bridge.port import Opened, Port, Unavailable
from firmware_bridge.transports import libusb, open_receiver, open_transport
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import TcpHost
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_descriptors import Configuration, Interface
from simulators.hosts.usb_device import UsbDevice
from simulators.rig import sim
from simulators.wire.angel_eye import SEQUENCES, telegram
from tests.support import line as line_module
from tests.support.line import shoe_line, shuffler_line
from tests.support.peers import CLOCK, PtyPeer, using
from tests.support.usb import HID

WITHIN_S = 30.0


class Bench:
    """A real port and driver, and a simulated device behind a real pty or TCP port, stepped by turns."""

    def __init__(self, host, driver="managed-shoe"):
        self.host = host
        self.log = []
        setup = Setup("shoe", Random("bench"))
        controlled = load(driver).controlled(setup)
        self.port = Port("shoe", open_transport(host.uri), controlled, SystemClock(), self._deliver)
        self._start = CLOCK.now()

    def _deliver(self, name, outputs):
        self.log += outputs
        numbers = [o.n for o in outputs if isinstance(o, DeviceEvent)]
        if numbers:
            self.port.ack(numbers[-1])

    def until(self, condition):
        """Turns until `condition` holds; the seconds it took."""
        start = CLOCK.now()
        while not condition():
            assert CLOCK.now() - start < WITHIN_S, self.log
            self.host.pump(CLOCK.now() - self._start)
            self.port.step(0.005)
        return CLOCK.now() - start

    def kinds(self):
        return [e.kind for e in self.log if isinstance(e, DeviceEvent)]

    def close(self):
        self.port.close()
        self.host.close()


@contextlib.contextmanager
def bench(host, **more):
    made = Bench(host, **more)
    try:
        yield made
    finally:
        made.close()


def test_i15_a_program_that_talks_first_is_waited_for_and_its_traces_are_junk():
    """ModemManager opens what is new, sends AT for a while, holds the port and lets it go."""
    with bench(PtyHost(sim.make("managed-shoe", 0))) as table:
        manager = os.open(table.host.path, os.O_RDWR | os.O_NOCTTY)
        fcntl.flock(manager, fcntl.LOCK_EX)
        os.write(manager, b"AT\rAT+GCAP\r")
        table.until(lambda: [o for o in table.log if isinstance(o, Unavailable)])
        (busy,) = table.log
        assert busy.kind == "Busy"
        assert f"held by process {os.getpid()}" in busy.text
        held = CLOCK.now()
        table.until(lambda: CLOCK.now() - held > 0.3)
        assert table.log == [busy]
        os.write(table.host.fileno(), b"AT\r\r\nERROR\r\n")  # an echo that nobody fetched
        fcntl.flock(manager, fcntl.LOCK_UN)
        assert table.until(lambda: any(isinstance(o, Opened) for o in table.log)) < 2.0
        os.write(table.host.fileno(), b"AT+GCAP\r\r\nERROR\r\n")  # and one that comes late
        assert table.until(lambda: "link_up" in table.kinds()) < 2.0
        os.write(manager, b"AT\r")  # root's programs may open it even now
        os.close(manager)
        table.port.command("c1", "lock")
        table.until(lambda: any(isinstance(o, Complete) for o in table.log))
        (end,) = (o for o in table.log if isinstance(o, Complete))
        assert isinstance(end.outcome, Done)
        assert table.host.device.machine.locked
        assert "link_down" not in table.kinds()


@pytest.mark.parametrize("make", [shoe_line, shuffler_line])
def test_i17_an_adapter_that_hands_on_only_every_16_ms_in_pieces_costs_time_and_nothing_else(make):
    """The latency timer of FTDI adapters: frames come late, together or cut in two."""
    line, machine = make()

    def batched(frame):
        wait = 0.016 - line.clock.now() % 0.016
        return [(wait, frame[: len(frame) // 2]), (wait + 0.016, frame[len(frame) // 2 :])]

    line.wire.up = batched
    line.run(60.0)
    line.command("c1", "status")
    assert isinstance(line.end_of("c1", within=1.0), Done)
    if make is shoe_line:
        drawn = [machine.draw() for _ in range(10)]
        line.run(5.0)
        assert [e.card for e in line.of("card_drawn")] == [card.rank + card.suit for card in drawn]
    assert not {"link_down", "frame_rejected", "gap_possible"} & set(line.kinds)
    assert line.driver.counters.retries == 0


class Drowsy:
    """A USB host that stops sending when it heard nothing for 2 s, until it hears something again (I-18)."""

    AFTER_S = 2.0

    def __init__(self, line):
        self.line = line
        self.heard = [line.clock.now()]
        self.kept = 0
        self._asleep = []
        line.wire.up, line.wire.down = self.up, self.down

    def down(self, data):
        self.heard.append(self.line.clock.now())
        asleep, self._asleep = self._asleep, []
        self.line.wire._launch([(0.0, frame) for frame in asleep], up=True)
        return [(0.0, data)]

    def up(self, frame):
        if self.line.clock.now() - self.heard[-1] <= self.AFTER_S:
            return [(0.0, frame)]
        self.kept += 1
        self._asleep.append(frame)
        return []

    def longest(self):
        return max(later - earlier for earlier, later in pairwise(self.heard))


@pytest.mark.parametrize("wait_ms", [0, 200, 1000])
@pytest.mark.parametrize("make", [shoe_line, shuffler_line])
def test_i18_a_host_that_falls_asleep_after_two_idle_seconds_never_does(make, wait_ms):
    line, machine = make(wait_ms=wait_ms)
    host = Drowsy(line)
    line.run(120.0)  # long enough for the driver to count as idle
    assert host.kept == 0
    assert host.longest() < 2.0
    if make is shoe_line:
        at = line.clock.now()
        machine.draw()
        line.run(5.0, lambda: "card_drawn" in line.kinds)
        assert line.clock.now() - at < 1.0
    assert "link_down" not in line.kinds


def test_i18_a_driver_that_asked_less_often_would_be_caught(monkeypatch):
    monkeypatch.setattr(ring, "IDLE_POLL", 5.0)
    line, _ = shoe_line(wait_ms=0)
    host = Drowsy(line)
    line.run(120.0)
    assert host.longest() > 2.0


class Jumping(VirtualClock):
    """Its wall clock goes a day on, two days back, and so on, at each look."""

    looks = 0

    def wall(self):
        Jumping.looks += 1
        return super().wall() + timedelta(days=(-2) ** (Jumping.looks % 8))


def story():
    """A session, a card, an unplugged cable, a silent device: all that comes of it, with its times."""
    line, machine = shoe_line()
    machine.draw()
    line.run(3.0)
    line.unplug()
    line.run(20.0)
    line.replug()
    line.run(10.0)
    line.device.traps.set("silent", 1, 4.0)
    line.command("c1", "status")
    line.run(20.0)
    return [(round(at, 6), entry) for at, entry in zip(line.times, line.log, strict=True)]


def test_i19_a_jumping_wall_clock_moves_no_back_off_and_no_deadline(monkeypatch):
    calm = story()
    monkeypatch.setattr(line_module, "VirtualClock", Jumping)
    assert story() == calm
    kinds = [entry.kind for _, entry in calm if isinstance(entry, DeviceEvent | Unavailable)]
    assert kinds.count("link_up") == 3
    assert kinds.count("link_down") == 2


def test_i19_real_ports_open_and_retry_by_the_monotonic_clock(monkeypatch, tmp_path):
    jumps = iter(range(10_000))
    monkeypatch.setattr(time, "time", lambda: 1.7e9 + (-1) ** next(jumps) * 86400.0)
    tried = []
    missing = tmp_path / "none"

    class Counted(SystemClock):
        def wall(self):
            return datetime.fromtimestamp(time.time(), UTC)

    port = Port("shoe", open_receiver(f"serial:{missing}"), None, Counted(), lambda name, outputs: None)
    real = port._transport.open
    monkeypatch.setattr(port._transport, "open", lambda: tried.append(CLOCK.now()) or real())
    while len(tried) < 4:
        port.step(1.0)
    port._transport.dispose()
    waits = [later - earlier for earlier, later in pairwise(tried)]
    for wait, expected in zip(waits, [port_module.BACKOFF_FIRST * 2**n for n in range(3)], strict=True):
        assert expected / 2 < wait < expected + 2.0  # a busy machine is late; the wall clock is a day off
    with using(PtyPeer()) as transport:
        transport.open()
        start = CLOCK.now()
        assert transport.read(0.05) == b""
        assert 0.04 < CLOCK.now() - start < 1.0


@pytest.mark.parametrize("make_host", [PtyHost, TcpHost])
def test_i21_a_device_that_falls_silent_on_an_open_line_is_told_down_in_time_and_comes_back(
    make_host, monkeypatch
):
    monkeypatch.setattr(session, "TIMEOUT", 0.1)
    monkeypatch.setattr(session, "BACKOFF", (0.1, 0.2))
    device = sim.make("managed-shoe", 0)
    with bench(make_host(device)) as table:
        table.until(lambda: "link_up" in table.kinds())
        device.traps.set("silent", 1, 1.5)
        took = table.until(lambda: "link_down" in table.kinds())
        bound = session.ATTEMPTS * (session.TIMEOUT + 0.2)
        assert took < bound + 2.0
        (down,) = (e for e in table.log if getattr(e, "kind", "") == "link_down")
        assert down.reason.startswith("the device is silent")
        assert table.port.health().state == "open"
        table.until(lambda: table.kinds().count("link_up") == 2)
        assert not [o for o in table.log if isinstance(o, Unavailable)]
        assert sum(isinstance(o, Opened) for o in table.log) == 1


@pytest.mark.parametrize(("idle_s", "waits_ms"), [(0.0, 200), (60.0, 500)], ids=["in play", "idle"])
def test_i21_silence_shows_within_three_attempts(idle_s, waits_ms):
    line, _ = shoe_line()
    line.run(idle_s)
    silent_at = line.clock.now()
    line.device.traps.set("silent", None)
    line.run(20.0, lambda: "link_down" in line.kinds)
    # The read that was parked when it fell silent is still answered.
    bound = waits_ms / 1000 + session.ATTEMPTS * (session.TIMEOUT + waits_ms / 1000)
    assert line.clock.now() - silent_at <= bound + 0.05
    assert bound <= 3.5


@pytest.mark.parametrize("driver", ["angel-eye", "managed-shoe"])
def test_i25_a_monitor_whose_port_dies_ends_though_its_standard_input_stays_open(driver):
    peer = PtyPeer()
    program = [sys.executable, "-c", "from controller.cli.app import main; main()", "monitor", peer.uri]
    with subprocess.Popen(
        [*program, "--driver", driver],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        try:
            assert child.stderr.readline().startswith("listening on serial port")
            start = time.monotonic()
            os.close(peer.master)
            peer.master = -1
            code = child.wait(20)
            assert time.monotonic() - start < 4.0
            assert code == 3
            said = child.stderr.read().splitlines()
            (sentence,) = (line for line in said if "a table is open" not in line)  # another test's
            assert "check the device" in sentence or "it was unplugged" in sentence
        finally:
            child.kill()
            peer.close()


class StuckTable:
    """A table whose commit takes until `disk` works again."""

    stopped, state = None, SimpleNamespace(pending={})

    def __init__(self):
        self.begun, self.disk, self.observed = threading.Event(), threading.Event(), []

    def handle(self, inputs):
        self.begun.set()
        assert self.disk.wait(WITHIN_S)
        self.observed += [item.event for item in inputs if isinstance(item, Observed)]
        return [None] * len(inputs)


def test_field_19_reading_never_waits_for_delivery():
    """The disk hangs while a shoe sends more than the line holds: all of it is read, and nothing is lost."""
    messages, alphabet = 20_000, SEQUENCES["hex"]
    table, peer = StuckTable(), PtyPeer()
    log.configure("critical")
    controller = Controller(table, SystemClock(), Notifier({}), log.get())
    driver = load("angel-eye").reader(Setup("shoe", Random("stuck")))
    port = Port("shoe", open_receiver(peer.uri), driver, SystemClock(), controller.deliver)
    pause = threading.Event()
    controller.ports = {"shoe": port}
    controlling = threading.Thread(target=controller.run)
    controlling.start()
    port.start()
    try:
        os.set_blocking(peer.master, False)
        while port.health().state != "open":
            pause.wait(0.005)
        left = memoryview(b"".join(telegram(alphabet[n % len(alphabet)], "P") for n in range(messages)))
        total, end = len(left), CLOCK.now() + WITHIN_S
        while left and CLOCK.now() < end:
            if select([], [peer.master], [], 0.1)[1]:
                left = left[os.write(peer.master, left) :]
        assert table.begun.is_set()
        assert not left, f"the line was full after {total - len(left)} of {total} bytes"
        while driver.counters.frames < messages:
            assert CLOCK.now() < end, driver.counters
            pause.wait(0.005)
        assert table.observed == []
    finally:
        table.disk.set()
        port.stop()
        controller.stop()
        controlling.join()
        controller.finish()
        peer.close()
    told = [event for event in table.observed if event.kind == "standby"]
    assert len(told) == messages
    assert [event.n for event in table.observed] == list(range(1, len(table.observed) + 1))


def test_field_26_what_came_between_two_sessions_is_not_taken_for_news():
    peer = PtyPeer()
    with using(peer) as transport:
        transport.open()
        peer.send(b"first")
        assert transport.read(2) == b"first"
        transport.close()
        peer.send(b"stale answer of before")
        assert select([peer.spare], [], [], 2)[0]  # it is there to be read
        transport.open()
        assert transport.read(0.05) == b""
        peer.send(b"fresh")
        assert transport.read(2) == b"fresh"


STORAGE = Configuration((Interface(klass=8, subclass=6, protocol=80),))


class Watched(SimBackend):
    """Says which devices somebody opened, claimed, detached or set."""

    touched: set

    def open_device(self, dev):
        self.touched.add(dev.device.serial)
        return super().open_device(dev)


@pytest.fixture
def usb(monkeypatch):
    """A shuffler on a hub with a player's phone, a keyboard and a second machine."""
    devices = {
        "shuffler": UsbDevice(),
        "other": UsbDevice(serial="SF0002"),
        "shoe": UsbDevice(product=2, serial="SH0001"),
        "stick": UsbDevice(0x0781, 0x5567, name="Cruzer", serial="STICK", configurations=(STORAGE,)),
        "keyboard": UsbDevice(0x046D, 0xC31C, name="Keyboard", serial="KEYS", configurations=(HID,)),
    }
    devices["stick"].drivers[0] = "usb-storage"
    devices["keyboard"].drivers[0] = "usbhid"
    bus = UsbBus(*devices.values())
    Watched.touched = set()
    monkeypatch.setattr(libusb, "make_backend", lambda: Watched(bus))
    yield bus, devices
    assert bus.left() == {}


def test_field_41_nothing_but_the_named_device_is_claimed_and_other_kinds_are_not_even_opened(usb):
    bus, devices = usb
    transport = open_transport("usb:1209:0001:SF0001")
    for _ in range(3):
        transport.open()
        assert [name for name, device in devices.items() if device.claims] == ["shuffler"]
        transport.write(b"hello")
        assert devices["shuffler"].received.get(timeout=2)[1] == b"hello"
        transport.close()
    transport.dispose()
    # Of its own kind the serial numbers must be read, so those are opened; nothing else is.
    assert Watched.touched == {"SF0001", "SF0002"}
    assert bus.calls["claim_interface"] == 3
    assert bus.calls["detach_kernel_driver"] == bus.calls["set_configuration"] == 0
    assert all(device.received.empty() for device in devices.values())
    assert (devices["stick"].bound, devices["keyboard"].bound) == ({0: "usb-storage"}, {0: "usbhid"})


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("usb:1209:0001:SF0009", errors.Absent),
        ("usb:1209:0001", errors.WrongDevice),
        ("usb:0781:5567:STICK", errors.Unsupported),
        ("usb:0781:5567:STICK?detach=on", errors.Unsupported),
        ("usb:046d:c31c:KEYS?detach=on", errors.Unsupported),
        ("usbhid:0781:5567:STICK", errors.Unsupported),
        ("usbhid:1209:0001:SF0001", errors.Unsupported),
    ],
)
def test_field_41_a_name_that_does_not_fit_claims_and_detaches_nothing(usb, uri, error):
    bus, devices = usb
    transport = open_transport(uri)
    with pytest.raises(error):
        transport.open()
    transport.dispose()
    assert bus.calls["claim_interface"] == bus.calls["detach_kernel_driver"] == 0
    assert bus.calls["bulk_write"] == bus.calls["submit_in"] == 0
    assert (devices["stick"].bound, devices["keyboard"].bound) == ({0: "usb-storage"}, {0: "usbhid"})
