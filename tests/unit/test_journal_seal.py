"""Sealing: no length tells a card, no nonce comes twice, no key is made for an old journal."""

from __future__ import annotations

import hmac
import shutil
import struct
from pathlib import Path
from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from controller.factlog import MemoryJournal
from controller.journal import Journal, verify
from controller.record import JournalFailed
from controller.seal import (
    KEY_BYTES,
    KeyMissing,
    KeyUnusable,
    KeyWrong,
    SealBroken,
    Sealer,
    create_key,
    load_key,
)
from controller.table.inputs import Fact
from devices.events import DECK
from firmware_bridge.clock import VirtualClock

KEY = bytes(range(32))
OWN_ID = bytes(range(16))
BOOT = bytes(range(100, 116))
PLACE: dict[str, Any] = {"seq": 5, "kind": "card_drawn", "boot": BOOT}


def seal(value: dict[str, Any]) -> bytes:
    return Sealer(KEY, OWN_ID).seal(value, attempt=0, **PLACE)


def test_the_seal_is_aes_256_gcm_under_hkdf_of_the_boot() -> None:
    """Computed here from RFC 5869 and the primitive alone."""
    prk = hmac.digest(OWN_ID, KEY, "sha256")
    subkey = hmac.digest(prk, b"cutcard journal seal 1 " + BOOT + b"\x01", "sha256")
    sealed = Sealer(KEY, OWN_ID).seal({"card": "8S"}, attempt=3, **PLACE)
    assert sealed[:4] == struct.pack(">L", 3)
    nonce = struct.pack(">QL", 5, 3)
    padded = AESGCM(subkey).decrypt(nonce, sealed[4:], struct.pack(">Q", 5) + BOOT + b"card_drawn")
    assert padded == cbor2.dumps({"card": "8S"}).ljust(64, b"\0")


def test_all_cards_and_no_card_seal_to_one_length() -> None:
    lengths = {len(seal({"card": card})) for card in (*DECK, None)}
    assert lengths == {4 + 64 + 16}


@pytest.mark.parametrize("raw", [None, b"", b"\x01", bytes(40), bytes(100)])
def test_a_raw_frame_changes_no_length_with_the_card(raw: bytes | None) -> None:
    lengths = {len(seal({"card": card, "raw": raw})) for card in ("8S", "TH", None)}
    assert len(lengths) == 1
    assert (lengths.pop() - 20) % 64 == 0


def test_lists_of_cards_seal_to_one_length() -> None:
    assert len(seal({"cards": ["8S"] * 300})) == len(seal({"cards": [None] * 300}))


def test_seals_open_again() -> None:
    value = {"card": "TH", "raw": b"\x00" * 9, "more": [1, {"a": None}]}
    assert Sealer(KEY, OWN_ID).open(seal(value), **PLACE) == value


@pytest.mark.parametrize("change", [{"seq": 6}, {"kind": "burn"}, {"boot": bytes(16)}])
def test_a_seal_opens_only_in_its_place(change: dict[str, Any]) -> None:
    with pytest.raises(SealBroken):
        Sealer(KEY, OWN_ID).open(seal({"card": "8S"}), **(PLACE | change))


def test_a_seal_opens_only_with_its_key_and_journal() -> None:
    for other in (Sealer(bytes(32), OWN_ID), Sealer(KEY, bytes(16))):
        with pytest.raises(SealBroken):
            other.open(seal({"card": "8S"}), **PLACE)


def test_every_flipped_bit_is_noticed() -> None:
    sealed = seal({"card": "8S"})
    for at in range(len(sealed)):
        broken = bytearray(sealed)
        broken[at] ^= 1 << at % 8
        with pytest.raises(SealBroken):
            Sealer(KEY, OWN_ID).open(bytes(broken), **PLACE)
    for cut in (0, 3, 4, 11, 19, len(sealed) - 1):
        with pytest.raises(SealBroken):
            Sealer(KEY, OWN_ID).open(sealed[:cut], **PLACE)


