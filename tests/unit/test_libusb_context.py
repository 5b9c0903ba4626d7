"""A libusb context and what was found through it are freed in the right order, or the process crashes."""

from __future__ import annotations

from typing import Any

import pytest
from usb.backend import libusb1

from firmware_bridge.transports.libusb import PollableLibusb


class Library:
    """Keeps what is called."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def libusb_init(self, _: Any) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.calls.append(name.removeprefix("libusb_"))


def test_devices_that_somebody_still_holds_are_let_go_before_their_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Library()
    monkeypatch.setattr(libusb1, "_lib", library)
    monkeypatch.setattr(libusb1, "_DevIterator", lambda _: iter([libusb1._Device(1), libusb1._Device(2)]))
    backend = PollableLibusb(library)  # type: ignore[arg-type]
    held = list(backend.enumerate_devices())
    backend.ctx = 5
    backend.finalize()
    assert library.calls == ["ref_device", "ref_device", "unref_device", "unref_device", "exit"]
    del held
    assert library.calls[-1] == "exit"
