"""`cutcard campaign`, called in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from controller.cli import app


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Cutcard = Callable[..., Ran]


def caller(capsys: pytest.CaptureFixture[str]) -> Cutcard:
    """A function that runs it with its arguments and tells its exit code and what it printed."""

    def call(*args: str) -> Ran:
        with pytest.raises(SystemExit) as left:
            app.main(["campaign", *args])
        return Ran(int(left.value.code or 0), *capsys.readouterr())

    return call
