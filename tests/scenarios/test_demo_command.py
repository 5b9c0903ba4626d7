"""`cutcard demo` and `cutcard sim` as a user runs them: processes, exit codes, nothing left behind."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller import config
from simulators.rig import demo, sim
from tests.support.demo import small_demo

CUTCARD = [sys.executable, "-P", "-c", "from controller.cli.app import main; main()"]
TABLES = Path(__file__).parents[2] / "deploy" / "tables"
SMALL = demo.TABLE.replace("decks_per_batch = 6", "decks_per_batch = 2").replace(
    'wagers = ["match-the-dealer"]\n', ""
)


def cutcard(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CUTCARD, *args], check=False, capture_output=True, text=True, timeout=50, env=env)


@pytest.fixture
def short(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A small table, and an environment in which what the demo leaves behind shows."""
    table, home = tmp_path / "small.toml", tmp_path / "t"
    table.write_text(SMALL)
    home.mkdir()
    yield table, {**os.environ, "TMPDIR": str(home)}
    assert list(home.iterdir()) == []


def test_demo_plays_verifies_and_sums_up(short: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    table, env = short
    keep = tmp_path / "kept"
    done = cutcard(
        "demo", "--shoes", "3", "--seed", "11", "--config", str(table), "--keep", str(keep), "--json", env=env
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    keys = "shoes rounds cards swaps batches violations faults journal simulated_s wall_s"
    assert list(summary) == keys.split()
    assert summary["shoes"] == 3
    assert summary["cards"] == 3 * 104
    assert summary["swaps"] == 2
    assert summary["batches"] == ["A", "B", "A"]
    assert summary["violations"] == summary["faults"] == 0
    assert summary["journal"]["verified"] is True
    assert summary["rounds"] > 10
    assert (
        cutcard("journal", "verify", str(keep / "journal.db"), "--key", str(keep / "seal.key")).returncode
        == 0
    )
    again = cutcard(
        "demo", "--shoes", "3", "--seed", "11", "--config", str(table), "--keep", str(keep), env=env
    )
    assert again.returncode == 2
    assert "empty directory" in again.stderr
    second = cutcard("demo", "--shoes", "3", "--seed", "11", "--config", str(table), "--json", env=env)
    same = ("shoes", "rounds", "cards", "batches", "swaps")
    assert {k: json.loads(second.stdout)[k] for k in same} == {k: summary[k] for k in same}


def test_demo_of_a_table_without_any_device() -> None:
    done = cutcard("demo", "--shoes", "2", "--config", str(TABLES / "casino-night-hand.toml"))
    assert done.returncode == 0, done.stderr
    assert "batches A A" in done.stdout
    assert "dealt by hand, every one accounted for" in done.stdout


def test_demo_as_text_is_for_people(short: tuple[Path, dict[str, str]]) -> None:
    table, env = short
    done = cutcard("demo", "--shoes", "1", "--config", str(table), env=env)
    assert done.returncode == 0, done.stderr
    assert "batches A" in done.stdout
    assert "verified" in done.stdout
    assert "--keep DIR" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_demo_interrupted_leaves_no_process_and_no_file(
    short: tuple[Path, dict[str, str]], number: signal.Signals
) -> None:
    table, env = short
    with subprocess.Popen(
        [*CUTCARD, "demo", "--shoes", "50", "--speed", "1", "--config", str(table)],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert running.stderr is not None
        assert "rounds" in running.stderr.readline()  # its first progress line: the daemon runs
        daemons = children(running.pid)
        assert len(daemons) == 1
        running.send_signal(number)
        out, err = running.communicate(timeout=20)
    assert running.returncode == 130
    assert out == ""
    assert "nothing is left behind" in err
    assert not Path(f"/proc/{daemons[0]}").exists()


def children(pid: int) -> list[int]:
    return [int(p) for t in Path(f"/proc/{pid}/task").iterdir() for p in (t / "children").read_text().split()]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--speed", "0.5"], "max, 1 for real time"),
        (["--speed", "quick"], "max, 1 for real time"),
        (["--config", "/nowhere/table.toml"], "No such file"),
        (["--shoes", "0"], "greater than or equal to 1"),
    ],
)
def test_demo_misused_exits_2(args: list[str], says: str) -> None:
    done = cutcard("demo", *args)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_demo_of_a_table_the_rules_forbid_exits_2(tmp_path: Path) -> None:
    table = tmp_path / "seven.toml"
    table.write_text(demo.TABLE.replace("decks_per_batch = 6", "decks_per_batch = 7"))
    done = cutcard("demo", "--config", str(table))
    assert done.returncode == 2
    assert "13:69F-2.2(a)4" in done.stderr


def test_a_tables_own_rules_and_device_names_are_kept() -> None:
    text = SMALL.replace("[devices.shoe]", "[devices.left-shoe]") + '\n[panel]\nlisten = "127.0.0.1:8620"\n'
    asked, problems = config.examine(text.encode())
    assert problems == []
    assert asked is not None
    with demo.set_up(text) as place:
        assert place.rules == asked.rules
        assert set(place.ports) == {"left-shoe", "shuffler"}
        assert tomllib.loads(place.table.read_text())["cards"]["batch"][1] == {"id": "B", "back": "blue"}
        home = place.table.parent
    assert not home.exists()


# --- sim ---


@contextmanager
def simulated(*args: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    with subprocess.Popen([*CUTCARD, "sim", *args], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield running, json.loads(running.stdout.readline())
        finally:
            running.terminate()


def test_sim_listens_on_a_pty_and_plays_by_itself(tmp_path: Path) -> None:
    link = tmp_path / "shoe"
    with simulated("angel-eye", "--listen", f"pty:{link}", "--seed", "4") as (running, said):
        assert said == {"listening": f"pty:{link}", "device": "angel-eye", "port": f"serial:{link}"}
        port = os.open(link, os.O_RDONLY | os.O_NOCTTY)
        readable, _, _ = select.select([port], [], [], 10)
        assert readable
        assert os.read(port, 1) != b""
        os.close(port)
        running.terminate()
        assert running.wait(10) == 0
    assert not link.is_symlink()


def test_sim_listens_on_tcp(tmp_path: Path) -> None:
    with simulated("managed-shoe", "--listen", "tcp:127.0.0.1:0") as (running, said):
        scheme, host, port = said["port"].split(":")
        assert scheme == "socket"
        with socket.create_connection((host, int(port)), timeout=5):
            pass
        running.send_signal(signal.SIGINT)
        assert running.wait(10) == 0


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["angle-eye", "--listen", "tcp:127.0.0.1:0"], 2, "did you mean 'angel-eye'?"),
        (
            ["managed-shoe", "--listen", "tcp:127.0.0.1:0", "--fault", "mis_read"],
            2,
            "did you mean 'misread'?",
        ),
        (["managed-shoe", "--listen", "tcp:127.0.0.1:0", "--fault", "jam"], 2, "--fault jam:"),
        (["managed-shoe", "--listen", "pyt:/x"], 2, "did you mean 'pty'?"),
        (["managed-shoe", "--listen", "tcp:127.0.0.1:99999"], 2, "a port is a number of 0..65535"),
        (["managed-shoe", "--listen", "tcp:127.0.0.1"], 2, "tcp: wants an address and a port, tcp:HOST:PORT"),
        (["managed-shoe", "--listen", "pty:"], 2, "pty: wants a path, pty:PATH"),
        (["managed-shoe", "--listen", "usb:"], 2, "usb: wants a directory, usb:DIRECTORY"),
        (["managed-shoe", "--listen", "tcp:127.0.0.1:0", "--script", "x"], 2, "--script x: No such file"),
        (["managed-shoe", "--listen", "pty:/nowhere/shoe"], 3, "/nowhere/shoe"),
    ],
)
def test_sim_misused(args: list[str], code: int, says: str) -> None:
    done = cutcard("sim", *args)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_batch_that_the_simulated_shuffler_let_out_is_put_back() -> None:
    device = sim.make("managed-shuffler", 1)
    shuffler = device.machine
    attendant = sim.Attendant(device)
    shuffler.start(bytes(16))
    shuffler.advance(1000.0)
    assert shuffler.release(bytes(16)) == (312, 0)
    attendant.pump(1000.0)
    assert (attendant.deadline(), shuffler.inside) == (1000.0 + sim.RELOAD_S, 0)
    attendant.pump(1000.0 + sim.RELOAD_S)
    assert (attendant.deadline(), shuffler.inside, shuffler.state) == (None, 312, "loaded")


def test_at_the_speed_of_a_real_table_the_demo_rests_between_the_acts() -> None:
    with small_demo("rest", 1, 1, speed=1.0) as (_, live):
        live.start()
        live.run(lambda: len(live.view.up) == 2)
        turns, until = 0, live.elapsed + 1.0
        while live.elapsed < until:
            live.turn()
            turns += 1
        assert turns < 200
        assert live.stop() == 0


def test_a_cycle_longer_than_the_patience_for_facts_is_no_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulators.rig.live.STALLED_S", 0.4)
    with small_demo("slow", 1, 1, speed=30.0) as (_, live):
        live.start()
        live.run(lambda: live.view.cycle == "proved")
        assert live.elapsed > 0.4
        assert live.stop() == 0
