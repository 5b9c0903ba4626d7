"""What a customer does with the pytest plugin, in a project of his own; and the fixtures here, one by one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import serial

from devices.registry import load as load_driver
from simulators.models.cards import Card
from simulators.rig import plugged, plugin
from simulators.rig.campaign.plan import WHOLE
from simulators.rig.campaign.slips import SLIPS
from simulators.rig.scenario import Expected, Scenario, Tap, load
from simulators.rig.sim import DEVICES
from simulators.rig.staging import play
from simulators.rig.steps import Stuck

pytest_plugins = ["pytester"]
EXAMPLE = Path(__file__).parents[1] / "example_project"
PAGE = (Path(__file__).parents[2] / "docs" / "simulators.md").read_text()
SMALL = {"table": {"wagers": []}, "cards": {"decks_per_batch": 1}}


def run(home: Path, *words: str) -> tuple[int, str]:
    """pytest in a project, as a process of its own; warnings are errors there."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *words],
        cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_the_example_project_passes():
    code, said = run(EXAMPLE, "-v")
    passed = re.findall(r"^(\S+?)(?:\.cutcard\.yaml)?::\S+ PASSED", said, re.MULTILINE)
    assert code == 0, said
    scenarios = {f"scenarios/{path.name.partition('.')[0]}" for path in (EXAMPLE / "scenarios").iterdir()}
    assert len(scenarios) == 7
    assert set(passed) == {"test_first.py", "test_our_table.py", "test_pit_display.py", *scenarios}


FAILS = """\
about: A card that nobody foresaw
table: two-batch-shoe-1
faults:
  - {fault: misread, device: shoe, card: 3}
expect: {rounds: 1}
"""


def test_a_scenario_that_fails_reads_like_a_report_and_one_that_is_wrong_is_one_line(pytester):
    (pytester.path / "fails.cutcard.yaml").write_text(FAILS)
    (pytester.path / "wrong.cutcard.yaml").write_text("seed: 1\nshoe: 2\n")
    done = pytester.runpytest("-W", "error", "--strict-markers", "--continue-on-collection-errors")
    said = done.stdout.str()
    report = re.search(r"_ A card that nobody foresaw _+\n(.*?)\n=", said, re.DOTALL)
    assert (done.ret, report is not None) == (1, True), said
    lines = report[1].splitlines()
    assert re.fullmatch(r"rounds: expected 1, found \d+", lines[0])
    assert lines[1] == ""
    assert re.fullmatch(r"seed 1: .* at the table; what struck: misread 1", lines[2])
    assert "wrong.cutcard.yaml:2: there is no key 'shoe'; did you mean 'shoes'? (there are about," in said
    assert "Traceback" not in said


def test_the_plugin_that_every_pytest_loads_imports_nothing_of_ours_with_it():
    look = "import simulators.rig.plugin, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = done.stdout.split()
    ours = [name for name in loaded if name.split(".")[0] in ("firmware_bridge", "devices", "controller")]
    theirs = [name for name in loaded if name.startswith("simulators")]
    assert (ours, theirs) == ([], ["simulators", "simulators.rig", "simulators.rig.plugin"])
    assert not {"yaml", "serial", "pydantic", "structlog", "transitions"} & set(loaded)


