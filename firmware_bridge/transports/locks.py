"""Lock files in the old UUCP form, `LCK..ttyUSB0`: they name the holder, and other programs keep out.

The lock itself is the kernel's (flock and TIOCEXCL, in serial.py), but not every program takes it. A file
counts while its process has the device open. Where we may not look into the process it counts while that
process is older than the file and of its user: a number that was given away again names a younger one.
Everybody may write to the directories, so nothing but a plain file is read there and no link is followed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

LOCK_DIRS = (Path("/run/lock"), Path(tempfile.gettempdir()))
READ_MAX = 256
"""Bytes of a lock file that count."""
CLOCK_S = 1.0
"""How far the times of files and processes may be apart, seconds: they are kept by different clocks."""


@dataclass(frozen=True, slots=True)
class Holder:
    pid: int
    program: str
    sure: bool = True
    """Seen to have the device open, or to be the living writer of the file; else a mere number says so."""

    def __str__(self) -> str:
        return f"process {self.pid} ({self.program})"


def holder(device: str) -> Holder | None:
    """Who holds `device` (a resolved path) according to a lock file: best one who surely does."""
    guess = None
    for directory in LOCK_DIRS:
        text, written = _read(directory / _name(device))
        number = re.match(r"\s*([0-9]+)\b", text)  # some write more behind it: "4242 minicom root"
        if number is None or written is None:
            continue
        pid = int(number[1])
        seen = _has_open(pid, device)
        if seen is False:
            continue
        line = text.partition("\n")[2].partition("\n")[0].strip()
        found = Holder(pid, line or _program_of(pid), seen or _wrote(pid, written))
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
    named, locked = holder(device), locked_by(device)
    if locked is not None:  # the file may name it better than the kernel does
        return replace(named, sure=True) if named is not None and named.pid == locked.pid else locked
    if named is not None and named.sure:
        return named
    # The far end keeps a pseudo-terminal open too.
    return (None if device.startswith("/dev/pts/") else opened_by(device)) or named


def write(device: str) -> None:
    """Name this process as the holder; best effort, since the kernel's lock counts."""
    program = " ".join([Path(sys.argv[0]).name or "python", *sys.argv[1:2]])
    for directory in LOCK_DIRS:
        try:
            handle, new = tempfile.mkstemp(prefix=f"{_name(device)}.", dir=directory)
        except OSError:
            continue
        try:
            with os.fdopen(handle, "w") as file:
                os.fchmod(handle, 0o644)  # whatever the umask: it is for others to read
                file.write(f"{os.getpid():10d}\n{program}\n")
            Path(new).replace(directory / _name(device))
        except OSError:
            with contextlib.suppress(OSError):
                Path(new).unlink()
            continue
        return


def remove(device: str) -> None:
    """Take our own lock file away; another's is left alone."""
    for directory in LOCK_DIRS:
        file = directory / _name(device)
        if _read(file)[0].partition("\n")[0].strip() == str(os.getpid()):
            with contextlib.suppress(OSError):
                file.unlink()


def _name(device: str) -> str:
    return "LCK.." + device.removeprefix("/dev/").replace("/", "_")


def _read(file: Path) -> tuple[str, os.stat_result | None]:
    """How a plain file begins, and its state; "" and None for anything else, which is never waited for."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return "", None
    try:
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode):
            return os.read(handle, READ_MAX).decode(errors="replace"), status
    except OSError:
        pass
    finally:
        os.close(handle)
    return "", None


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


def _wrote(pid: int, written: os.stat_result) -> bool:
    """Whether the living process can have written this file: as its user, and after it began."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        users = re.search("^Uid:(.*)$", Path(f"/proc/{pid}/status").read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return False
    if users is None or str(written.st_uid) not in users[1].split():
        return False
    begun = int(words[19]) / os.sysconf("SC_CLK_TCK")  # since the start of the machine: proc(5), starttime
    now = time.time()
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - begun
    return now - age - CLOCK_S <= written.st_mtime <= now + CLOCK_S


def _program_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "unknown program"
