"""A driver of somebody else's: installed by pip into an environment of its own, and found by every command.

docs/writing-a-driver.md shows the example's own files and what the commands print, word for word.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shlex
import shutil
import site
import subprocess
import sys
import sysconfig
import venv
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controller import open_tables
from controller.cli import app
from devices import registry
from devices.base import CommandSpec, Counters, DriverSpec, Setup
from devices.events import DeviceEvent
from firmware_bridge.link import Submit
from simulators.hosts import umockdev_host
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_device import UsbDevice
from simulators.rig import sim
from tests.support.desk import ALONE, MAIN
from tests.support.umockdev import Bed
from tests.unit.test_config_tables import CONTRACT

EXAMPLE = Path(__file__).parents[1] / "example_driver"
PAGE = (Path(__file__).parents[2] / "docs" / "writing-a-driver.md").read_text()
FILES = dict(re.findall(r"\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)```", PAGE, re.DOTALL))
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
CONSOLES = [block for language, block in BLOCKS if language == "console"]
CONTRACT_SHOE = re.compile(r"\[devices\.shoe\].*?(?=\[)", re.DOTALL)


def test_the_page_shows_the_example_as_it_is():
    paths = [path for path in EXAMPLE.rglob("*.*") if path.suffix in {".py", ".toml"}]
    made = {str(path.relative_to(EXAMPLE)) for path in paths}
    assert made - set(FILES) == {"acme_shoe/__init__.py"}
    for name in made & set(FILES):
        assert FILES[name] == (EXAMPLE / name).read_text(), name
    assert set(FILES) - made == {"table.toml"}
    assert sorted(block for language, block in BLOCKS if language != "console") == sorted(FILES.values())


def test_the_page_names_every_kind_of_event_and_every_field_of_what_a_driver_hands_over():
    kinds = [kind for kind in DeviceEvent.registry.values() if kind.__module__ == DeviceEvent.__module__]
    shapes = (*kinds, DriverSpec, CommandSpec, Setup, Counters, Submit)
    wanted = {kind.__name__ for kind in kinds} | {f.name for shape in shapes for f in fields(shape)}
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    named = re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose)))
    assert wanted - set(named) == set()


def test_driver_and_simulator_are_small():
    assert sum(len(path.read_text().splitlines()) for path in EXAMPLE.glob("acme_shoe/*.py")) < 100


# In an environment of its own


END = "\x00"
EACH = f"""{ALONE}
import sys
from controller.cli.app import main
sys.stderr = sys.stdout
for words in sys.argv[1:]:
    try:
        main(words.split())
    except SystemExit:
        pass
    print(end={END!r})
"""


class Place(NamedTuple):
    """A directory to work in, and an environment whose `cutcard` sees the packages of this one."""

    home: Path
    python: Path
    env: dict[str, str]

    def run(self, *words: str) -> str:
        """What a command prints, whatever its exit code."""
        done = subprocess.run(
            words, cwd=self.home, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=30, check=False,
        )  # fmt: skip
        return done.stdout

    def each(self, *lines: str) -> list[str]:
        """The same of several commands in one process, which is sooner done."""
        return self.run(str(self.python), "-c", EACH, *lines).split(END)[:-1]


def prepare(home: Path) -> Place:
    """The environment of this test run seen from a new one, and the example installed there by pip."""
    venv.create(home / "venv", symlinks=True)
    python = home / "venv" / "bin" / "python"
    packages = sysconfig.get_path("purelib", vars={"base": str(home / "venv")})
    seen = "".join(f"import site; site.addsitedir({place!r})\n" for place in site.getsitepackages())
    (Path(packages) / "cutcard-of-this-test-run.pth").write_text(seen)
    shutil.copytree(EXAMPLE, home / "source", ignore=shutil.ignore_patterns("__pycache__"))
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_"))}
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--no-compile", "--no-cache-dir"]
    done = subprocess.run(
        [*pip, *offline, home / "source"], env=env, capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    script = home / "venv" / "bin" / "cutcard"
    script.write_text(f"#!{python}\n{ALONE}{MAIN}\n")
    script.chmod(0o755)
    return Place(home, python, {**env, "PATH": f"{script.parent}:{env['PATH']}"})


def test_installed_it_is_found_by_every_command(tmp_path):
    place = prepare(tmp_path)
    decoding, playing, plugged = CONSOLES
    show(place, decoding)
    show(place, playing)
    if not umockdev_host.missing():  # other tests are skipped then, and say so
        with a_shoe_plugged_in() as env:
            show(place._replace(env={**place.env, **env}), plugged)
    table = CONTRACT_SHOE.sub(FILES["table.toml"], CONTRACT)
    (place.home / "good.toml").write_text(table)
    (place.home / "bad.toml").write_text(table.replace("check_covers", "check_cover"))
    good, bad, near, options = place.each(
        "check good.toml",
        "check bad.toml",
        "sim acme-show --listen pty:x",
        "send x --driver acme-shoe --help",
    )
    assert "good.toml: table BJ-07 is fine" in good
    assert "the driver acme-shoe has no such key; did you mean check_covers?" in bad
    assert "did you mean 'acme-shoe'? (there are angel-eye, " in near
    assert "check_covers  what the check byte covers" in options
    assert not list((place.home / "source").rglob("__pycache__")), "building left something behind"


@contextlib.contextmanager
def a_shoe_plugged_in():
    """The variables for programs that see an Acme shoe behind a serial adapter of its own."""
    device = UsbDevice(0x1209, 0x000A, maker="Acme", name="Acme Shoe", serial="A0001")
    with contextlib.closing(PtyHost(sim.make("bee-tek", 0))) as line, Bed(bus=UsbBus()) as bed:
        bed.host.mount_tty(device, line.path, "ttyACM0")
        bed.bus.plug(device)
        yield bed.environment


def show(place: Place, console: str) -> None:
    """Run what a block of the page shows, and compare what is printed; `&` leaves a program running."""
    with contextlib.ExitStack() as stack:
        for step in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            if command.endswith(" &"):
                words = shlex.split(command.removesuffix(" &"))
                program = stack.enter_context(
                    subprocess.Popen(words, cwd=place.home, env=place.env, stdout=subprocess.PIPE, text=True)
                )
                stack.callback(program.terminate)
                assert program.stdout is not None
                said = program.stdout.readline()
            else:
                said = place.run("sh", "-c", command)
            assert as_ever(said) == as_ever(shown), command


def as_ever(said: str) -> str:
    """Without what differs from run to run: times, and what a shoe dealt before somebody listened."""
    said = re.sub(r"(?m)^\d\d:\d\d:\d\d\.\d{3} +\d+ +\d+( +card_drawn +card=)\S+", r"TIME N\1CARD", said)
    return re.sub(r"/dev/pts/\d+", "/dev/pts/N", said)


# Packages that do not fit


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Packages as pip leaves them, for the commands in this process: name, module text, entry points."""
    monkeypatch.setattr(open_tables, "any_open", lambda: False)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    def install(package: str, text: str, **points: str) -> None:
        module = package.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(text)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        groups = [f"[cutcard.{group}]\nodd-shoe = {module}:{name}\n" for group, name in points.items()]
        (info / "entry_points.txt").write_text("\n".join(groups))
        importlib.invalidate_caches()
        registry._installed.cache_clear()

    before = set(sys.modules)
    yield install
    for module in set(sys.modules) - before:
        if module.endswith("_maker"):
            del sys.modules[module]
    registry._installed.cache_clear()


