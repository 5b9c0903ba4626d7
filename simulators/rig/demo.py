"""`cutcard demo`: the main job on simulated machines: real ptys, a real daemon, a real journal."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller import config
from controller.journal import verify
from controller.table.profiles import TableRules
from devices.base import DriverSpec
from simulators.rig.felt import MANAGED_SHOE, READER, SHOES, SHUFFLER
from simulators.rig.live import DaemonGone, Live
from simulators.rig.progress import Progress
from simulators.rig.steps import Stuck
from simulators.rig.toml import to_toml
from simulators.wire.device import WireDevice

TABLE = """\
[table]
id = "DEMO-1"
game = "blackjack"
boxes = 7
wagers = ["match-the-dealer"]

[cards]
decks_per_batch = 6
cutting_card = "yellow"
[[cards.batch]]
id = "A"
back = "red"
[[cards.batch]]
id = "B"
back = "blue"

[devices.shoe]
driver = "managed-shoe"
port = "serial:/dev/null"
[devices.shuffler]
driver = "managed-shuffler"
port = "serial:/dev/zero"
"""
"""The table of a demo without --config; ports, socket and journal are filled in."""

PARTS = {"shoe": SHOES, "shuffler": (SHUFFLER,), "reader": (READER,)}
"""Drivers of the devices that are simulated here, by role; the first one stands in for any other."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a demo keeps its files. Sockets and ports lie apart: their names must be short."""

    rules: TableRules
    table: Path
    journal: Path
    key: Path
    log: Path
    control: Path
    ports: Mapping[str, Path]
    shoe: str = MANAGED_SHOE


@contextmanager
def set_up(table: str = TABLE, keep: Path | None = None, name: str = "the demo's table") -> Iterator[Place]:
    """Files of one demo, removed at the end unless `keep` says where they stay.

    Raises ConfigInvalid, or FileExistsError when `keep` already holds a journal.
    """
    with tempfile.TemporaryDirectory(prefix="cutcard-") as short:
        home = Path(short) if keep is None else keep
        home.mkdir(parents=True, exist_ok=True)
        journal, control = home / "journal.db", Path(short) / "control.sock"
        if journal.exists():
            raise FileExistsError(f"{journal} exists: give --keep an empty directory")
        asked, problems = config.examine(table.encode())
        if asked is None:
            raise config.ConfigInvalid(name, problems)
        ports = {device: Path(short) / device for device in asked.rules.devices}
        plain = tomllib.loads(table)
        sections = plain.pop("devices", {})
        drivers = {d.id: simulated(d.spec) for d in asked.devices if d.id in ports}
        plain["devices"] = {
            device: {
                **(sections[device] if device == asked.rules.reader else {}),
                "driver": drivers[device],
                "port": f"serial:{port}",
            }
            for device, port in ports.items()
        }
        plain.get("rules", {}).pop("least_cycle_s", None)  # time jumps here
        plain["service"] = {"socket": str(control)}
        plain["journal"] = {"path": str(journal), "key": str(home / "seal.key")}
        plain = {section: keys for section, keys in plain.items() if section not in ("panel", "uplink")}
        path = home / "table.toml"
        path.write_text(to_toml(plain))
        used = config.load(path)
        shoe = MANAGED_SHOE if used.rules.shoe is None else drivers[used.rules.shoe]
        yield Place(used.rules, path, journal, used.key, home / "daemon.log", control, ports, shoe)


def simulated(spec: DriverSpec) -> str:
    """The driver whose simulated device plays the part of one of `spec`."""
    parts = PARTS[spec.role]
    return spec.name if spec.name in parts else parts[0]


@contextmanager
def on_ptys(
    place: Place,
    seed: object,
    shoes: int,
    speed: float | None = None,
    line: Callable[[str, WireDevice], WireDevice] = lambda _name, wire: wire,
) -> Iterator[Live]:
    """The world of a demo; nothing of it is left when the block ends."""
    live = Live(
        place.rules, seed, shoes, table=place.table, ports=place.ports, control=place.control,
        log=place.log, speed=speed, shoe=place.shoe, line=line,
    )  # fmt: skip
    try:
        yield live
    finally:
        live.close()


def play(place: Place, seed: object, shoes: int, speed: float | None = None) -> dict[str, Any]:
    """Play, stop the daemon, verify the journal; the summary, with `problem` when stuck.

    How far it is is told on stderr.
    """
    problem: str | None = None
    with on_ptys(place, seed, shoes, speed) as live:
        progress = Progress(lambda: live.elapsed)
        try:
            live.start()
            live.run(until=lambda: False, tell=lambda: progress(lambda: _standing(live, shoes)))
        except (Stuck, DaemonGone) as error:
            problem = str(error)
        finally:
            progress.end()
        live.felt.referee.check()
        simulated = live.simulated
        code = live.stop()
        if problem is None and code != 0:
            problem = f"the daemon ended with {code}:\n{live.daemon.last_words()}"
        wall, view, referee = live.elapsed, live.view, live.felt.referee
    verdict = verify(place.journal, place.key)
    summary: dict[str, Any] = {
        "shoes": len(view.batches),
        "rounds": view.rounds,
        "cards": referee.cards if place.rules.by_eye else view.cards,
        "swaps": sum(a != b for a, b in zip(view.batches, view.batches[1:], strict=False)),
        "batches": view.batches,
        "violations": len(referee.violations),
        "faults": view.faults_latched,
        "journal": {"entries": verdict.entries, "verified": verdict.ok},
        "simulated_s": round(simulated, 1),
        "wall_s": round(wall, 2),
    }
    if referee.violations:
        summary["what"] = referee.violations
    if problem is not None:
        summary["problem"] = problem
    return summary


def is_good(summary: Mapping[str, Any]) -> bool:
    """No violation, no latched fault, journal verified, and everything was played."""
    clean = not summary["violations"] and not summary["faults"] and "problem" not in summary
    return bool(clean and summary["journal"]["verified"])


def _standing(live: Live, shoes: int) -> str:
    view = live.view
    batch = f"batch {view.batches[-1]}" if view.batches else "opening"
    shoe = f"shoe {len(view.batches)} of {shoes}, {batch}"
    return f"{shoe}, {view.phase}: {view.rounds} rounds, {view.cards} cards"


def as_text(summary: Mapping[str, Any], place: Place, *, kept: bool) -> str:
    """The summary for people."""
    journal, minutes = summary["journal"], summary["simulated_s"] / 60
    source = "dealt by hand" if place.rules.by_eye else "through the shoe"
    rows = [
        ("shoes", f"{summary['shoes']}, batches {' '.join(summary['batches']) or 'none'}"),
        ("swaps", str(summary["swaps"])),
        ("rounds", str(summary["rounds"])),
        ("cards", f"{summary['cards']} {source}, every one accounted for"),
        ("violations", str(summary["violations"])),
        ("faults", str(summary["faults"])),
        ("journal", f"{journal['entries']} facts, {'verified' if journal['verified'] else 'DAMAGED'}"),
        ("time", f"{minutes:.0f} min at the table, {summary['wall_s']:.1f} s here"),
    ]
    if summary["violations"]:
        rows[3] = ("cards", f"{summary['cards']} {source}")
    rows += [("", f"  {what}") for what in summary.get("what", ())]
    text = "\n".join(f"{name:<11} {value}" for name, value in rows)
    if "problem" in summary:
        text += f"\n\nit stopped early: {summary['problem']}"
    if kept:
        return f"{text}\n\nto look at it: cutcard journal show {place.journal} --key {place.key}"
    return f"{text}\n\nthe journal was in a temporary directory; --keep DIR leaves it to look at"
