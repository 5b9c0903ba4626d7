"""The simulated barcode reader: its reports are the documents', its faults are what they are called."""

import json
from pathlib import Path
from random import Random

import pytest

from simulators import faults
from simulators.hosts.usb_host import UsbHost
from simulators.hosts.usb_keyboard import CONFIGURATION, REPORT_DESCRIPTOR
from simulators.models.cards import Card, CuttingCard, Stack
from simulators.models.dealing_machine import DealingMachine
from simulators.models.shoe import Shoe
from simulators.wire.barcode_hid import BarcodeReader, code_of
from simulators.wire.reshuffled import ReShuffled

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "barcode_hid.json").read_text())["vectors"]
BY_MEANING = {v["meaning"]: [bytes.fromhex(r) for r in v["reports"]] for v in VECTORS}
SWITCHES = {
    "ace of spades": ("AS", {}),
    "king of diamonds": ("KD", {}),
    "ten of hearts": ("TH", {}),
    "jack of clubs: the same digit twice": ("JC", {}),
    "every report three times: a key that is held is one press": ("AS", {"repeats": 2}),
    "ended by the keypad's Enter": ("AS", {"enter": "keypad_enter"}),
    "typed on the keypad": ("TH", {"digits": "keypad"}),
    "all on the keypad": ("TH", {"digits": "keypad", "enter": "keypad_enter"}),
    "a reserved byte in use": ("TH", {"reserved": 0x5A}),
    "the next key goes down before the last one is up": ("AS", {"rollover": True}),
}


def reader(*faces: str, **switches) -> BarcodeReader:
    shoe = Shoe(Random(1))
    shoe.open_lid()
    shoe.load(Stack([Card(n, face[0], face[1], "red") for n, face in enumerate(faces, 1)] + [CuttingCard()]))
    shoe.close_lid()
    return BarcodeReader(shoe, **switches)


def typed(device: BarcodeReader, now: float = 60.0) -> list[bytes]:
    while not device.machine.empty:
        device.machine.draw()
    return device.packets(now)


def without_repeats(reports: list[bytes]) -> list[bytes]:
    return [report for at, report in enumerate(reports) if not at or report != reports[at - 1]]


@pytest.mark.parametrize("meaning", SWITCHES)
def test_its_reports_are_the_vectors(meaning):
    face, switches = SWITCHES[meaning]
    found = typed(reader(face, **switches))
    assert without_repeats(found) == without_repeats(BY_MEANING[meaning])


def test_a_cutting_card_and_an_unread_face_type_nothing():
    device = reader("AS", "KD")
    device.machine.traps.set("misread", 1)
    assert typed(device) == BY_MEANING["king of diamonds"]


def test_codes_are_the_documents():
    assert [code_of(face) for face in ("AS", "KD", "TH", "9C", "JC")] == [
        "1010",
        "4130",
        "2100",
        "3090",
        "3110",
    ]


def test_reports_come_one_by_one_and_a_second_card_waits_for_the_first():
    device = reader("AS", "KD")
    device.machine.draw()
    device.machine.draw()
    assert device.packets(0.0) == BY_MEANING["ace of spades"][:1]
    assert device.deadline() == pytest.approx(0.008)
    assert device.transmit(0.0795) == b"".join(BY_MEANING["ace of spades"][1:])
    assert device.packets(1.0) == BY_MEANING["king of diamonds"]


@pytest.mark.parametrize(
    ("fault", "differ"),
    [
        ("lost_key_up@1", "00001e0000000000 0000270000000000 0000000000000000"),
        ("lost_enter@1", "0000270000000000 0000000000000000 0000000000000000"),
        ("modifier@1", "0400270000000000"),
        ("modifier:02@1", "0200270000000000"),
        ("short_report@1", "00002700000000 0000000000000000"),
    ],
)
def test_faults_of_its_wire(fault, differ):
    device = reader("AS", "AS")
    faults.apply(device, fault)
    reports = typed(device)
    whole = BY_MEANING["ace of spades"]
    assert reports[-10:] == whole, "the second card is sound"
    assert differ in " ".join(report.hex() for report in reports[:-10])
    assert reports[:-10] != whole


def test_with_rollover_there_is_one_key_up_that_can_be_lost():
    device = reader("AS")
    faults.apply(device, "rollover")
    faults.apply(device, "lost_key_up:5@1")
    reports = typed(device)
    assert [bool(any(report)) for report in reports].count(False) == 0
    assert reports[-1][2] == 0x28


def test_unplugged_in_mid_code_it_types_no_more_of_it():
    device = reader("AS", "KD")
    faults.apply(device, "unplug_mid_code:0.5@1")
    device.machine.draw()
    assert device.packets(0.039) == BY_MEANING["ace of spades"][:5]
    assert device.packets(0.3) == []
    assert not device.machine.powered
    assert device.packets(1.0) == []
    device.machine.draw()
    assert device.packets(2.0) == BY_MEANING["king of diamonds"]
    assert device.machine.boot == 2


def test_on_usb_it_is_a_boot_keyboard_that_the_kernel_holds():
    device = reader("AS")
    faults.apply(device, "second_keyboard:same")
    host = UsbHost(device)
    (interface,) = CONFIGURATION.interfaces
    assert (interface.klass, interface.subclass, interface.protocol) == (3, 1, 1)
    assert interface.extra[-2:] == len(REPORT_DESCRIPTOR).to_bytes(2, "little")
    assert host.uri == "usbhid:1209:0004:BC0001"
    assert [d.uri for d in host.bus] == [host.uri, "usbhid:1209:0004:KB0001"]
    assert [d.bound for d in host.bus] == [{0: "usbhid"}] * 2
    host.close()
    assert list(host.bus) == []


@pytest.mark.parametrize(
    "text",
    ["lost_key_up:6", "modifier:zz", "second_keyboard@1", "second_keyboard:blue", "rollover@1",
     "unplug_mid_code:soon", "stray_bytes", "no_start", "silent"],
)  # fmt: skip
def test_faults_it_cannot_have_are_refused_with_a_sentence(text):
    with pytest.raises(faults.UnfitFault):
        faults.apply(reader("AS"), text)


@pytest.mark.parametrize(
    "text", ["refuse:0", "stray_bytes:xyz", "document:1", "semicolon@2", "lost_enter", "misread"]
)
def test_faults_a_dealing_machine_cannot_have_are_refused_too(text):
    with pytest.raises(faults.UnfitFault):
        faults.apply(ReShuffled(DealingMachine(Random(1))), text)
