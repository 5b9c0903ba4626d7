"""`cutcard campaign` as a user runs it: the same whatever plays it, what a failure says, what is left."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from simulators.faults import script
from simulators.rig.campaign import cli, plan, run, workers
from simulators.rig.campaign import journals as places
from simulators.rig.campaign.journals import MachineFailed, journals
from simulators.rig.campaign.plan import Plan
from simulators.rig.campaign.result import COUNTED, Counters, Failure, Outcome, Summary
from simulators.rig.campaign.run import Campaign, block
from simulators.rig.campaign.workers import WorkerLost, play
from simulators.rig.progress import Progress
from tests.support.campaign_command import Cutcard, caller

CUTCARD = [sys.executable, "-P", "-c", "from controller.cli.app import main; main()"]
KEYS = [
    "shoes", "seed", "rounds", "cards", "faults_injected", "restarts", "invariant_violations", "cards_lost",
    "cards_counted_twice", "journal_gaps", "unseen_cards_leaked", "failures", "played", "tables", "stopped",
    "kinds", "never_struck", "simulated_s", "events",
]  # fmt: skip


@pytest.fixture
def campaign(capsys: pytest.CaptureFixture[str]) -> Cutcard:
    return caller(capsys)


# --- the same whatever plays it ---


def test_the_same_json_from_two_processes_and_from_none(tmp_path: Path) -> None:
    wanted, heard = Campaign("c", 4), list[int]()
    two, here = play(wanted, 2, lambda so_far: heard.append(so_far.shoes)), Summary()
    for first, last in wanted.blocks():
        here.add(block(wanted, first, last, tmp_path))
    assert json.dumps(two.as_json("c")) == json.dumps(here.as_json("c"))
    assert list(here.as_json("c")) == KEYS
    assert here.shoes == heard[-1] == 4
    assert here.cards > 100
    assert list(tmp_path.iterdir()) == []


def test_a_summary_goes_through_a_pipe() -> None:
    made = Summary(3, 2, 1, 9, 156, 400, 812.5, 1, Counter(crash=2), Counter(jam=1), Counters(cards_lost=1))
    made.failures.append(run.Found(2, 1, "a card is lost", "cutcard campaign --replay 1:2"))
    assert Summary.of(json.loads(json.dumps(made.plain()))) == made


def test_the_progress_is_told_when_it_changed(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = iter(range(100))
    progress = Progress(lambda: float(next(seconds)))
    for begun in (3, 3, 6, 6, 6, 6):
        progress(partial(cli._so_far, Summary(shoes=begun), 9))
    progress.end()
    assert capsys.readouterr().err.splitlines() == [
        f"{begun} of 9 shoes: 0 failures, 0 kinds of fault, 0 restarts" for begun in (3, 6)
    ]


# --- a failure ---


class Planted:
    """A table that fails in its second shoe whenever two faults of its plan are there."""

    wanted: tuple[script.Step, ...] = ()

    def __init__(self, made: Plan, directory: Path) -> None:
        assert directory.is_dir()
        self.plan = made

    def play(self) -> Outcome:
        made = self.plan
        fails = made.shoes > 1 and set(self.wanted) <= set(made.steps)
        failures = [Failure(made.first + 1, f"card {made.shoes} is lost: somewhere")][: int(fails)]
        struck = Counter(step.fault for step in made.steps)
        return Outcome(
            made.shoes, made.shoes - fails, 10, 52 * made.shoes, 100, struck,
            failures=failures, counters=Counters(cards_lost=len(failures)), simulated_s=0.1,
        )  # fmt: skip


class Bug(NamedTuple):
    """In the first block of `seed` these steps together make a table fail."""

    seed: str
    steps: tuple[script.Step, ...]


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Bug:
    """A bug for the first and last step of the first seed whose table has steps enough."""
    plans = ((seed, Campaign(seed, 3).plan(1, 3)) for seed in map(str, range(99)))
    seed, steps = next((s, p.steps) for s, p in plans if p.rules is not None and len(set(p.steps)) > 3)
    monkeypatch.setattr(Planted, "wanted", (steps[0], steps[-1]))
    monkeypatch.setattr(run, "Table", Planted)
    return Bug(seed, Planted.wanted)


def test_a_failure_says_what_how_to_see_it_again_and_the_least_that_does_it(
    campaign: Cutcard, planted: Bug
) -> None:
    done = campaign("--replay", f"{planted.seed}:2")
    assert done.code == 1
    rows = dict(re.split(" {2,}", line, maxsplit=1) for line in done.out.partition("\n\n")[0].splitlines())
    assert rows["shoes"] == "3 begun, 2 dealt to their end, at 1 table"
    assert rows["seed"] == planted.seed
    assert rows["rounds"] == "10, with 156 cards"
    assert rows["cards lost"] == rows["failures"] == "1"
    assert rows["cards counted twice"] == "0"
    assert "shoe 2: card 3 is lost: somewhere" in done.out
    assert f"cutcard campaign --replay {planted.seed}:2\n" in done.out
    shown = done.out.partition("the least that does it")[2].partition("\n")[2]
    assert script.read("\n".join(line[4:] for line in shown.splitlines()), plan.LAYER_OF) == planted.steps


def test_the_least_that_does_it_is_a_script_that_does_it(
    campaign: Cutcard, planted: Bug, tmp_path: Path
) -> None:
    (found,) = json.loads(campaign("--replay", f"{planted.seed}:2", "--json").out)["failures"]
    told = f"cutcard campaign --replay {planted.seed}:1 --shoes 2 --script least.yaml"
    assert found["scripted"] == told
    file = tmp_path / "least.yaml"
    file.write_text(found["script"])
    words = shlex.split(told.removesuffix("least.yaml"))[2:]
    done = campaign(*words, str(file))
    assert done.code == 1
    assert "shoes                 2 begun, 1 dealt to their end, at 1 table\n" in done.out
    assert (
        f"shoe 2: card 2 is lost: somewhere\n  again: {told.removesuffix('least.yaml')}{file}\n" in done.out
    )
    file.write_text("faults: []")
    assert campaign(*words, str(file)).code == 0


def test_a_failure_that_needs_no_fault_says_so(
    campaign: Cutcard, planted: Bug, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Planted, "wanted", ())
    done = campaign("--replay", f"{planted.seed}:2")
    told = f"cutcard campaign --replay {planted.seed}:1 --shoes 2 --script least.yaml"
    least = done.out.partition("it comes without any fault, at the table ")[2].splitlines()
    assert least[0].endswith(f"; saved as a file: {told}")
    assert least[1:] == ["    faults: []"]
    file = tmp_path / "least.yaml"
    file.write_text(least[1])
    assert campaign(*shlex.split(told.removesuffix("least.yaml"))[2:], str(file)).code == 1


def test_ctrl_c_while_the_least_is_looked_for_still_tells_what_was_found(
    campaign: Cutcard, planted: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "shrink", interrupted)
    done = campaign("--replay", f"{planted.seed}:2")
    assert done.code == 130
    assert (
        f"shoe 2: card 3 is lost: somewhere\n  again: cutcard campaign --replay {planted.seed}:2\n"
        in done.out
    )
    assert "the least" not in done.out
    assert done.err.endswith("cutcard: stopped; nothing is left behind\n")


def test_what_is_found_and_cannot_be_written_is_a_fault_of_the_machine(
    campaign: Cutcard, planted: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli, "print", full, raising=False)
    done = campaign("--replay", f"{planted.seed}:2")
    assert done.code == 3
    assert done.err.endswith("what was found cannot be written: No space left on device\n")


def test_a_failure_in_json(campaign: Cutcard, planted: Bug) -> None:
    done = campaign("--replay", f"{planted.seed}:1", "--json")
    assert done.code == 1
    told = json.loads(done.out)
    assert list(told) == KEYS
    assert told["cards_lost"] == 1
    (failure,) = told["failures"]
    assert failure["seed"] == planted.seed
    assert failure["shoe"] == 2
    assert failure["what"] == "card 3 is lost: somewhere"
    assert failure["replay"] == f"cutcard campaign --replay {planted.seed}:2"
    assert failure["table"] == Campaign(planted.seed, 3).plan(1, 3).table
    assert script.read(failure["script"], plan.LAYER_OF) == planted.steps


def test_a_replay_names_what_the_seed_does_not_say() -> None:
    assert Campaign("5", 7).options(6) == ()
    assert Campaign("5", 7, ("misread", "cable")).options(7) == ("--faults", "misread,cable", "--shoes", "7")
    assert Campaign("5", 6, ()).options(6) == ("--faults", "none")
    assert run.replay_command("a b:c", 4, "--shoes", "7") == "cutcard campaign --replay 'a b:c:4' --shoes 7"


def test_a_seed_may_hold_colons_and_blanks(campaign: Cutcard, planted: Bug) -> None:
    done = campaign("--replay", "a b:c:4", "--json")
    assert json.loads(done.out)["seed"] == "a b:c"
    assert done.code == 0


def test_a_table_that_stops_makes_room_for_the_next(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[tuple[int, int]] = []

    class Stops(Planted):
        def play(self) -> Outcome:
            opened.append((self.plan.first, self.plan.shoes))
            return Outcome(self.plan.first % 2 + 0, stopped="jam")

    monkeypatch.setattr(run, "Table", Stops)
    summary = block(Campaign("stops", 6), 4, 6, tmp_path)
    assert opened == [(4, 3), (5, 2), (6, 1)]
    assert (summary.shoes, summary.tables, summary.stopped) == (3, 3, Counter(jam=3))


def test_a_failure_beyond_the_shoes_of_the_campaign_is_played_again_with_the_last_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Many(Planted):
        def play(self) -> Outcome:
            return Outcome(9, failures=[Failure(self.plan.first + 8, "a shoe too many")])

    monkeypatch.setattr(run, "Table", Many)
    wanted = Campaign("many", 5)
    shoe = next(first for first in (4, 5) if wanted.plan(first, 5).rules is not None)
    (found,) = block(wanted, shoe, 5, tmp_path).failures
    assert (found.shoe, found.replay) == (5, "cutcard campaign --replay many:5 --shoes 5")


def test_what_nobody_caught_is_a_failure_that_names_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: Any) -> Any:
        raise OSError(5, "Input/output error", str(tmp_path / "1" / "journal.db"))

    monkeypatch.setattr(run, "Table", broken)
    summary = block(Campaign("broken", 3), 1, 3, tmp_path)
    assert summary.shoes == 3
    assert [found.shoe for found in summary.failures] == [1, 2, 3]
    what = summary.failures[0].what
    assert what.startswith("OSError in ")
    assert str(tmp_path) not in what


# --- processes ---


def test_a_worker_that_dies_ends_the_campaign_and_says_what_it_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "CHILD", "import sys; sys.stdin.readline(); sys.exit(9)")
    said = "shoes 1 to 3 ended by itself, with 9; .*: cutcard campaign --replay dies:1"
    with pytest.raises(WorkerLost, match=said):
        play(Campaign("dies", 3), 2, lambda _: None)


def test_a_full_disk_is_no_failure_of_a_table(
    campaign: Cutcard, planted: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    done = campaign("--replay", f"{planted.seed}:2")
    assert (done.code, done.out) == (3, "")
    assert re.search(r"no room for journals in \S+ \(No space left on device\): free some", done.err)


def test_a_worker_tells_that_its_machine_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    child = 'import sys; sys.stdin.readline(); print(\'{"failed": "no room"}\', flush=True)'
    monkeypatch.setattr(workers, "CHILD", child)
    with pytest.raises(MachineFailed, match=r"\Ano room\Z"):
        play(Campaign("full", 3), 1, lambda _: None)


def test_the_verdict_is_the_same_when_nobody_reads_it(
    campaign: Cutcard, planted: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(cli, "print", gone, raising=False)
    assert campaign("--replay", f"{planted.seed}:2", "--json").code == 1


def test_names_that_never_struck_are_told(campaign: Cutcard, planted: Bug) -> None:
    asked = ("--replay", f"{planted.seed}:1", "--faults", f"{planted.steps[0].fault}, bribed_clear")
    done = campaign(*asked, "--json")
    told = json.loads(done.out)
    never = [name for name in (planted.steps[0].fault, "bribed_clear") if name not in told["faults_injected"]]
    assert told["never_struck"] == never
    assert Summary(faults=Counter(misread=1)).never_struck(("misread", "machine", "cable", "crash")) == [
        "cable", "crash",
    ]  # fmt: skip
    assert re.search("never struck +cable\n", Summary().as_text("s", 0.0, ("cable",)))


def test_an_interrupted_campaign_leaves_no_process_and_no_file() -> None:
    with subprocess.Popen(
        [*CUTCARD, "campaign", "--shoes", "9999", "--workers", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert running.stderr is not None
        assert running.stderr.readline().startswith("cutcard: seed ")
        assert " of 9999 shoes: " in running.stderr.readline()
        children = [
            int(child)
            for thread in Path(f"/proc/{running.pid}/task").iterdir()
            for child in (thread / "children").read_text().split()
        ]
        assert len(children) == 2
        directory = Path(Path(f"/proc/{children[0]}/cmdline").read_text().split("\0")[-2])
        assert directory.is_dir()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert running.returncode == 130
    assert out == ""
    assert "nothing is left behind" in err
    assert not directory.exists()
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_journals_lie_in_memory_or_where_temporary_files_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for shared in (tmp_path, tmp_path / "nowhere"):
        monkeypatch.setattr(places, "SHARED_MEMORY", shared)
        with journals() as directory:
            assert directory.is_dir()
            assert (directory.parent == tmp_path) == shared.is_dir()
        assert not directory.exists()


# --- misused ---


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--shoes", "0"], "--shoes '0': write a whole number from 1 to"),
        (["--shoes", "many"], "--shoes 'many'"),
        (["--shoes", "-3"], "--shoes '-3'"),
        (["--shoes", "1" * 5000], "--shoes"),
        (["--seed", ""], "--seed '': write 1 to 100 printable characters"),
        (["--seed", "a\nb"], r"--seed 'a\nb'"),
        (["--seed", "\udcff"], "--seed"),
        (["--workers", "0"], "--workers '0'"),
        (["--faults", "mis_read"], "did you mean 'misread'?"),
        (["--faults", "spoil"], "at no table of a campaign"),
        (["--replay", "7"], "--replay '7': write SEED:SHOE"),
        (["--replay", "7:"], "SHOE ''"),
        (["--replay", ":7"], "--replay SEED:SHOE: SEED '': write"),
        (["--script", "s.yaml"], "--script goes with --replay SEED:SHOE alone"),
        (["--replay", "7:1", "--faults", "jam", "--script", "s.yaml"], "--script goes with --replay"),
        (["--replay", "7:1", "--script", "no.yaml"], "--script no.yaml: No such file or directory"),
        (["--replay", "7:0"], "SHOE '0'"),
        (["--replay", "7:8", "--shoes", "6"], "the campaign had 6 shoes"),
        (["--replay", "7:8", "--seed", "8"], "--replay 7:8: its seed is '7', not '8'"),
        (["--replay", "7:8", "--workers", "2"], "--replay plays in one process"),
        (["--keep", "kept"], "--keep goes with --replay SEED:SHOE"),
        (["--faults", "all,none"], "all stands alone, without other names"),
        (["--faults", "misread, spoil"], "can 'spoil' strike"),
    ],
)
def test_misused(campaign: Cutcard, args: list[str], says: str) -> None:
    done = campaign(*args)
    assert done.code == 2
    assert done.out == ""
    assert says in done.err
    assert done.err.count("\n") == 1
    assert len(done.err) < 250


def test_the_summary_counts_what_must_be_zero() -> None:
    made = Summary(shoes=1, counters=Counters(journal_gaps=1))
    assert not made.clean
    assert [made.as_json("")[name] for name in COUNTED] == [0, 0, 0, 1, 0]