def test_errors_tell_no_card() -> None:
    with pytest.raises(SealBroken) as caught:
        Sealer(KEY, OWN_ID).open(seal({"card": "8S"}), **(PLACE | {"seq": 1}))
    assert "8S" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_sequence_that_comes_again_after_a_failure_has_another_nonce() -> None:
    class Full(MemoryJournal):
        full = False

        def _store(self, rows: list[Any]) -> None:
            tried.extend(rows)
            if self.full:
                raise JournalFailed("full")
            super()._store(rows)

    tried: list[Any] = []
    log = Full(VirtualClock())
    log.full = True
    with pytest.raises(JournalFailed):
        log.append([Fact("card_drawn", "shoe", {}, {"card": "8S"})])
    log.full = False
    log.append([Fact("card_drawn", "shoe", {}, {"card": "TH"})])
    first, second = tried[-2:]
    assert first.seq == second.seq == 2
    assert first.sealed[:4] != second.sealed[:4]
    assert log.verify().ok


def test_a_journal_back_from_its_backup_uses_another_subkey(tmp_path: Path) -> None:
    """The same sequence sealed twice under one key: equal plaintext must not give equal bytes."""
    card = [Fact("card_drawn", "shoe", {}, {"card": "8S"})]
    Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock()).close()
    backup = (tmp_path / "j.db").read_bytes()
    sealed = set()
    for _ in range(3):
        (tmp_path / "j.db").write_bytes(backup)
        journal = Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock())
        (entry,) = journal.append(card)
        (row,) = journal._fetch(entry.seq - 1, 1)
        sealed.add(row.sealed)
        journal.close()
    assert len(sealed) == 3


def test_a_key_file_is_whole_private_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "k"
    key = create_key(path)
    assert len(key) == KEY_BYTES
    assert path.stat().st_mode & 0o777 == 0o600
    assert create_key(path) == load_key(path) == key
    assert [p.name for p in tmp_path.iterdir()] == ["k"]


def test_another_daemon_may_create_the_key_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "k"
    theirs = create_key(path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda _self: False)
        ours = create_key(path)
    assert ours == theirs == load_key(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o700, 0o644])
def test_a_key_that_others_may_have_read_is_refused(tmp_path: Path, mode: int) -> None:
    create_key(tmp_path / "k")
    (tmp_path / "k").chmod(mode)
    with pytest.raises(KeyUnusable, match="chmod 600"):
        load_key(tmp_path / "k")


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_of_another_length_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "k").write_bytes(bytes(size))
    (tmp_path / "k").chmod(0o400)
    with pytest.raises(KeyUnusable, match="32 bytes"):
        load_key(tmp_path / "k")


def test_a_directory_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(KeyUnusable, match="regular file"):
        load_key(tmp_path)
    with pytest.raises(KeyUnusable, match="cannot be created"):
        create_key(tmp_path / "nowhere" / "k")


def test_a_missing_key_is_told_and_no_key_is_made(tmp_path: Path) -> None:
    Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock()).close()
    (tmp_path / "k").rename(tmp_path / "away")
    with pytest.raises(KeyMissing, match="Put the key file of this journal back"):
        Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock())
    assert not (tmp_path / "k").exists()
    assert verify(tmp_path / "j.db").ok
    (tmp_path / "away").rename(tmp_path / "k")
    Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock()).close()


def test_the_key_of_another_journal_is_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        Journal.open(tmp_path / f"{name}.db", tmp_path / name, clock=VirtualClock()).close()
    with pytest.raises(KeyWrong, match="does not belong"):
        Journal.open(tmp_path / "a.db", tmp_path / "b", clock=VirtualClock())
    with pytest.raises(KeyWrong):
        verify(tmp_path / "a.db", tmp_path / "b")


def test_a_new_journal_needs_a_key(tmp_path: Path) -> None:
    with pytest.raises(KeyMissing, match="needs a key file"):
        Journal.open(tmp_path / "j.db", None, clock=VirtualClock())
    assert not (tmp_path / "j.db").exists()


def test_a_start_that_died_before_the_journal_existed_goes_on_with_its_key(tmp_path: Path) -> None:
    key = create_key(tmp_path / "k")
    (tmp_path / "j.db.new").write_bytes(b"half")
    Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock()).close()
    assert load_key(tmp_path / "k") == key
    assert sorted(p.name for p in tmp_path.iterdir()) == ["j.db", "j.db-lock", "k"]


def test_two_journals_may_share_a_key(tmp_path: Path) -> None:
    for name in ("a.db", "b.db"):
        Journal.open(tmp_path / name, tmp_path / "k", clock=VirtualClock()).close()
        assert verify(tmp_path / name, tmp_path / "k").ok
    shutil.copy(tmp_path / "a.db", tmp_path / "c.db")
    assert verify(tmp_path / "c.db", tmp_path / "k").ok
