"""I-40: what is told when USB cannot be used: whether libusb is missing, or is there and does not start."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from usb.backend import libusb1

from firmware_bridge.errors import Unsupported
from firmware_bridge.transports import libusb

NEEDS = "USB needs the library libusb-1.0"
SHORT_OF_FILES = """
import ctypes, os, resource
from firmware_bridge.transports import libusb
ctypes.CDLL(libusb._where(""))
resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), 4096))
for _ in range(2):
    try:
        libusb.make_backend()
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a program that has not used USB yet."""
    cached = libusb._library
    monkeypatch.setattr(libusb1, "_lib", None)
    cached.cache_clear()
    yield
    cached.cache_clear()


def told() -> str:
    with pytest.raises(Unsupported) as caught:
        libusb.make_backend()
    return str(caught.value)


def test_i40_a_library_that_is_there_and_does_not_start_is_not_said_to_be_missing() -> None:
    """The real one: it wants a few handles, and the process may open no more."""
    done = subprocess.run(
        [sys.executable, "-c", SHORT_OF_FILES], capture_output=True, text=True, check=True, timeout=30
    )
    first, second = done.stdout.splitlines()
    assert first == second
    assert first.startswith(f"Unsupported {NEEDS}, which is there but does not start (Other error): ")
    assert "install" not in first
    assert done.stderr == ""


@pytest.mark.parametrize(("code", "why"), [(-99, "Other error"), (-12, "Operation not supported")])
def test_i40_it_may_also_fail_later(monkeypatch: pytest.MonkeyPatch, code: int, why: str) -> None:
    """As in a container without netlink, and once it has started: each port starts it for itself."""
    libusb.make_backend().finalize()
    real = libusb._library()

    class Failing:
        def libusb_init(self, _: Any) -> int:
            return code

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    monkeypatch.setattr(libusb, "_library", Failing)
    text = told()
    assert f"does not start ({why}" in text
    assert "/dev/bus/usb" in text
    gc.collect()  # what was half made goes without a word


def test_i40_a_missing_library_names_the_packages_and_the_loaders_own_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(libusb, "SYSTEM", "libnone-1.0.so.0")
    monkeypatch.setitem(sys.modules, "libusb_package", None)
    text = told()
    assert text.startswith(f"{NEEDS}, which cannot be loaded (libnone-1.0.so.0: cannot open")
    assert text.endswith("install the Debian package libusb-1.0-0, or the Python package libusb-package")


def test_i40_a_library_of_that_name_that_is_none_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libusb, "SYSTEM", "libc.so.6")
    assert "which cannot be loaded (libc.so.6 is something else)" in told()
