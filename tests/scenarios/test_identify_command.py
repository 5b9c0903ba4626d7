"""`cutcard identify`: what a device says of itself, what it is compared with, and the lines to approve it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controller import config
from controller.cli import app, smp_job
from controller.cli import identify as identify_module
from firmware_bridge.transports import libusb
from simulators.hosts.tcp_host import TcpHost
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_host import UsbHost
from simulators.models.firmware import build, parse
from simulators.wire.framings import PACKETS
from tests.support.desk import angel_eye, managed_shoe, managed_shuffler, served
from tests.unit.test_config_tables import CONTRACT

HASH = "39238498a8427435b346587ccee8cf25265391f9cb32a5b38ada0f912dd655c1"
KEYS = ["vendor", "product", "serial", "firmware", "hash", "boot", "class", "verdict", "why"]


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        (line,) = self.out.splitlines()
        return dict(json.loads(line))


Call = Callable[..., Ran]


@pytest.fixture
def identify(capsys: pytest.CaptureFixture[str]) -> Call:
    def call(*words: object, before: tuple[object, ...] = ()) -> Ran:
        code = 0
        try:
            app.main([*map(str, before), "identify", *map(str, words)])
        except SystemExit as left:
            code = int(left.code or 0)
        return Ran(code, *capsys.readouterr())

    return call


def table(place: Path, more: str) -> Path:
    file = place / "table.toml"
    file.write_text(CONTRACT + more)
    return file


def test_without_a_list_it_is_unchecked_and_fine(identify: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    host = UsbHost(managed_shoe(PACKETS))
    monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(host.bus))
    with served(host):
        as_json, as_text = identify(host.uri, "--json"), identify(host.uri)
    told = as_json.json
    assert (as_json.code, list(told)) == (0, KEYS)
    assert [told[key] for key in KEYS[:8]] == [
        "Cutcard", "SIM-SHOE", "SH0001", "1.0.0", HASH, 1, "shoe", "UNCHECKED",
    ]  # fmt: skip
    rows = dict(row.split(maxsplit=1) for row in as_text.out.splitlines())
    assert (as_text.code, rows["serial"], rows["hash"]) == (0, "SH0001", HASH)


@pytest.mark.rule("R-72")
def test_what_enrol_prints_approves_the_device_and_no_other(identify: Call, tmp_path: Path) -> None:
    device = managed_shoe()
    with served(TcpHost(device)) as host:
        lines = identify(host.uri, "--enrol")
        assert (lines.code, lines.err) == (0, "")
        assert lines.out.splitlines() == [
            "[[devices.shoe.allowed]]",
            'vendor = "Cutcard"',
            'product = "SIM-SHOE"',
            'serial = "SH0001"',
            'firmware = "1.0.0"',
            f'hash = "{HASH}"',
        ]
        file = table(tmp_path, lines.out)
        config.load(file)
        fits = identify(host.uri, "--config", file, "--json")
        by_global = identify(host.uri, "--device", "shoe", "--json", before=("--config", file))
        unnamed = identify(host.uri, "--config", file, "--device", "shuffler", "--json")
        device.flash.running = parse(build("1.0.1", "SIM-SHOE"))
        changed = identify(host.uri, "--config", file, "--json")
        device._identity["serial"] = "SH0002"
        unlisted = identify(host.uri, "--config", file)
    assert (fits.code, fits.json["verdict"]) == (by_global.code, by_global.json["verdict"])
    assert (fits.code, fits.json["verdict"]) == (0, "ATTESTED_UNTRUSTED")
    assert (unnamed.code, unnamed.json["verdict"]) == (0, "UNCHECKED")
    assert (changed.code, changed.json["verdict"]) == (3, "CHANGED")
    assert "firmware is 1.0.1, the list says 1.0.0" in changed.err
    assert unlisted.code == 3
    assert "UNLISTED: Cutcard SIM-SHOE SH0002 with firmware 1.0.1 is not on the list" in unlisted.err


def test_a_table_says_by_name_port_or_class_which_list_is_meant(identify: Call, tmp_path: Path) -> None:
    file = table(
        tmp_path, '[[devices.shuffler.allowed]]\nvendor="V"\nproduct="P"\nserial="S"\nfirmware="1"\n'
    )
    with served(TcpHost(managed_shuffler())) as host:
        by_class = identify(host.uri, "--config", file, "--json")
        wrong = identify(host.uri, "--config", file, "--device", "shufler")
    with served(TcpHost(managed_shoe())) as host:
        free = identify(host.uri, "--config", file, "--json")
    assert (by_class.code, by_class.json["verdict"]) == (3, "UNLISTED")
    assert (wrong.code, "has shoe, shuffler" in wrong.err) == (2, True)
    assert (free.code, free.json["verdict"]) == (0, "UNCHECKED")


def test_strings_of_a_device_stay_strings_in_the_lines(identify: Call) -> None:
    device = managed_shoe()
    device._identity |= {"vendor": 'A"\n[x]\\ 😀\x1b[2J\x7f\x9b', "serial": "SH1"}
    with served(TcpHost(device)) as host:
        lines = identify(host.uri, "--enrol", "--device", "left")
    assert "\x1b" not in lines.out
    (entry,) = tomllib.loads(lines.out)["devices"]["left"]["allowed"]
    assert entry["vendor"] == 'A"\n[x]\\ 😀\x1b[2J\x7f\x9b'


# Who says less, or the wrong thing


def test_a_device_that_contradicts_itself_is_changed_whatever_a_list_says(identify: Call) -> None:
    device = managed_shoe()
    told = device._commands[64, 0, 0]
    device._commands[64, 0, 0] = lambda body: {**told(body), "hash": bytes(32)}
    with served(TcpHost(device)) as host:
        ran = identify(host.uri, "--json")
        enrol = identify(host.uri, "--enrol")
    assert (ran.code, ran.json["verdict"]) == (3, "CHANGED")
    assert f"it says that it runs image {'00' * 32}, and lists {HASH} as running" in ran.err
    assert (enrol.code, enrol.out, "it contradicts itself" in enrol.err) == (3, "", True)


def test_a_device_of_another_maker_speaks_smp_and_does_not_say_who_it_is(identify: Call) -> None:
    device = managed_shoe()
    del device._commands[64, 0, 0]
    with served(TcpHost(device)) as host:
        ran = identify(host.uri, "--json")
        enrol = identify(host.uri, "--enrol")
    assert (ran.code, ran.json["serial"], ran.json["verdict"]) == (0, None, "UNCHECKED")
    assert "does not tell who it is (group 64)" in ran.json["why"]
    assert (enrol.code, "cannot be approved" in enrol.err) == (3, True)


def test_i37_a_bootloader_is_nobody_to_approve(identify: Call) -> None:
    device = managed_shoe()
    device.flash.bootloader = True
    with served(TcpHost(device)) as host:
        ran = identify(host.uri, "--json")
        enrol = identify(host.uri, "--enrol")
    assert (ran.json["serial"], ran.json["firmware"], ran.json["hash"]) == ("SH0001", "", None)
    assert "its bootloader answers, and no image runs" in ran.json["why"]
    assert (enrol.code, "does not tell its firmware" in enrol.err) == (3, True)


def test_what_only_talks_has_no_identity(identify: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identify_module, "HEARD_S", 0.3)
    device = angel_eye()
    device.transmit = lambda now: b""  # type: ignore[method-assign]
    device.deadline = lambda: None  # type: ignore[method-assign]
    with served(TcpHost(device)) as host:
        silent = identify(host.uri, "--driver", "angel-eye", "--json")
        device.transmit = lambda now: bytes.fromhex("053153033631")  # type: ignore[method-assign]
        heard = identify(host.uri, "--driver", "angel-eye", "--json")
        enrol = identify(host.uri, "--driver", "angel-eye", "--enrol")
    assert (silent.code, silent.json["verdict"]) == (3, None)
    assert "nothing of angel-eye was heard" in silent.err
    assert (heard.code, heard.json["verdict"], heard.json["class"]) == (0, "UNCHECKED", None)
    assert "it does not tell who it is" in heard.json["why"]
    assert (enrol.code, enrol.out) == (3, "")


def test_nobody_there_ends_with_3(identify: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smp_job, "SESSION_S", 0.3)
    monkeypatch.setattr(smp_job, "TURN_S", 0.05)
    device = managed_shoe()
    device.traps.set("silent")
    with served(TcpHost(device)) as host:
        silent = identify(host.uri, "--json")
    absent = identify("serial:/dev/cutcard-no-such-port", "--json")
    for ran in (silent, absent):
        assert (ran.code, ran.json["verdict"], list(ran.json)) == (3, None, KEYS)
    assert "gave no session" in silent.json["why"]
    assert "is not there" in absent.json["why"]


def test_enrol_and_json_are_two_things(identify: Call) -> None:
    assert identify("socket:127.0.0.1:1", "--enrol", "--json").code == 2
