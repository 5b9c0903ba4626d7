"""What `deploy/` ships fits the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controller import access, config
from controller.table import modes
from controller.table.blackjack import Ties
from devices import registry
from firmware_bridge.transports import locks

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_example_table_is_valid_and_complete() -> None:
    loaded = config.load(DEPLOY / "table.toml")
    assert loaded.notes == ()
    assert loaded.socket == config.RUNTIME_DIR / "BJ-07.sock"


EXAMPLES = sorted((DEPLOY / "tables").glob("*.toml"))
FLAGGED = {
    "casino-night-shoe-shuffler": ["rules.burn"],
    "continuous": ["table.mode", "rules.continuous_batches"],
    "hand-dealt-one-deck": ["rules.hand_backs_differ"],
    "mississippi-stud": ["rules.cut"],
}
"""Examples that stand on a reading, with the notes of `check`."""


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_of_a_mode_is_valid(path: Path) -> None:
    loaded = config.load(path)
    assert [note.partition(":")[0] for note in loaded.notes] == FLAGGED.get(path.stem, [])
    assert loaded.journal.stem == loaded.key.stem == loaded.rules.table


def test_there_is_an_example_for_each_profile_mode_and_game() -> None:
    tables = [config.load(path).rules for path in EXAMPLES]
    assert {(rules.profile, rules.mode) for rules in tables} == set(modes.MODES)
    assert {rules.game for rules in tables} == set(modes.GAMES)
    nights = [rules for rules in tables if rules.night]
    assert {(rules.shoe is None, rules.shuffler is None) for rules in nights} == {
        *((True, True), (True, False), (False, True), (False, False)),
    }
    assert {rules.ties for rules in nights} == set(Ties)
    assert {rules.dealer_hands for rules in tables} == {1, 3}
    assert len({rules.table for rules in tables}) == len(tables)


def test_the_groups_of_the_control_socket_are_made() -> None:
    lines = (DEPLOY / "sysusers.conf").read_text().splitlines()
    made = {line.split()[1] for line in lines if line[:1] in {"u", "g"}}
    assert made == {access.SOCKET_GROUP, *access.GROUPS}


def test_the_unit_is_notified_watched_and_may_write_where_the_example_does() -> None:
    unit = (DEPLOY / "cutcard@.service").read_text()
    values = dict(
        line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#")
    )
    assert values["Type"] == "notify"
    assert float(values["WatchdogSec"]) > 0
    assert int(values["StartLimitBurst"]) > 0
    loaded = config.load(DEPLOY / "table.toml")
    writable = values["ReadWritePaths"].split()
    for path in (loaded.socket, loaded.journal, loaded.key):
        assert str(path.parent) in writable


def test_the_unit_names_the_manual_where_the_install_lines_put_it() -> None:
    (link,) = re.findall(
        r"^Documentation=file://(.*)$", (DEPLOY / "cutcard@.service").read_text(), re.MULTILINE
    )
    manual = (DEPLOY.parent / "docs" / "operating.md").read_text()
    (source,) = re.findall(r"git clone \S+ (\S+)", manual)
    assert link == f"{source}/docs/operating.md"


def test_the_unit_may_open_every_kind_of_port() -> None:
    lines = (DEPLOY / "cutcard@.service").read_text().splitlines()
    allowed = {line.removeprefix("DeviceAllow=") for line in lines if line.startswith("DeviceAllow=")}
    assert allowed == {f"char-{kind} rw" for kind in ("ttyUSB", "ttyACM", "ttyS", "usb_device")}
    (families,) = (
        line.split("=")[1].split() for line in lines if line.startswith("RestrictAddressFamilies=")
    )
    assert {"AF_INET", "AF_INET6", "AF_NETLINK"} <= set(families)
    (writable,) = (line.split("=")[1].split() for line in lines if line.startswith("ReadWritePaths="))
    assert f"-{locks.LOCK_DIRS[0]}" in writable
    hidden = [line for line in lines if line.startswith("ProtectProc=")]
    assert hidden == [], "who holds a port could not be seen"


def udev_rules() -> list[dict[str, str]]:
    """Each rule's matches and assignments by key; one key stands once in a rule."""
    rules = []
    for line in (DEPLOY / "60-cutcard.rules").read_text().splitlines():
        if line and not line.startswith("#"):
            parts = re.findall(r'([\w{}/]+)([=!+]+)"([^"]*)"', line)
            assigned = {"=": "=", "+=": "+="}
            rules.append({key + assigned.get(sign, ""): value for key, sign, value in parts})
    return rules


KEYBOARDS = {(0x1209, 4)}


def test_i15_i18_every_device_that_a_driver_fits_has_its_udev_rules() -> None:
    """ModemManager leaves it alone, it never falls asleep, and the daemon's group may open it."""
    ids = {pair for name in registry.names() for pair in registry.load(name).usb}
    assert {(0x1209, 1), (0x1209, 2)} | KEYBOARDS <= ids
    rules = udev_rules()
    for vendor, product in ids:
        names = f"{vendor:04x}", f"{product:04x}"
        (whole,) = (r for r in rules if (r.get("ATTR{idVendor}"), r.get("ATTR{idProduct}")) == names)
        (part,) = (r for r in rules if (r.get("ATTRS{idVendor}"), r.get("ATTRS{idProduct}")) == names)
        assert (whole["SUBSYSTEM"], whole["ENV{DEVTYPE}"]) == ("usb", "usb_device")
        assert whole["ATTR{power/control}="] == "on"
        opened = [whole]
        if (vendor, product) not in KEYBOARDS:
            assert part["SUBSYSTEM"] == "tty"
            assert part["ENV{ID_MM_PORT_IGNORE}="] == "1"
            opened.append(part)
        for rule in opened:
            assert rule["ENV{ID_MM_DEVICE_IGNORE}="] == "1"
            assert (rule["GROUP="], rule["MODE="]) == (access.SOCKET_GROUP, "0660")


def test_field_41_what_a_barcode_reader_types_reaches_no_screen() -> None:
    """As soon as the kernel's driver has it, as at plugging in and when our own program gives it back."""
    rules = [r for r in udev_rules() if r.get("DRIVER") == "usbhid"]
    named = {(int(r["ATTRS{idVendor}"], 16), int(r["ATTRS{idProduct}"], 16)) for r in rules}
    assert named == KEYBOARDS, "no other keyboard is touched"
    for rule in rules:
        assert (rule["ACTION"], rule["SUBSYSTEM"], rule["ENV{DEVTYPE}"]) == ("bind", "usb", "usb_interface")
        assert rule["RUN+="] == "/bin/sh -c 'echo %k > /sys/bus/usb/drivers/usbhid/unbind'"


def test_udev_rules_hold_for_a_device_that_comes_back_too() -> None:
    first, *_, last = udev_rules()
    assert (first["ACTION"], first["GOTO="], last["LABEL="]) == (
        "add|change|bind",
        "cutcard_end",
        "cutcard_end",
    )


def test_no_rule_opens_a_port_to_everybody() -> None:
    assert {rule.get("MODE=", "0660") for rule in udev_rules()} == {"0660"}
