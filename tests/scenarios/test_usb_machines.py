"""Managed machines over USB bulk: driver, owner thread and transport as in the daemon, on a simulated bus."""

import os
import select
import threading
from random import Random

from devices.base import Setup
from devices.events import CardDrawn, CutCard, CycleCompleted, DeviceEvent, LinkDown, LinkUp, Rebooted
from devices.registry import load
from firmware_bridge.clock import SystemClock
from firmware_bridge.link import Complete, Done, NotSent, Unknown
from firmware_bridge.port import Opened, Port, Unavailable
from firmware_bridge.transports import libusb, open_transport, parse_uri
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_host import UsbHost
from simulators.models.cards import Card, CuttingCard, Stack, make_batch
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.wire.framings import PACKETS
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.managed_shuffler import ManagedShuffler

CLOCK = SystemClock()
TOKEN = bytes(range(16))


class Bench:
    """A machine in a thread of its own, its driver in the port's; `act` does something to the machine."""

    def __init__(self, driver, device, speed=1):
        self.host = UsbHost(device)
        self.events, self.news = [], threading.Condition()
        self._lock, (self._stopped, self._stop) = threading.Lock(), os.pipe()
        self._start, self._speed = CLOCK.now(), speed
        self._thread = threading.Thread(target=self._live)
        spec, uri = load(driver), self.host.uri
        setup = Setup("dev", Random("usb"), packets=parse_uri(uri).packets)
        self.port = Port("dev", open_transport(uri, spec.baud), spec.controlled(setup), CLOCK, self._take)

    def __enter__(self):
        self._before, libusb.make_backend = libusb.make_backend, lambda: SimBackend(self.host.bus)
        self._thread.start()
        self.port.start()
        return self

    def __exit__(self, *_):
        self.port.stop()
        os.write(self._stop, b"x")
        self._thread.join()
        libusb.make_backend = self._before
        os.close(self._stop)
        os.close(self._stopped)
        self.host.close()
        assert self.host.bus.left() == {}

    def _live(self):
        while True:
            with self._lock:
                self.host.pump(self._now())
                due = self.host.deadline()
            wait = None if due is None else max(0.0, due - self._now()) / self._speed
            ready = select.select([*self.host.filenos(), self._stopped], [], [], wait)[0]
            if self._stopped in ready and b"x" in os.read(self._stopped, 64):
                return

    def _now(self):
        return (CLOCK.now() - self._start) * self._speed

    def _take(self, _name, outputs):
        with self.news:
            self.events += outputs
            self.news.notify_all()
        if told := [o.n for o in outputs if isinstance(o, DeviceEvent)]:
            self.port.ack(max(told))

    def act(self, what):
        with self._lock:
            what()
            self.host.pump(self._now())
        os.write(self._stop, b"n")  # it may have something due sooner now

    def wait(self, test, seconds=5.0):
        """The first output, from now or before, for which `test` holds."""
        with self.news:
            found = self.news.wait_for(lambda: [e for e in self.events if test(e)], seconds)
            assert found, self.events
            return found[0]

    def forget(self):
        with self.news:
            self.events.clear()

    def end_of(self, call):
        return self.wait(lambda e: isinstance(e, Complete) and e.call_id == call).outcome


def shoe(cards=12):
    made = Shoe(Random("cards"))
    items = [*make_batch("red", 1)[: cards - 1], CuttingCard()]
    made.open_lid()
    made.load(Stack(items))
    made.close_lid()
    return Bench("managed-shoe", ManagedShoe(made, decks=1, framing=PACKETS)), made


def shuffler(speed=1):
    made = BatchShuffler(Random("shelves"), decks=1)
    made.load(Stack(make_batch("red", 1)))
    return Bench("managed-shuffler", ManagedShuffler(made, framing=PACKETS), speed), made


def is_a(kind):
    return lambda event: isinstance(event, kind)


def test_every_card_of_a_shoe_comes_over_usb_once_and_in_order():
    bench, machine = shoe()
    with bench:
        bench.wait(is_a(LinkUp))
        expected = list(machine.contents())
        for _ in expected:
            bench.act(machine.draw)
        bench.wait(is_a(CutCard))
        told = [e for e in bench.events if isinstance(e, CardDrawn | CutCard)]
        assert [e.card for e in told if isinstance(e, CardDrawn)] == [
            item.face for item in expected if isinstance(item, Card)
        ]
        assert isinstance(told[-1], CutCard)
        opened = bench.wait(is_a(Opened))
        assert "USB device 1209:0002 at 1-1, Cutcard Shoe, serial SH0001" in opened.port


def test_a_cycle_runs_over_usb_and_its_report_counts_every_card():
    bench, _machine = shuffler(speed=200)
    with bench:
        bench.wait(is_a(LinkUp))
        bench.port.command("c1", "start", {"token": TOKEN.hex()})
        assert bench.end_of("c1") == Done({"cycle": 1})
        done = bench.wait(is_a(CycleCompleted))
        assert (done.count, done.token, sum(done.composition.values())) == (52, TOKEN.hex(), 52)
        bench.port.command("c2", "release", {"token": TOKEN.hex()})
        assert bench.end_of("c2") == Done({"count": 52, "inside": 0})


def test_i38_unplugged_in_mid_command_is_unknown_and_the_device_is_found_again_within_two_seconds():
    bench, machine = shuffler()
    with bench:
        bench.wait(is_a(LinkUp))
        device = bench.host.device
        bench.act(lambda: device.traps.set("silent"))
        bench.port.command("c1", "start", {"token": TOKEN.hex()})
        bench.act(bench.host.unplug)
        assert isinstance(bench.end_of("c1"), Unknown | NotSent)
        bench.wait(is_a(LinkDown))
        assert bench.wait(is_a(Unavailable)).kind == "LinkLost"
        bench.forget()
        bench.act(lambda: device.traps.clear("silent"))
        back = CLOCK.now()
        bench.act(bench.host.replug)
        bench.wait(is_a(LinkUp))
        assert CLOCK.now() - back < 8
        assert machine.cycle <= 1, "nothing was sent again"
        assert bench.host.usb.address > 2


def test_i29_a_restart_is_told_before_any_event_after_it():
    bench, machine = shoe()
    with bench:
        bench.wait(is_a(LinkUp))
        bench.forget()
        bench.act(lambda: machine.power_cut(0.1))
        bench.wait(is_a(Rebooted))
        kinds = [e.kind for e in bench.events if isinstance(e, DeviceEvent)]
        assert kinds == ["link_down", "link_up", "rebooted"]
