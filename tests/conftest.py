"""House rules for every test: nothing may be left behind (threads, file descriptors, child processes)."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


def _descriptors() -> dict[str, str]:
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[entry.name] = str(entry.readlink())
        except OSError:  # the listing's own handle
            continue
    return found


def _children() -> set[str]:
    return {
        child
        for task in Path("/proc/self/task").iterdir()
        for child in (task / "children").read_text().split()
    }


@pytest.fixture(autouse=True)
def leaves_nothing_behind() -> Iterator[None]:
    """Fails a passing test that leaks a thread, a file descriptor or a child process."""
    threads, children = set(threading.enumerate()), _children()
    descriptors = _descriptors()
    yield
    gc.collect()
    left = [t for t in threading.enumerate() if t not in threads and t.is_alive()]
    for thread in left:
        thread.join(1.0)
    alive = [t.name for t in left if t.is_alive()]
    opened = {
        number: target
        for number, target in _descriptors().items()
        if int(number) > 2 and descriptors.get(number) != target and "/.hypothesis/" not in target
    }
    started = _children() - children
    if alive or opened or started:
        pytest.fail(f"left behind: threads {alive}, descriptors {opened}, children {sorted(started)}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failure: what it needs must be installed there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("CI") and skipped and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
