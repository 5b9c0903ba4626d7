"""A barcode reader on USB: driver, pump and transport as the daemon joins them, and the command line."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from controller import open_tables
from controller.cli import app
from devices.base import Setup
from devices.events import DeviceEvent
from devices.registry import load
from firmware_bridge.clock import SystemClock
from firmware_bridge.port import Opened, Port, Unavailable
from firmware_bridge.transports import libusb, open_receiver, parse_uri
from simulators import faults
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.pty_watch import PtyWatch
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_host import UsbHost
from simulators.models.cards import Stack, make_batch
from simulators.models.shoe import Shoe
from simulators.wire.barcode_hid import BarcodeReader
from tests.support.desk import desk, served
from tests.support.umockdev import needs_umockdev

CLOCK = SystemClock()
WITHIN_S = 30.0
CODE_S = 0.1
LISTENED_S = 0.1
"""What is typed between opening and the first read is lost."""
PATIENT = ("--option", "gap_ms=2000")
"""A machine under load may read a code in two halves."""
ONE = ("--count", "1", "--json", *PATIENT)


class Draws:
    """A dealer who draws `count` cards, one each `every` s, while somebody listens."""

    def __init__(self, shoe: Shoe, count: int, every: float) -> None:
        self._shoe, self._left, self._every, self._at, self._next = shoe, count, every, 0.0, 0.0
        self._deaf = 0.0
        self.listening: Callable[[], bool] = lambda: True
        shoe.hands = self

    def deadline(self) -> float | None:
        return self._at if self._left else None

    def act(self) -> None:
        now = self._shoe.now
        if not self.listening():
            self._deaf = now
        elif now >= max(self._next, self._deaf + LISTENED_S):
            self._shoe.draw()
            self._left -= 1
            self._next = now + self._every
        self._at = now + 0.01


def reader(cards: int = 3, *, every: float = 0.3, **switches: Any) -> BarcodeReader:
    shoe = Shoe(Random("shoe"))
    shoe.open_lid()
    shoe.load(Stack(make_batch("red", 1)))
    shoe.close_lid()
    Draws(shoe, cards, every)
    return BarcodeReader(shoe, **switches)


def drawn(device: BarcodeReader) -> list[str]:
    return [h.data["face"] for h in device.machine.happenings if h.kind == "drawn"]


@pytest.fixture
def usb(monkeypatch):
    """Plugs a reader in and looks at who opens what; nothing may be held at the end."""
    made: list[UsbHost] = []

    def plug(device: BarcodeReader) -> UsbHost:
        host = UsbHost(device)
        device.machine.hands.listening = lambda: bool(host.usb.claims)
        host.opened = opened = []

        class Watched(SimBackend):
            def open_device(self, dev):
                opened.append(dev.device)
                return super().open_device(dev)

        monkeypatch.setattr(libusb, "make_backend", lambda: Watched(host.bus))
        made.append(host)
        return host

    yield plug
    for host in made:
        assert host.bus.left() == {}


class Watch:
    """A port, stepped here; what it hands on is in `log`."""

    def __init__(self, uri: str, **options: Any) -> None:
        spec = load("barcode-hid")
        options = {"gap_ms": 2000, **options}
        setup = Setup("reader", Random(1), options=options, packets=parse_uri(uri).packets)
        self.log: list[Any] = []
        self.port = Port("reader", open_receiver(uri, spec.baud), spec.reader(setup), CLOCK, self._take)

    def _take(self, _name, outputs):
        self.log += outputs

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.port.close()

    def until(self, ready):
        end = CLOCK.now() + WITHIN_S
        while not ready():
            assert CLOCK.now() < end, self.log
            self.port.step(0.05)
        return self

    def of(self, *kinds):
        return [o for o in self.log if isinstance(o, DeviceEvent) and o.kind in kinds]

    @property
    def cards(self):
        return [e.card for e in self.of("card_drawn")]


def watch_cards(host: UsbHost, count: int, **options: Any) -> Watch:
    with Watch(host.uri, **options) as watch:
        return watch.until(lambda: len(watch.of("card_drawn", "frame_rejected")) >= count)


def played(device: BarcodeReader, seconds: float = 10.0, **options: Any) -> list[DeviceEvent]:
    """The same without USB and without waiting: report by report, each at its time."""
    driver = load("barcode-hid").decoder(Setup("reader", Random(1), options=options, packets=True))
    events, now = [], 0.0
    while now < seconds:
        times = [t for t in (device.deadline(), driver.deadline(), seconds) if t is not None]
        now = max(now, min(times))
        for report in device.packets(now):
            events += driver.feed(report, now)
        events += driver.tick(now)
    return events


def of(events: list[DeviceEvent], kind: str, field: str) -> list[Any]:
    return [getattr(e, field) for e in events if e.kind == kind]


# Cards


def test_every_card_that_leaves_the_shoe_is_told_once_in_order_and_for_nobody(usb):
    device = reader(5, every=CODE_S)
    with served(usb(device)) as host:
        watch = watch_cards(host, 5)
    assert watch.cards == drawn(device) == ["AC", "2C", "3C", "4C", "5C"]
    told = [(e.position, e.index, e.back, e.seq, e.n) for e in watch.of("card_drawn")]
    assert told == [(None, None, None, None, n) for n in range(2, 7)], "one behind the other, after link_up"
    assert watch.of("frame_rejected", "gap_possible") == []


@pytest.mark.parametrize(
    ("switches", "options"),
    [
        ({"rollover": True}, {}),
        ({"repeats": 3}, {}),
        ({"rollover": True, "repeats": 1}, {}),
        ({"digits": "keypad"}, {"digits": "keypad"}),
        ({"enter": "keypad_enter"}, {"terminator": "keypad_enter"}),
        ({"digits": "keypad", "enter": "keypad_enter"}, {"digits": "any", "terminator": "any"}),
        ({"reserved": 0x5A}, {"reserved": "any"}),
    ],
)
def test_each_reading_of_the_document_has_its_option_and_its_reader(switches, options):
    device = reader(5, **switches)
    assert of(played(device, **options), "card_drawn", "card") == drawn(device)
    assert len(drawn(device)) == 5
    if options:
        assert of(played(reader(5, **switches)), "card_drawn", "card") == []


@pytest.mark.parametrize(
    ("fault", "reasons", "left"),
    [
        ("lost_key_up:1@2", [], 3),
        ("modifier@2", ["modifier key"], 2),
        ("modifier:02@2", ["modifier key"], 2),
        ("lost_enter@2", ["code without its end"], 2),
        ("short_report@2", ["report of another size"], 2),
        ("misread@2", [], 2),
        ("unplug_mid_code@2", ["code without its end"], 2),
        ("rollover", [], 3),
        ("keypad_digits", ["key that is no digit"] * 3, 0),
        ("keypad_enter", ["key that is no digit"] * 3, 0),
        ("reserved", ["reserved byte not zero"] * 3, 0),
    ],
)
def test_a_damaged_code_is_told_is_no_card_and_spoils_no_other_one(fault, reasons, left):
    device = reader(3)
    faults.apply(device, fault)
    events = played(device)
    assert of(events, "card_drawn", "card") == [["AC"], ["AC", "3C"], ["AC", "2C", "3C"]][left - 1][:left]
    assert of(events, "frame_rejected", "reason") == reasons
    assert of(events, "gap_possible", "missing") == [None] * len(reasons)


def test_two_cards_whose_enter_between_them_is_lost_are_both_told_as_lost():
    device = reader(3, every=0.2)
    faults.apply(device, "lost_enter@1")
    events = played(device)
    assert of(events, "card_drawn", "card") == ["3C"]
    assert of(events, "frame_rejected", "reason") == ["not four digits"]


def test_a_key_up_that_is_lost_between_two_equal_digits_makes_no_code():
    device = reader(12, every=CODE_S)
    for nth in (1, 11):
        faults.apply(device, f"lost_key_up:2@{nth}")  # the ace of clubs is 3010, the jack 3110
    events = played(device)
    assert [face for face in drawn(device) if face not in of(events, "card_drawn", "card")] == ["JC"]
    assert of(events, "frame_rejected", "reason") == ["not four digits"]


# The plug


def test_field_41_every_attach_is_told_with_who_it_is(usb):
    device = reader(3, every=0.3)
    faults.apply(device, "unplug_mid_code:0.1@1")
    with served(usb(device)) as host, Watch(host.uri) as watch:
        watch.until(lambda: len(watch.cards) == 2)
        assert host.usb.address > 2, "it came back under another address"
    opened = [o.port for o in watch.log if isinstance(o, Opened)]
    who = "USB device 1209:0004 at 1-1, Cutcard Barcode Reader, serial BC0001"
    assert opened == [f"{who}, interrupt reports, kernel driver detached"] * 2
    assert host.usb.bound == {0: "usbhid"} or host.usb.gone


def test_unplugged_in_mid_code_the_part_is_told_and_the_next_code_is_clean(usb):
    device = reader(3, every=0.4)
    faults.apply(device, "unplug_mid_code:0.1@2")
    with served(usb(device)) as host, Watch(host.uri) as watch:
        watch.until(lambda: len(watch.cards) == 2)
    assert watch.cards == ["AC", "3C"]
    kinds = [o.kind for o in watch.log if isinstance(o, DeviceEvent)]
    assert kinds[:8] == [
        "link_up", "card_drawn", "frame_rejected", "gap_possible", "link_down", "link_up", "gap_possible",
        "card_drawn",
    ]  # fmt: skip
    assert watch.of("frame_rejected")[0].reason == "code without its end"


def test_field_41_another_keyboard_is_never_opened(usb):
    device = reader(3, every=CODE_S)
    faults.apply(device, "second_keyboard")
    with served(usb(device)) as host:
        watch = watch_cards(host, 3)
        other = host.neighbour
        assert watch.cards == drawn(device), "its keys are on the bus too and are nobody's"
        assert set(host.opened) == {host.usb}
        assert (other.bound, other.claims, other.detached) == ({0: "usbhid"}, {}, 0)


def test_field_41_of_two_twins_the_named_one_is_used_and_without_a_name_none_is(usb):
    device = reader(3, every=CODE_S)
    faults.apply(device, "second_keyboard:same")
    with served(usb(device)) as host:
        watch = watch_cards(host, 3)
        twin = host.neighbour
        assert watch.cards == drawn(device)
        assert (twin.bound, twin.claims, twin.waiting) == ({0: "usbhid"}, {}, 0), "asked for its name alone"
        with Watch("usbhid:1209:0004") as nameless:
            nameless.until(lambda: nameless.log)
    (refused,) = nameless.log
    assert isinstance(refused, Unavailable)
    assert refused.kind == "WrongDevice"
    assert "BC0001, KB0001" in refused.text
    assert "name one by its serial number" in refused.text


def test_a_keyboard_that_is_not_the_named_one_is_not_taken_instead(usb):
    with served(usb(reader(1))) as host, Watch("usbhid:1209:0004:BC0002") as watch:
        watch.until(lambda: watch.log)
        assert host.usb.claims == {}
    assert watch.log[0].kind == "Absent"
    assert "BC0001 at 1-1 is" in watch.log[0].text


# The command line


@pytest.fixture
def cutcard(capsys, monkeypatch):
    monkeypatch.setattr(open_tables, "any_open", lambda: False)

    def call(*words):
        code = 0
        try:
            app.main(list(words))
        except SystemExit as left:
            code = int(left.code or 0)
        return code, *capsys.readouterr()

    return call


def told(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_monitor_shows_cards_and_hides_them_while_a_table_is_open(cutcard, usb, monkeypatch):
    with served(usb(reader(2))) as host:
        code, out, err = cutcard("monitor", host.uri, "--driver", "barcode-hid", *ONE)
        assert (code, told(out)[0]["card"], told(out)[0]["position"]) == (0, "AC", None)
        assert "Cutcard Barcode Reader" in err
    monkeypatch.setattr(open_tables, "any_open", lambda: True)
    with served(usb(reader(2))) as host:
        _, out, _ = cutcard("monitor", host.uri, "--driver", "barcode-hid", *ONE)
    assert (told(out)[0]["card"], told(out)[0]["raw"]) == (None, None)


def test_a_capture_of_reports_decodes_to_the_same_cards(cutcard, usb, tmp_path):
    file, device = str(tmp_path / "reader.pcapng"), reader(4, every=0.3)
    faults.apply(device, "short_report@2")
    faults.apply(device, "unplug_mid_code:600@4")
    with served(usb(device)) as host:
        code, _, err = cutcard("capture", host.uri, "--driver", "barcode-hid", "-o", file)
    assert (code, "was lost" in err) == (3, True), err
    code, out, _ = cutcard(
        *["decode", "--driver", "barcode-hid", "--format", "pcapng", "--json"], file, *PATIENT
    )
    *events, summary = told(out)
    assert code == 0
    assert [e.get("card", e.get("reason")) for e in events if e["kind"] != "gap_possible"] == [
        "AC", "report of another size", "3C", "code without its end",
    ]  # fmt: skip
    assert (summary["frames"], summary["rejected"]) == (2, 2)


def test_decode_reads_a_reader_on_the_keypad_when_told(cutcard, tmp_path):
    device, file = reader(2, digits="keypad", enter="keypad_enter"), tmp_path / "dump"
    file.write_bytes(device.transmit(9.0))
    told_so = ("--option", "digits=keypad", "--option", "terminator=any", "--option", "gap_ms=500")
    code, out, _ = cutcard("decode", "--driver", "barcode-hid", str(file), "--json", *told_so)
    assert (code, [e["card"] for e in told(out)[:-1]]) == (0, drawn(device))


@pytest.mark.parametrize("form", ["raw", "hex"])
def test_decode_takes_reports_one_behind_the_other(cutcard, tmp_path, form):
    device = reader(3, every=0.1)
    stream = device.transmit(9.0)
    file = tmp_path / "dump"
    file.write_bytes(stream) if form == "raw" else file.write_text(stream.hex(" ", 8))
    code, out, _ = cutcard("decode", "--driver", "barcode-hid", "--format", form, str(file), "--json")
    *events, summary = told(out)
    assert code == 0
    assert [e["card"] for e in events] == drawn(device)
    assert (summary["frames"], summary["bytes"]) == (3, 3 * 10 * 8)


def test_reports_on_a_stream_are_read_too(cutcard, tmp_path):
    """No reader has a serial line, but a recorded one may be played on it."""
    device = reader(2)
    host = PtyHost(device, tmp_path / "reader")
    watch = PtyWatch(host.path)
    device.machine.hands.listening = lambda: watch.look() or watch.opened
    with served(host):
        code, out, _ = cutcard("monitor", host.uri, "--driver", "barcode-hid", *ONE)
    watch.close()
    assert (code, [e["card"] for e in told(out)]) == (0, ["AC"])


def test_it_has_no_commands_to_send(cutcard):
    code, _, err = cutcard("send", "usbhid:1209:0004", "--driver", "barcode-hid", "peek")
    assert (code, "barcode-hid knows no commands" in err) == (2, True)


@needs_umockdev
def test_a_simulated_reader_under_the_real_libusb_with_a_second_keyboard_beside_it():
    with tempfile.TemporaryDirectory(prefix="sim") as home, desk() as table:
        listen = f"usb:{home}/d"
        sim = table.cutcard(
            "sim", "barcode-hid", "--listen", listen, "--fault", "second_keyboard", "--seed", "3"
        )
        table.until(lambda: bool(sim.out))
        said = json.loads(sim.out[0])
        assert said["port"] == "usbhid:1209:0004:BC0001"
        monitor = ("monitor", said["port"], "--driver", "barcode-hid", *ONE)
        code, out, err = table.end_of(table.cutcard(*monitor, alone=True, **said["env"]))
        assert (code, len(out)) == (0, 1), err
        assert json.loads(out[0])["kind"] == "card_drawn"
        code, out, _ = table.end_of(table.cutcard("ports", "--json", **said["env"]))
        fitting = {row["uri"]: row["driver"] for row in json.loads(out[0])["ports"]}
        assert fitting["usbhid:1209:0004:BC0001"] == "barcode-hid"
        assert [uri for uri, driver in fitting.items() if driver is None] == ["usbhid:1209:0005:KB0001"]
        os.kill(sim.pid, signal.SIGTERM)
        table.until(lambda: not sim.open)