@pytest.fixture
def cutcard(capsys):
    def call(*words: str) -> tuple[int, str, str]:
        code = 0
        try:
            app.main(list(words))
        except SystemExit as left:
            code = int(left.code or 0)
        return code, *capsys.readouterr()

    return call


def commands(tmp_path: Path) -> list[tuple[str, ...]]:
    """Every command that needs the driver, at a port that is never touched."""
    table = tmp_path / "table.toml"
    table.write_text(CONTRACT.replace('"managed-shoe"', '"odd-shoe"'))
    wanted: Any = "--driver", "odd-shoe"
    return [
        ("decode", *wanted, "/dev/null"),
        ("monitor", "serial:/dev/cutcard-none", *wanted),
        ("send", "serial:/dev/cutcard-none", *wanted, "lock"),
        ("check", str(table)),
    ]


def test_two_packages_of_one_name_are_both_named_and_none_is_taken(installed, cutcard, tmp_path):
    for package in ("one-maker", "other-maker"):
        installed(package, "", drivers="SPEC", simulators="Made")
    both = "one_maker:{0} of one-maker and other_maker:{0} of other-maker): uninstall one of them"
    said = both.format("SPEC")
    for words in [*commands(tmp_path), ("ports",)]:
        code, out, err = cutcard(*words)
        ends = 0 if words == ("ports",) else 2
        found = [line for line in (out + err).splitlines() if "odd-shoe" in line]
        assert (code, len(found)) == (ends, 1), (words, out, err)
        assert f"two installed packages offer a driver named 'odd-shoe' ({said}" in found[0]
    code, out, err = cutcard("sim", "odd-shoe", "--listen", "tcp:127.0.0.1:0")
    said = (
        f"cutcard: two installed packages offer a simulated device named 'odd-shoe' ({both.format('Made')}\n"
    )
    assert (code, out, err) == (2, "", said)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_module", "(ModuleNotFoundError: No module named 'no_such_module')"),
        ("", "(AttributeError: module 'odd_maker' has no attribute 'SPEC')"),
        ("from devices.base import DriverSpec\nDriverSpec(a=1)", "(TypeError: DriverSpec.__init__() got"),
        ("raise RuntimeError('one\\ntwo')", "(RuntimeError: one)"),
        ("SPEC = 'nothing of the kind'", "its entry point odd_maker:SPEC of odd-maker names no DriverSpec"),
    ],
)
def test_a_driver_that_cannot_be_had_is_one_sentence(installed, cutcard, tmp_path, text, says):
    installed("odd-maker", text, drivers="SPEC")
    for words in commands(tmp_path):
        code, out, err = cutcard(*words)
        found = [line for line in (out + err).splitlines() if "odd-shoe" in line]
        assert (code, len(found), says in found[0]) == (2, 1, True), (words, out, err)
    assert "install a version of odd-maker that fits" in found[0] or "names no DriverSpec" in found[0]
    code, out, _ = cutcard("ports")
    assert (code, says in out) == (0, True), "a broken driver must not hide the ports"


def test_a_simulated_device_that_cannot_be_had_is_one_sentence(installed, cutcard):
    installed("odd-maker", "import no_such_module", simulators="Made")
    code, out, err = cutcard("sim", "odd-shoe", "--listen", "tcp:127.0.0.1:0")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("cutcard: simulated device 'odd-shoe' cannot be loaded (ModuleNotFoundError: ")