def test_the_page_shows_the_example_as_it_is_and_names_everything():
    shown = dict(re.findall(r"\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)```", PAGE, re.DOTALL))
    assert len(shown) == 4
    for name, text in shown.items():
        assert text == (EXAMPLE / name).read_text(), name
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    named = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]+)`", prose))))
    fixtures = {name for name in vars(plugin) if name.startswith("cutcard_")}
    keys = {field.name for shape in (Scenario, Expected, Tap) for field in fields(shape)}
    assert (fixtures | keys | set(WHOLE) | set(SLIPS)) - named == {"rules", "args"}


def test_the_page_shows_a_report_as_it_is(tmp_path):
    text = (EXAMPLE / "scenarios" / "a_bad_evening.cutcard.yaml").read_text()
    file = tmp_path / "a.cutcard.yaml"
    file.write_text(
        text.replace("[wrong_count, cards_inside]", "[wrong_count]").replace("restarts: 1", "restarts: 2")
    )
    report, page = (re.sub("[0-9]+", "N", text) for text in ("\n".join(play(load(file))), PAGE))
    assert f"```\n{report}\n```" in page


# Devices


@pytest.mark.parametrize("device", [name for name in DEVICES if name != "barcode-hid"])
def test_each_device_has_a_fixture_on_a_pty(device, request):
    made = request.getfixturevalue(f"cutcard_{device.replace('-', '_')}")
    assert made.uri == f"serial:{made.path}"
    with serial.Serial(made.path, load_driver(device).baud, timeout=2) as port:
        assert port.is_open
    assert made.act(lambda machine: machine is made.machine)


def test_a_barcode_reader_is_on_a_usb_bus(cutcard_barcode_hid):
    assert cutcard_barcode_hid.uri == "usbhid:1209:0004:BC0001"
    assert "LD_PRELOAD" in cutcard_barcode_hid.environment


def test_the_same_seed_holds_the_same_cards(cutcard_device):
    def cards(seed: int) -> list[str]:
        shoe = cutcard_device("bee-tek", seed=seed)
        return [shoe.act(lambda machine: machine.draw().face) for _ in range(20)]

    assert cards(1) == cards(1) != cards(2)


def test_on_tcp_there_is_neither_path_nor_cable(cutcard_device):
    shoe = cutcard_device("bee-tek", listen="tcp")
    assert shoe.uri.startswith("socket:127.0.0.1:")
    with pytest.raises(TypeError, match=r"on no pty: .* ask for listen='pty'"):
        shoe.unplug()
    with pytest.raises(TypeError, match="on no USB bus; ask for listen='usb'"):
        _ = shoe.environment


def test_what_an_act_raises_comes_out_where_it_was_asked_for(cutcard_bee_tek):
    with pytest.raises(ZeroDivisionError):
        cutcard_bee_tek.act(lambda machine: machine.drawn / 0)
    assert cutcard_bee_tek.act(lambda machine: machine.drawn) == 0


def test_an_act_at_a_device_that_is_gone_says_so():
    with plugged.plugged("bee-tek") as shoe:
        pass
    with pytest.raises(RuntimeError, match="the simulated bee-tek is gone"):
        shoe.act(lambda machine: machine.draw())


def test_mistakes_are_one_line(cutcard_device, tmp_path):
    for options, says in [
        ({"name": "bee-tec"}, "there is no simulated device 'bee-tec'; did you mean 'bee-tek'?"),
        ({"faults": ["misred"]}, "there is no fault 'misred'; did you mean 'misread'?"),
        ({"faults": ["leave_inside"]}, "only a shuffler"),
        ({"faults": ["wrong_tap"]}, "wrong_tap strikes at whole tables alone"),
        ({"faults": "misread"}, "faults is a list, as faults=['misread@3'], not 'misread'"),
        ({"faults": [1]}, "a fault is a text as 'misread@3', or a Step, not 1"),
        ({"plays": "no"}, "plays is True or False, not 'no'"),
        ({"listen": "ptty"}, "write pty:PATH, tcp:HOST:PORT or usb:DIRECTORY"),
    ]:
        with pytest.raises((ValueError, TypeError), match=re.escape(says)) as told:
            cutcard_device(**{"name": "bee-tek", **options})
        assert len(str(told.value).splitlines()) == 1


def test_a_fault_of_a_load_strikes_the_pile_that_is_there_when_the_test_begins(cutcard_device):
    for name, cards in (("bee-tek", 407), ("managed-shuffler", 303), ("managed-continuous", 303)):
        device = cutcard_device(name, faults=["missing:9", "joker"])
        assert device.struck == {"missing": 1, "joker": 1}
        assert device.act(lambda machine: sum(isinstance(i, Card) for i in machine.contents())) == cards


def test_a_script_of_faults_lies_beside_the_test(cutcard_device, tmp_path, monkeypatch):
    script = tmp_path / "faults.yaml"
    script.write_text("faults:\n  - {fault: misread, card: 2}\n")
    shoe = cutcard_device("bee-tek", script=script)
    for _ in range(3):
        shoe.act(lambda machine: machine.draw())
    assert shoe.struck == {"misread": 1}


# Tables


def _leaves(tree: object) -> Iterator[object]:
    if isinstance(tree, dict | list):
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(each)
    else:
        yield tree


def test_a_virtual_table_tells_the_same_facts_for_the_same_seed(cutcard_virtual_table):
    def kinds(seed: int) -> list[str]:
        table = cutcard_virtual_table(SMALL, seed=seed)
        table.play(until=lambda: bool(table.rounds))
        table.kill()
        table.start()
        table.pass_time(2.0)
        table.fault("shoe", "unplug:1")
        table.pass_time(5.0)
        with pytest.raises(
            ValueError, match=r"this table has no 'reader'; it has shuffler, shoe|it has shoe"
        ):
            table.unplug("reader")
        with pytest.raises(ValueError, match="no 'stat' to get; did you mean 'status'"):
            table.get("stat")
        assert json.loads(json.dumps(table.get("status"))) == table.get("status")
        assert {type(word) for word in _leaves(table.get("status"))} <= {str, int, bool, float, type(None)}
        table.unplug("shuffler")
        table.pass_time(2.0)
        table.replug("shuffler")
        table.play()
        assert (table.get("status")["phase"], table.violations, table.latched) == ("closed", [], [])
        assert (table.struck, len(table.facts("link_up"))) == ({"unplug": 1}, 6)
        return [fact["kind"] for fact in table.facts()]

    assert kinds(1) == kinds(1) != kinds(2)


def test_mistakes_about_a_table_are_one_line(cutcard_table, cutcard_virtual_table):
    for make in (cutcard_table, cutcard_virtual_table):
        with pytest.raises(
            ValueError, match="there is no example 'hand-delt-1'; did you mean 'hand-dealt-1'"
        ):
            make("hand-delt-1")
    table = cutcard_virtual_table("hand-dealt-1")
    with pytest.raises(ValueError, match="this table has no 'shoe'; it has shuffler"):
        table.fault("shoe", "misread")


def test_a_dealer_who_cannot_go_on_says_what_is_latched(cutcard_virtual_table):
    table = cutcard_virtual_table("two-batch-shoe-1")
    table.fault("shuffler", "leave_inside@1")
    with pytest.raises(Stuck, match=r"waiting for the shuffle of batch A; latched: wrong_count\Z"):
        table.play()
