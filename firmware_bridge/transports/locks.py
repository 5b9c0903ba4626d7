"""Lock files in the old UUCP form, `LCK..ttyUSB0`: they name the holder, and other programs keep out.

The lock itself is the kernel's (flock and TIOCEXCL, in serial.py). A file is believed only while its
process lives and has the device open. Where we may not look into the process it proves nothing, for its
number may be used again by now: the kernel decides alone and the file only gives its refusal a name.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

LOCK_DIRS = (Path("/run/lock"), Path(tempfile.gettempdir()))


@dataclass(frozen=True, slots=True)
class Holder:
    pid: int
    program: str
    sure: bool = True
    """The process was seen to have the device open."""

    def __str__(self) -> str:
        return f"process {self.pid} ({self.program})"


def holder(device: str) -> Holder | None:
    """Who holds `device` (a resolved path) according to a lock file: best one who is seen to do so."""
    guess = None
    for directory in LOCK_DIRS:
        try:
            lines = (directory / _name(device)).read_text(errors="replace").split("\n")
            pid = int(lines[0])
        except (OSError, ValueError):
            continue
        seen = _has_open(pid, device)
        if seen is False:
            continue
        found = Holder(pid, (lines[1].strip() if len(lines) > 1 else "") or _program_of(pid), seen is True)
        if found.sure:
            return found
        guess = guess or found
    return guess


def opened_by(device: str) -> Holder | None:
    """Any other process that is seen to have `device` open, lock file or not; only root sees them all."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid() and _has_open(int(entry.name), device):
            return Holder(int(entry.name), _program_of(int(entry.name)))
    return None


def locked_by(device: str) -> Holder | None:
    """Whose lock the kernel keeps on `device`; anybody may ask this, also about another user's process."""
    try:
        status = Path(device).stat()
        table = Path("/proc/locks").read_text()
    except OSError:
        return None
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in table.splitlines():  # 1: FLOCK  ADVISORY  WRITE 2735 00:19:8 0 EOF
        words = line.split()
        if "FLOCK" in words and file in words:
            pid = int(words[words.index(file) - 1])
            if Path(f"/proc/{pid}").exists():  # a child may have inherited it from one that is gone
                return Holder(pid, _program_of(pid))
    return None


def held_by(device: str) -> Holder | None:
    """Who holds `device`, by the best evidence there is; also this process."""
    named = holder(device)
    if named is not None and named.sure:
        return named
    seen = locked_by(device)
    if seen is None and not device.startswith("/dev/pts/"):  # the far end keeps a pseudo-terminal open too
        seen = opened_by(device)
    return seen or named


def write(device: str) -> None:
    """Name this process as the holder; best effort, since the kernel's lock counts."""
    program = " ".join([Path(sys.argv[0]).name or "python", *sys.argv[1:2]])
    for directory in LOCK_DIRS:
        file = directory / _name(device)
        new = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            new.write_text(f"{os.getpid():10d}\n{program}\n")
            new.replace(file)
        except OSError:
            new.unlink(missing_ok=True)
            continue
        return


def remove(device: str) -> None:
    """Take our own lock file away; another's is left alone."""
    for directory in LOCK_DIRS:
        file = directory / _name(device)
        try:
            if int(file.read_text().split("\n")[0]) == os.getpid():
                file.unlink()
        except (OSError, ValueError):
            continue


def _name(device: str) -> str:
    return "LCK.." + device.removeprefix("/dev/").replace("/", "_")


def _has_open(pid: int, device: str) -> bool | None:
    """Whether the process has the device open; None when it lives and we may not look."""
    try:
        handles = list(Path(f"/proc/{pid}/fd").iterdir())
    except PermissionError:
        return None
    except OSError:
        return False
    for handle in handles:
        try:
            if str(handle.readlink()) == device:
                return True
        except OSError:
            continue
    return False


def _program_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "unknown program"
