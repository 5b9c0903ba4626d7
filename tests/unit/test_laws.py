"""The laws that import-linter and ruff cannot see: dynamic imports, sets walked in order, the locks."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
OURS = ("firmware_bridge", "devices", "controller", "simulators")
PURE = (
    "firmware_bridge/framing",
    "firmware_bridge/link.py",
    "firmware_bridge/smp.py",
    "firmware_bridge/gat",
    "devices",
    "controller/table",
    "simulators/models",
    "simulators/wire",
)
"""The rooms of law 3."""


def sources(*places: str) -> Iterator[Path]:
    for place in places:
        path = HOUSE / place
        yield from [path] if path.suffix else sorted(path.rglob("*.py"))


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def dynamic_imports(path: Path) -> list[str]:
    names = ("importlib.import_module", "import_module", "__import__", "runpy.run_module")
    return [
        node.args[0].value
        for name, node in calls(path)
        if name in names and node.args and isinstance(node.args[0], ast.Constant)
    ]


def test_law1_nobody_imports_simulators_by_name_at_run_time():
    for path in sources("firmware_bridge", "devices", "controller"):
        assert [n for n in dynamic_imports(path) if n.startswith("simulators")] == [], path


def test_law1_simulators_import_nothing_of_ours_by_name_at_run_time():
    for path in sources("simulators/models", "simulators/wire", "simulators/hosts", "simulators/faults"):
        found = [n for n in dynamic_imports(path) if n.split(".")[0] in OURS[:3]]
        assert found == [], path


@pytest.mark.parametrize("room", PURE)
def test_law3_pure_rooms_import_no_clock_and_no_thread(room):
    for path in sources(room):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported = {(node.module or "").split(".")[0]}
            else:
                continue
            assert not imported & {"time", "threading", "asyncio", "secrets", "multiprocessing"}, path


@pytest.mark.parametrize("room", PURE)
def test_law3_no_loop_walks_a_set(room):
    """The order of a set changes from run to run: a loop or a join over one is not repeatable."""
    for path in sources(room):
        for node in ast.walk(ast.parse(path.read_text())):
            walked: list[ast.expr] = []
            if isinstance(node, ast.For):
                walked = [node.iter]
            elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
                walked = [g.iter for g in node.generators]
            for expression in walked:
                text = ast.unparse(expression)
                is_set = isinstance(expression, ast.Set | ast.SetComp) or text.startswith(
                    ("set(", "frozenset(")
                )
                assert not is_set, f"{path}:{expression.lineno} walks {text}"


def locked(name: str) -> dict[str, str]:
    text = (HOUSE / "requirements" / name).read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", text, re.MULTILINE))


def test_the_run_lock_is_a_subset_of_the_dev_lock_and_both_have_hashes():
    run, dev = locked("run.txt"), locked("dev.txt")
    assert set(run) < set(dev)
    assert {name: dev[name] for name in run} == run
    for name in ("run.txt", "dev.txt"):
        lines = (HOUSE / "requirements" / name).read_text()
        pinned = re.findall(
            r"^[a-z0-9._-]+==\S+.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)+", lines, re.MULTILINE
        )
        assert len(pinned) == len(locked(name))


def test_nothing_committed_names_a_place_outside_the_house():
    """Documents and code hold no absolute path of a build machine."""
    for path in [*sources(*OURS, "tests"), *HOUSE.glob("docs/**/*.md"), HOUSE / "README.md"]:
        assert not re.search(r"/(?:work|root|home/[a-z]+)/", path.read_text()), path
