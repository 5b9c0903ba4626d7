"""The `cutcard` command: names, exit codes, sentences; `do`, `status` and `faults` against a live socket."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from controller import log
from controller.cli import app, client, exits
from controller.config import ConfigInvalid
from controller.factlog import MemoryJournal
from controller.table.inputs import Trouble
from firmware_bridge import errors
from firmware_bridge.clock import SystemClock
from tests.support.control import running
from tests.unit.test_config_tables import CONTRACT


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def cutcard(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def call(*args: str | Path) -> Ran:
        code = 0
        try:
            app.main([str(arg) for arg in args])
        except SystemExit as left:
            code = int(left.code or 0)
        return Ran(code, *capsys.readouterr())

    return call


Cutcard = Callable[..., Ran]


# --- the command itself ---


def test_help_loads_no_heavy_module() -> None:
    code = (
        "import sys; from controller.cli.app import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pydantic', 'cryptography', 'sqlite3', 'transitions', 'serial', 'cbor2', 'structlog'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.splitlines()[-1] == "[]"
    listed = [line.split()[0] for line in done.stdout.partition("Commands:\n")[2].splitlines()]
    assert listed[: len(app.OWN)] == list(app.OWN)


def test_an_error_that_quotes_a_device_moves_no_terminal(
    cutcard: Cutcard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object) -> None:
        raise errors.WrongDevice("two devices say they are \x1b[2J:\nunplug one")

    monkeypatch.setattr(client, "ask", ask)
    ran = cutcard("status", "--socket", "x")
    assert (ran.code, ran.err) == (3, "cutcard: two devices say they are \\x1b[2J:\nunplug one\n")


def test_a_wrong_command_names_the_nearest(cutcard: Cutcard) -> None:
    ran = cutcard("stauts")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("cutcard: There is no command 'stauts'. Did you mean 'status'? ")
    assert "Did you mean" not in cutcard("qqqqqq").err
    assert cutcard("status", "--jsn").code == 2
    assert cutcard("check").code == 2
    assert cutcard("check", "--help").code == 0
    assert cutcard("--version").out.startswith("cutcard 0.")


def test_commands_of_others_come_by_entry_point(cutcard: Cutcard, monkeypatch: pytest.MonkeyPatch) -> None:
    here = "tests.unit.test_cli_commands"
    points = [
        EntryPoint("greet", f"{here}:greet", app.GROUP),
        EntryPoint("group", f"{here}:group", app.GROUP),
        EntryPoint("gone", f"{here}:nothing", app.GROUP),
    ]
    monkeypatch.setattr(app.metadata, "entry_points", lambda group: points if group == app.GROUP else [])
    sys.modules.setdefault(here, sys.modules[__name__])
    assert cutcard("greet", "ann").out == "hello ann\n"
    assert cutcard("group", "sub").out == "in the group\n"
    assert "greet  Greet somebody." in cutcard("--help").out
    broken = cutcard("gone")
    assert broken.code == 2
    assert "cannot be loaded" in broken.err


def greet(name: str) -> None:
    """Greet somebody."""
    typer.echo(f"hello {name}")


group = typer.Typer()


@group.callback()
def _group() -> None:
    """A group."""


@group.command()
def sub() -> None:
    typer.echo("in the group")


def test_exit_codes_are_the_contracts() -> None:
    for name in exits.CODES:
        module, _, attribute = name.rpartition(".")
        assert issubclass(getattr(importlib.import_module(module), attribute), Exception)
    expected: dict[type[Exception] | Exception, int | None] = {
        errors.BadUri("x"): 2,
        errors.Absent("x"): 3,
        errors.Busy("x"): 3,
        errors.Denied("x"): 3,
        errors.WrongDevice("x"): 3,
        ConfigInvalid("t", []): 2,
        FileNotFoundError(2, "No such file", "x"): 2,
        exits.NoDaemon("x"): 3,
        exits.RefusedByTable("x"): 4,
        RuntimeError("x"): None,
    }
    assert {error: exits.code_of(error) for error in expected if isinstance(error, Exception)} == expected


def test_a_file_without_a_name_is_shown_as_such() -> None:
    assert (
        exits.sentence(FileNotFoundError(2, "No such file or directory", ""))
        == "'': No such file or directory"
    )
    assert exits.sentence(OSError(28, "No space left on device")) == "No space left on device"


def test_a_fault_of_ours_is_not_hidden(cutcard: Cutcard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ask", lambda *_: {}["status"])
    with pytest.raises(KeyError):
        cutcard("status", "--socket", "x")


def test_a_reader_that_leaves_is_no_error() -> None:
    done = _into_a_closed_pipe()
    assert (done.returncode, done.stderr) == (0, "")


def _into_a_closed_pipe() -> subprocess.CompletedProcess[str]:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [sys.executable, "-c", "from controller.cli.app import main; main()", "machine"],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    finally:
        os.close(writing)


# --- check and machine ---


def test_check(cutcard: Cutcard, tmp_path: Path) -> None:
    file = tmp_path / "table.toml"
    file.write_text(CONTRACT)
    fine = cutcard("check", file)
    assert (fine.code, fine.err) == (0, "")
    assert fine.out.count("not built yet") == 2
    assert json.loads(cutcard("check", file, "--json").out)["ok"] is True
    file.write_text(CONTRACT.replace("decks_per_batch = 6", "decks_per_batch = 7\nedges = 'white'"))
    bad = cutcard("check", file)
    seven = "match-the-dealer needs exactly 6 or 8 decks a batch, this table has 7"
    assert bad.code == 2
    assert bad.out.splitlines() == [
        f"{file}: cards.edges: there is no such key; did you mean edge?",
        f"{file}: table.wagers: {seven} [13:69F-2.2(a)4]",
    ]
    problems = json.loads(cutcard("check", file, "--json").out)["problems"]
    assert [problem["clause"] for problem in problems] == [None, "13:69F-2.2(a)4"]
    missing = cutcard("check", tmp_path / "none.toml")
    assert (missing.code, missing.err) == (2, f"cutcard: {tmp_path}/none.toml: No such file or directory\n")


def test_machine(cutcard: Cutcard) -> None:
    assert cutcard("machine").out.splitlines()[0].split() == ["closed", "open", "opening"]
    mermaid = cutcard("machine", "--format", "mermaid").out
    assert mermaid.startswith("stateDiagram-v2\n")
    assert "    closed --> opening: open\n" in mermaid
    assert cutcard("machine", "--format", "dot").code == 2


# --- do, status, faults ---


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Path]:
    log.configure("critical")
    with running(tmp_path / "t.sock"):
        yield tmp_path / "t.sock"


def test_do_and_status(cutcard: Cutcard, at: Path) -> None:
    assert cutcard("do", "open", "--id", "k", "--socket", at) == Ran(0, "fact 3  open\n", "")
    assert cutcard("do", "open", "--id", "k", "--socket", at) == Ran(0, "fact 3  open\n", "")
    refused = cutcard("do", "open", "--socket", at)
    assert refused.code == 4
    assert refused.err.startswith("cutcard: refused (unexpected): open is not expected now")
    assert "[13:69F-2.4(a)]; expected now: inspect batch=A, inspect batch=B" in refused.err
    as_json = cutcard("do", "open", "--json", "--socket", at)
    assert as_json.code == 4
    assert json.loads(as_json.out)["refused"] == "unexpected"
    answer = json.loads(cutcard("do", "inspect", "batch=A", "--json", "--socket", at).out)
    assert answer["facts"][0]["batch"] == "A"
    text = cutcard("status", "--socket", at).out
    assert "phase       opening: the cards are prepared for the first shuffle\n" in text
    assert "batch A     red: 52 in hand; inspected, to be verified by a supervisor\n" in text
    assert "next        inspect batch=B (dealer or supervisor)\n" in text
    assert "refused     last: open by" in text
    found = json.loads(cutcard("status", "--json", "--socket", at).out)
    assert (found["fact"], found["refused"]["code"]) == (5, "unexpected"), "the same refusal once is enough"
    assert found["allowed_to"]["verify batch=A"] == ["supervisor"]


def test_who_has_a_device_asked_is_told_where_to_look(
    cutcard: Cutcard, at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = [{"fact": 75, "kind": "start_shuffle"}, {"fact": 76, "kind": "command_issued"}]
    monkeypatch.setattr(client, "ask", lambda *_: {"ok": True, "facts": facts})
    told = cutcard("do", "start_shuffle", "--socket", at).out.splitlines()
    assert told[1:] == [
        "fact 76  command_issued",
        "a device was asked: `cutcard status` tells what comes of it",
    ]


def test_a_refused_event_leaves_with_exit_4_and_is_in_the_journal(cutcard: Cutcard, tmp_path: Path) -> None:
    log.configure("critical")
    journal, at = MemoryJournal(SystemClock()), tmp_path / "t.sock"
    with running(at, journal):
        before = json.loads(cutcard("status", "--json", "--socket", at).out)
        ran = cutcard("do", "bets_closed", "boxes=1", "--socket", at)
        after = json.loads(cutcard("status", "--json", "--socket", at).out)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == (
        "cutcard: refused (unexpected): bets_closed is not expected now: the table is in phase closed "
        "[13:69F-2.6]; expected now: open\n"
    )
    entry = list(journal.entries())[-1]
    assert (entry.seq, entry.fact.kind, entry.fact.data["clause"]) == (after["fact"], "refused", "13:69F-2.6")
    assert {**before, "fact": 0} == {**after, "fact": 0, "refused": None}


def test_an_alarm_is_not_told_as_a_latched_fault(cutcard: Cutcard, at: Path) -> None:
    ran = cutcard("do", "inspect", "device=shoe", "result=faulty", "--socket", at)
    assert ran == Ran(0, "fact 3  inspect\nfact 4  alarm_raised\n", "")
    assert cutcard("faults", "--socket", at).out == "no latched fault\n"


def test_a_fault_whose_cause_is_gone_says_how_it_is_cleared(cutcard: Cutcard, at: Path) -> None:
    cutcard("do", "open", "--socket", at)
    ran = cutcard("do", "dead_card", "batch=A", "--socket", at)
    assert ran == Ran(0, "fact 4  dead_card\nfact 5  fault_latched\n", "")
    before = cutcard("faults", "--socket", at).out.splitlines()
    assert before[0].startswith(
        "fault F5    a card of the batch is damaged, marked or missing (batch A), since "
    )
    assert before[-1] == "            not acknowledged"
    assert not [line for line in before if "faults clear" in line]
    cutcard("do", "replace_batch", "batch=A", "--socket", at)
    after = cutcard("faults", "--socket", at).out.splitlines()
    way = "            its cause is gone: `cutcard faults clear F5` (supervisor or technician)"
    assert after[-2:] == [way, "            not acknowledged"]
    (fault,) = json.loads(cutcard("faults", "--json", "--socket", at).out)["faults"]
    assert (fault["cause_gone"], fault["state"], fault["acknowledged"]) == (True, "raised", None)


def test_arguments_that_are_none(cutcard: Cutcard, at: Path) -> None:
    for wrong in ("box", "=3", "do=x", "id=k"):
        ran = cutcard("do", "offer_cut", wrong, "--socket", at)
        assert ran.code == 2
        assert "write KEY=VALUE" in ran.err
    twice = cutcard("do", "bets_closed", "boxes=1", "boxes=2", "--socket", at)
    assert twice == Ran(2, "", "cutcard: boxes is given twice: write it once, e.g. boxes=1\n")
    assert "position takes" not in cutcard("do", "cut", "position=", "--socket", at).err


def test_faults(cutcard: Cutcard, tmp_path: Path) -> None:
    log.configure("critical")
    with running(tmp_path / "t.sock") as controller:
        at = tmp_path / "t.sock"
        assert cutcard("faults", "--socket", at).out == "no latched fault\n"
        assert cutcard("alarms", "--socket", at).out == "no alarm and no latched fault\n"
        assert json.loads(cutcard("alarms", "--json", "--socket", at).out) == {"alarms": []}
        assert json.loads(cutcard("faults", "--json", "--socket", at).out) == {"faults": []}
        controller.died("control", RuntimeError("the unseen card is 8S"))
        while not controller.service.state.faults:
            client.ask(at, {"get": "faults"})
        shown = cutcard("faults", "--socket", at).out
        assert shown.startswith("fault F3    a part of the controller stopped with an error, since ")
        assert "(less than a minute)\n            control: RuntimeError" in shown
        assert "nothing goes on until this is cleared: save the log" in shown
        cleared = cutcard("faults", "clear", "F3", "--socket", at)
        assert cleared.code == 4
        assert "refused (cause_remains)" in cleared.err
        assert cutcard("faults", "clear", "F9", "--socket", at).code == 4
        assert cutcard("faults", "clear", "--socket", at).code == 2
        assert cutcard("do", "acknowledge", "alarm=F3", "--socket", at).code == 0
        assert "acknowledged by " in cutcard("alarms", "--socket", at).out
        (alarm,) = json.loads(cutcard("alarms", "--json", "--socket", at).out)["alarms"]
        assert (alarm["id"], alarm["state"], alarm["blocks"]) == ("F3", "acknowledged", "now")
        assert alarm["cleared_by"] == ["supervisor", "technician"]
        assert alarm["since_at"].endswith("Z")
        assert cutcard("faults", "--socket", at).out, "acknowledged is not cleared"


def test_finding_the_socket(
    cutcard: Cutcard, at: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "RUNTIME_DIR", tmp_path / "run")
    monkeypatch.delenv(client.SOCKET_VARIABLE, raising=False)
    nobody = cutcard("status")
    assert (nobody.code, nobody.out) == (3, "")
    assert "no daemon runs here" in nobody.err
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "T1.sock").symlink_to(at)
    assert cutcard("status").code == 0
    (tmp_path / "run" / "T2.sock").symlink_to(tmp_path / "dead")
    several = cutcard("status")
    assert (several.code, "several tables run here (T1, T2)" in several.err) == (2, True)
    monkeypatch.setenv(client.SOCKET_VARIABLE, str(at))
    assert cutcard("status").code == 0
    file = tmp_path / "table.toml"
    file.write_text('[table]\nid = "T2"\nno_such_key = 1\n')
    dead = cutcard("--config", file, "status")
    assert (dead.code, "no daemon answers at" in dead.err) == (3, True)
    long = cutcard("status", "--socket", "/tmp/" + 120 * "x")
    assert (long.code, "(AF_UNIX path too long)" in long.err) == (3, True)
    file.write_text(f'[service]\nsocket = "{at}"\n')
    assert cutcard("--config", file, "status").code == 0
    file.write_text("[table]\n")
    assert cutcard("--config", file, "status").code == 2
    assert cutcard("--config", tmp_path / "none.toml", "status").code == 2
    assert cutcard("--config", file, "status", "--socket", at).code == 0


def test_a_daemon_that_dies_before_it_answers(cutcard: Cutcard, tmp_path: Path) -> None:
    import socket
    import threading

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "t.sock"))
        listener.listen()

        def hang_up() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.recv(100)

        thread = threading.Thread(target=hang_up)
        thread.start()
        ran = cutcard("do", "open", "--socket", tmp_path / "t.sock")
        thread.join()
    assert ran.code == 3
    assert "went away before it answered" in ran.err


def test_trouble_of_the_controller_is_never_silent(tmp_path: Path) -> None:
    """The hook that latches a thread's death is on the way of every thread of the daemon."""
    import threading

    from controller.daemon import _thread_faults

    log.configure("critical")
    with running(tmp_path / "t.sock") as controller, _thread_faults(controller):

        def die() -> Any:
            raise ValueError("the unseen card is 8S")

        thread = threading.Thread(target=die, name="port shoe")
        thread.start()
        thread.join()
        while not controller.service.state.faults:
            client.ask(tmp_path / "t.sock", {"get": "faults"})
        (fault,) = controller.service.state.faults
        assert (fault.code, fault.device) == ("crashed", "shoe")
        assert "8S" not in fault.cause
        assert "ValueError at test_cli_commands.py" in fault.cause
        assert isinstance(Trouble("crashed", fault.cause), Trouble)
