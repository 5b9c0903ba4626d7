"""`cutcard sim` with a script of faults, as a stranger uses it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller.cli import app
from simulators import faults
from simulators.faults import script

Cutcard = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cutcard(capsys) -> Cutcard:
    def call(*words: str) -> tuple[int, str, str]:
        code = 0
        try:
            app.main(list(words))
        except SystemExit as left:
            code = int(left.code or 0)
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def simulated(tmp_path) -> Iterator[Callable[..., str]]:
    """Start `cutcard sim` with a script; the port where it listens."""
    running = []

    def start(device: str, script: str, *more: str) -> str:
        file = tmp_path / "faults.yaml"
        file.write_text(script)
        program = "import sys; from controller.cli.app import main; main(sys.argv[1:])"
        words = ["sim", device, "--listen", f"pty:{tmp_path}/device", "--script", str(file), *more]
        process = subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        return json.loads(process.stdout.readline())["port"]

    yield start
    for process in running:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def test_a_shoe_goes_wrong_at_the_commands_that_the_script_names(cutcard, simulated):
    port = simulated(
        "managed-shoe",
        "faults:\n"
        "  - {fault: refuse, value: 6, command: lock}\n"
        "  - {fault: other_node, command: unlock}\n"
        "  - {fault: old_firmware, value: 0.0.7}\n",
    )
    code, out, _ = cutcard("send", port, "--driver", "managed-shoe", "lock", "--json")
    assert (code, json.loads(out)["outcome"]) == (4, "refused")
    code, out, _ = cutcard("send", port, "--driver", "managed-shoe", "unlock", "--json")
    assert (code, json.loads(out)["outcome"]) == (3, "unknown"), "it was heard, and its answer lost"
    code, out, _ = cutcard("send", port, "--driver", "managed-shoe", "status", "--json")
    assert (code, json.loads(out)["answer"]["locked"]) == (0, False), (
        "the name is the old one, the node is new"
    )
    code, out, _ = cutcard("identify", port, "--json")
    assert (code, json.loads(out)["firmware"]) == (0, "0.0.7")


def test_a_fault_of_a_load_strikes_the_first_pile_and_each_fault_is_told_once(cutcard, tmp_path):
    program = "import sys; from controller.cli.app import main; main(sys.argv[1:])"
    wanted = ["--fault", "missing:300", "--fault", "joker", "--fault", "flip_bit"]
    words = ["sim", "managed-shoe", "--listen", f"pty:{tmp_path}/shoe", *wanted]
    with subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        port = json.loads(process.stdout.readline())["port"]
        assert {process.stderr.readline() for _ in range(2)} == {
            "cutcard: 0.0 s: joker struck\n", "cutcard: 0.0 s: missing struck\n",
        }  # fmt: skip
        code, out, err = cutcard("sim", "bee-tek", "--listen", f"pty:{tmp_path}/shoe")
        assert (code, out, "another simulated device is there" in err) == (3, "", True)
        assert port == f"serial:{tmp_path}/shoe"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert said == "cutcard: struck: missing 1, joker 1, flip_bit never\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("", "it begins with `faults:`"),
        ("faults: [{fault: misred}]", "step 1: there is no fault 'misred'; did you mean 'misread'?"),
        ("faults: [{fault: drop}, {fault: drop, time: -3}]", "step 2 (drop): time is in seconds"),
        ("faults: [{fault: drop, time: 1e9}]", "step 1 (drop): time is at most a day, 86400 s, not 1e+09"),
        ("faults: [{fault: drop, nth: two}]", "step 1 (drop): nth is a whole number, not 'two'"),
        ("faults: [{fault: drop, card: 5}]", "step 1: drop at a card: no cards come out of this device"),
        ("faults: [{fault: misread}]", "step 1: only a shoe or a hole-card reader can have this fault"),
        ("faults: [{fault: halt, time: 3}]", "halt: this kind of port cannot have this fault"),
        ("faults: [{fault: drop, device: shoe}]", "step 1: 'shoe' is not here, only gat"),
        ("faults: [{fault: drop, command: stats}]", "there is no command 'stats'; did you mean 'status'?"),
        ("faults: [{fault: late_answer, value: x}]", "step 1: 'x' is no value for late_answer"),
        (
            "faults: [{fault: wrong_tap}]",
            "wrong_tap strikes at whole tables alone: in a scenario or campaign",
        ),
        (f"faults: [{{fault: {'x' * 9000}}}]", f"step 1: there is no fault '{'x' * 59}... (see"),
    ],
)
def test_a_script_that_cannot_be_played_is_told_before_anything_listens(cutcard, tmp_path, script, said):
    (tmp_path / "s.yaml").write_text(script)
    code, out, err = cutcard(
        "sim", "gat", "--listen", f"pty:{tmp_path}/port", "--script", str(tmp_path / "s.yaml")
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert not (tmp_path / "port").is_symlink()


def test_a_file_that_may_not_be_read_is_one_line(cutcard, tmp_path, monkeypatch):
    file = tmp_path / "s.yaml"
    file.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    opened = Path.open

    def denied(path, *mode, **how):
        if path == file:
            raise PermissionError(13, "Permission denied")
        return opened(path, *mode, **how)

    monkeypatch.setattr(Path, "open", denied)
    for words in (["sim", "gat", "--listen", f"pty:{tmp_path}/port"], ["campaign", "--replay", "7:1"]):
        code, out, err = cutcard(*words, "--script", str(file))
        assert (code, out, err) == (2, "", f"cutcard: --script {file}: Permission denied\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory"),
        (b"\xff\xfe\x00", "it is no text in UTF-8"),
        (b"#" * 300_000, "characters; 262144 are allowed"),
    ],
)
def test_a_file_that_is_no_script(cutcard, tmp_path, content, said):
    file = tmp_path / "s.yaml"
    if content is not None:
        file.write_bytes(content)
    code, _, err = cutcard("sim", "gat", "--listen", f"pty:{tmp_path}/port", "--script", str(file))
    assert (code, said in err, err.count("\n")) == (2, True, 1)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("half_open", "half_open: this kind of port cannot have this fault"),
        ("drop@0", "'drop@0' is no fault; write NAME[:VALUE][@N], N from 1"),
        ("drip", "there is no fault 'drip'; did you mean 'drop'?"),
        ("silent:1e12", "silent: a day, 86400 s, is the most, not 1e12"),
        ("flip_bit:9999999", "flip_bit: 9999 is the most, not 9999999"),
        ("latency@2", "latency has no occasions, so no nth (@N) and no chance: it is a setting"),
    ],
)
def test_a_fault_of_line_or_port_that_cannot_be(cutcard, tmp_path, fault, said):
    code, out, err = cutcard("sim", "gat", "--listen", f"pty:{tmp_path}/port", "--fault", fault)
    assert (code, out) == (2, "")
    assert said in err


# The list


def test_the_faults_are_listed_without_a_place_to_listen(cutcard):
    code, out, _ = cutcard("sim", "--list-faults")
    assert code == 0
    words = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert words[: len(faults.FAULTS)] == list(faults.FAULTS)
    code, out, _ = cutcard("sim", "gat", "--list-faults", "--json")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)["faults"]}
    assert rows["bad_crc"] == {
        "name": "bad_crc", "layer": "wire", "kind": "trap", "does": "an answer has wrong check bytes",
        "counts": "request", "devices": ["gat"],
    }  # fmt: skip
    assert "misread" not in rows


def test_what_is_missing_is_told(cutcard):
    code, _, err = cutcard("sim", "managed-shoe")
    assert (code, "say which device and where it appears" in err) == (2, True)
    code, _, err = cutcard("sim", "--list-faults", "managed-sho")
    assert (code, "did you mean 'managed-shoe'?" in err) == (2, True)


def test_what_the_manual_shows_is_what_is_printed(cutcard):
    manual = (Path(__file__).parents[2] / "docs" / "simulators.md").read_text()
    _, listed, _ = cutcard("sim", "--list-faults")
    shown = manual.partition("$ cutcard sim --list-faults\n")[2].partition("\n```")[0].splitlines()
    printed = [line.split() for line in listed.splitlines()]
    assert len(shown) > 10
    assert [line for line in shown if line.split() not in printed and line.strip() != "..."] == []


def test_the_script_of_the_manual_can_be_played():
    manual = (Path(__file__).parents[2] / "docs" / "simulators.md").read_text()
    steps = script.read(manual.partition("```yaml\n")[2].partition("```")[0], faults.FAULTS)
    assert [step.fault for step in steps] == [
        "misread", "late_answer", "drop", "flip_bit", "unplug", "jam", "old_firmware",
    ]  # fmt: skip
