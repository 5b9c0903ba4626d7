"""House rules for every test: nothing may be left behind (threads, file descriptors, child processes)."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("house", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
"""A busy machine is no fault of a test; the timeout of each ends one that hangs."""

collect_ignore = ["example_project"]
"""A customer's own project: scenarios/test_example_project.py runs it."""


def pytest_configure() -> None:
    """A suite started in the background has SIGINT ignored, and so would the programs it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _descriptors() -> dict[str, str]:
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[entry.name] = str(entry.readlink())
        except OSError:  # the listing's own handle
            continue
    return found


def _children() -> set[str]:
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update((task / "children").read_text().split())
        except OSError:  # a thread that just ended
            continue
    return found


@pytest.fixture(autouse=True)
def leaves_nothing_behind() -> Iterator[None]:
    """Fails a passing test that leaks a thread, a file descriptor or a child process."""
    threads, children = set(threading.enumerate()), _children()
    descriptors = _descriptors()
    yield
    left = _left(threads, descriptors, children)
    if any(left):
        gc.collect()
        for thread in threading.enumerate():
            if thread not in threads:
                thread.join(1.0)
        left = _left(threads, descriptors, children)
    if any(left):
        pytest.fail("left behind: threads {}, descriptors {}, children {}".format(*left))


def _left(
    threads: set[threading.Thread], descriptors: dict[str, str], children: set[str]
) -> tuple[list[str], dict[str, str], list[str]]:
    alive = [t.name for t in threading.enumerate() if t not in threads and t.is_alive()]
    opened = {
        number: target
        for number, target in _descriptors().items()
        if int(number) > 2 and descriptors.get(number) != target and "/.hypothesis/" not in target
    }
    return alive, opened, sorted(_children() - children)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the explorations met, with the count of states."""
    told = [
        f"{report.location[2]}: {text}"
        for report in terminalreporter.stats.get("passed", [])
        for name, text in report.user_properties
        if name == "explored"
    ]
    if told:
        terminalreporter.section("explored")
        terminalreporter.write_line("\n".join(told))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failure: what it needs must be installed there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("CI") and skipped and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
