"""Firmware management against the simulated device under a virtual clock."""

from random import Random

import pytest

from firmware_bridge.clock import VirtualClock
from firmware_bridge.firmware import image
from firmware_bridge.firmware.host import FirmwareHost, Greeted, Progress
from firmware_bridge.firmware.jobs import JOBS
from firmware_bridge.link import Complete, Done, NotSent, Refused, Unknown
from firmware_bridge.port import Port
from firmware_bridge.transports.mem import MemTransport
from simulators.hosts.memory_host import MemoryHost
from simulators.models.firmware import Flash, build
from simulators.models.shoe import Shoe
from simulators.wire.managed_shoe import ManagedShoe

NEW = build("1.2.0", "SIM-SHOE", b"new" * 700)


class World:
    def __init__(self, **options):
        self.clock = VirtualClock()
        self.device = ManagedShoe(Shoe(Random("cards")), **options)
        self.host = MemoryHost(self.device)
        self.log = []
        driver = FirmwareHost(JOBS, Random("host"))
        self.port = Port("dev", MemTransport(self.host.endpoint, "mem:dev"), driver, self.clock, self._take)

    def _take(self, _name, outputs):
        self.log += outputs

    def run(self, until, seconds=400.0):
        end = self.clock.now() + seconds
        while not until():
            busy = True
            while busy and not until():
                self.host.pump(self.clock.now())
                busy = self.port.step(0)
            if until():
                return
            due = [t for t in (self.host.deadline(), self.port.deadline()) if t is not None]
            assert min(due) <= end, self.log
            self.clock.advance(max(1e-6, min(due) - self.clock.now()))

    def do(self, name, **args):
        if not any(isinstance(item, Greeted) for item in self.log):
            self.run(lambda: any(isinstance(item, Greeted) for item in self.log))
        count = len([item for item in self.log if isinstance(item, Complete)])
        self.port.command(f"{name}{count}", name, args)
        self.run(lambda: len([i for i in self.log if isinstance(i, Complete)]) > count)
        return [i for i in self.log if isinstance(i, Complete)][-1].outcome


@pytest.fixture
def world():
    made = []

    def make(**options):
        made.append(World(**options))
        return made[-1]

    yield make
    for one in made:
        one.port.close()


def test_upload_reset_confirm_is_told_by_identity_alone(world):
    w = world()
    new = image.read(NEW)
    assert w.do("identify").answer["firmware"] == "1.0.0"
    sent = w.do("upload", image=new)
    assert sent == Done({"version": "1.2.0", "hash": new.hash, "sent": len(NEW), "state": "pending"})
    assert w.do("identify").answer["firmware"] == "1.0.0", "an upload changes nothing that runs"
    assert w.do("reset") == Done({"boot": 2, "firmware": "1.2.0", "hash": new.hash})
    assert isinstance(w.do("confirm"), Done)
    assert w.do("reset").answer["firmware"] == "1.2.0"
    done = [p.done for p in w.log if isinstance(p, Progress)]
    assert done == sorted(set(done))
    assert done[-1] == len(NEW)


def test_an_image_that_is_not_confirmed_is_gone_after_the_next_restart(world):
    w = world()
    w.do("upload", image=image.read(NEW))
    assert w.do("reset").answer["firmware"] == "1.2.0"
    assert w.do("reset").answer["firmware"] == "1.0.0"


def test_i34_a_device_that_says_yes_and_keeps_the_old_image_is_found_out(world):
    w = world()
    w.device.flash.traps.set("keep_old")
    w.do("upload", image=image.read(NEW))
    end = w.do("reset")
    assert isinstance(end, Refused)
    assert (end.code, "1.2.0" in end.name, "what runs: 1.0.0" in end.name) == ("old_image", True, True)


PACKETS = 7
"""An upload of NEW in packets of 384 bytes."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("packet", range(1, PACKETS + 1))
def test_a_restart_at_every_packet_ends_with_the_whole_image(world, packet, when):
    w = world(buffer=None)
    w.device.traps.set("upload_reboot", packet, when)
    assert w.do("upload", image=image.read(NEW)).answer["state"] == "pending"
    assert w.device.flash.other.data == NEW
    assert w.device.machine.boot == 2


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"#!/bin/sh", "no firmware image"),
        (NEW[:-1], "cut off"),
        (NEW[:40], "cut off"),
        (NEW + b"x", "behind its end"),
        (NEW[:100] + b"\0" + NEW[101:], "SHA-256 does not fit"),
    ],
)
def test_a_bad_file_is_refused_before_anything_is_sent(data, text):
    with pytest.raises(image.BadImage, match=text):
        image.read(data)


@pytest.mark.parametrize("product", ["SIM-SHUFFLER", None])
def test_a_foreign_image_is_refused_before_the_first_erase(world, product):
    w = world()
    end = w.do("upload", image=image.read(build("9.0.0", product)))
    assert isinstance(end, NotSent)
    assert "nothing was sent" in end.reason
    assert w.device.flash.erased == 0


def test_an_image_that_arrives_damaged_is_never_marked(world):
    w = world()
    w.device.flash.traps.set("spoil")
    end = w.do("upload", image=image.read(NEW))
    assert isinstance(end, Refused)
    assert end.code == "damaged"
    assert w.device.flash.other is None


@pytest.mark.parametrize("buffer", [None, 96, 128, 384, 1032])
def test_no_packet_is_larger_than_the_device_takes(world, buffer):
    w = world(buffer=buffer)
    assert w.do("upload", image=image.read(NEW)).answer["state"] == "pending"


def test_a_slow_erase_is_waited_for(world):
    w = world(flash=Flash(build("1.0.0", "SIM-SHOE"), erase_s=65.0))
    assert w.do("upload", image=image.read(NEW)).answer["state"] == "pending"
    assert w.device.flash.erased == 1


@pytest.mark.parametrize("old_errors", [False, True])
def test_a_refused_packet_ends_the_upload_and_names_the_cause(world, old_errors):
    w = world(old_errors=old_errors)
    w.device.traps.set("upload_refused", 2)
    end = w.do("upload", image=image.read(NEW))
    assert (type(end), end.code) == (Refused, "12")


def test_a_device_without_images_says_so(world):
    w = world(flash=False)
    assert w.do("list") == Refused("8", "not supported")
    assert w.do("identify").answer["hash"] is None
    assert w.do("echo", text="hello") == Done({"text": "hello"})


def test_a_device_that_never_comes_back_is_unknown(world):
    w = world()
    w.do("list")
    w.device.traps.set("silent", 3)
    end = w.do("reset")
    assert isinstance(end, Unknown)
    assert "not there again within 60 s" in end.reason
