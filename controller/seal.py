"""Sealing of the cards nobody may see yet (law 7): AES-256-GCM under a subkey of one boot of the daemon.

The nonce is the journal sequence and an attempt number, so it never repeats within a boot; the subkey is
HKDF-SHA256 of the key file, the journal id and the random boot id, so a journal that lost its tail or came
back from a backup never meets its old nonces again. Sequence, kind and boot id are associated data.
"""

from __future__ import annotations

import io
import os
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cbor2
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from controller.record import encode

KEY_BYTES = 32
TEXT_SLOT = 64
BYTES_SLOT = 128
"""A sealed value takes a whole number of such slots, bytes: no length tells a card or that it was unread."""
INFO = b"cutcard journal seal 1 "


class SealError(Exception):
    """Base of what can be wrong with a key or a sealed value. The text is for people; it holds neither."""


class KeyMissing(SealError):
    """The journal exists but its key file does not: a latched fault, never a new key."""


class KeyUnusable(SealError):
    """The key file may not be used: wrong mode, wrong length, not readable, not creatable."""


class KeyWrong(SealError):
    """The key belongs to another journal."""


class SealBroken(SealError):
    """A sealed value does not open: it, or what it is bound to, was changed."""


def fresh_bytes(count: int) -> bytes:
    """Entropy of the operating system: for keys and ids, never for anything a game depends on."""
    return os.urandom(count)


def load_key(path: Path) -> bytes:
    """The 32 bytes of the key file. Raises KeyMissing or KeyUnusable."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise KeyMissing(
            f"the seal key {path} is missing, so the journal's unseen cards cannot be read. "
            "Put the key file of this journal back (mode 600) and clear the fault; no new key is made."
        ) from None
    except OSError as error:
        raise KeyUnusable(f"the seal key {path} cannot be opened: {error.strerror}") from error
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise KeyUnusable(f"the seal key {path} is not a regular file; name the 32-byte key file")
        if state.st_mode & 0o177:
            raise KeyUnusable(
                f"the seal key {path} has mode {stat.S_IMODE(state.st_mode):03o}, so others may have "
                f"read it. If nobody has, run `chmod 600 {path}`."
            )
        key = os.read(handle, KEY_BYTES + 1)
    finally:
        os.close(handle)
    if len(key) != KEY_BYTES:
        raise KeyUnusable(
            f"the seal key {path} does not hold exactly {KEY_BYTES} bytes: it is damaged or no key file. "
            "Restore it from its backup."
        )
    return key


def create_key(path: Path) -> bytes:
    """A new key file, whole on disk before its name appears; only for a new journal.

    A key that stands there already is used. Raises KeyUnusable.
    """
    if path.exists():
        return load_key(path)
    draft = path.with_name(f"{path.name}.{fresh_bytes(8).hex()}.new")
    key = fresh_bytes(KEY_BYTES)
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)
        finally:
            draft.unlink()
        sync_directory(path.parent)
    except FileExistsError:
        return load_key(path)
    except OSError as error:
        raise KeyUnusable(
            f"the seal key {path} cannot be created: {error.strerror}. Create its directory, or name another "
            "place with [journal] key."
        ) from error
    return key


def sync_directory(path: Path) -> None:
    """Make names created in a directory durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Sealer:
    """Seals and opens for one journal; keeps one cipher a boot."""

    def __init__(self, key: bytes, journal_id: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a seal key has {KEY_BYTES} bytes")
        self._key = key
        self._journal_id = journal_id
        self._ciphers: dict[bytes, AESGCM] = {}

    def seal(self, value: Mapping[str, Any], *, seq: int, attempt: int, kind: str, boot: bytes) -> bytes:
        """Attempt number, ciphertext and tag. (`seq`, `attempt`) must be new in this boot."""
        number = struct.pack(">L", attempt)
        text = encode(value)
        padded = text.ljust(padded_size(value), b"\0")
        nonce = struct.pack(">Q", seq) + number
        return number + self._cipher(boot).encrypt(nonce, padded, _bound_to(seq, kind, boot))

    def open(self, sealed: bytes, *, seq: int, kind: str, boot: bytes) -> dict[str, Any]:
        """The sealed values. Raises SealBroken."""
        try:
            nonce = struct.pack(">Q", seq) + sealed[:4]
            padded = self._cipher(boot).decrypt(nonce, sealed[4:], _bound_to(seq, kind, boot))
        except (InvalidTag, ValueError):
            raise SealBroken(f"the sealed part of fact {seq} does not open") from None
        value: dict[str, Any] = cbor2.CBORDecoder(io.BytesIO(padded)).decode()  # stops before the padding
        return value

    def _cipher(self, boot: bytes) -> AESGCM:
        cipher = self._ciphers.get(boot)
        if cipher is None:
            subkey = HKDF(SHA256(), KEY_BYTES, salt=self._journal_id, info=INFO + boot).derive(self._key)
            cipher = self._ciphers[boot] = AESGCM(subkey)
        return cipher


def padded_size(value: Mapping[str, Any]) -> int:
    """Bytes of the padded plaintext: one or more whole slots a value, so never less than its encoding."""
    return sum(_slots(3 + len(name.encode()) + _room(item), item) for name, item in value.items())


def _slots(size: int, item: Any) -> int:
    slot = BYTES_SLOT if isinstance(item, bytes) else TEXT_SLOT
    return -(-size // slot) * slot


def _room(value: Any) -> int:
    """At least the encoded size; small values and None, the unread card, take the same."""
    if isinstance(value, bytes):
        return 9 + len(value)
    if isinstance(value, str):
        return max(12, 9 + len(value.encode()))
    if isinstance(value, Mapping):
        return 9 + sum(9 + len(name.encode()) + _room(item) for name, item in value.items())
    if isinstance(value, list | tuple):
        return 9 + sum(_room(item) for item in value)
    return 12


def _bound_to(seq: int, kind: str, boot: bytes) -> bytes:
    return struct.pack(">Q", seq) + boot + kind.encode()
