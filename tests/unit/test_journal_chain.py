"""The chain and the encoding: exact values, and every change is found where it was made."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import cbor2
import pytest

from controller.factlog import MemoryJournal
from controller.journal import Journal, verify
from controller.record import Chain, JournalCorrupt, chain_hash, plain
from controller.seal import KEY_BYTES, KeyMissing
from controller.table.inputs import Fact, Role
from firmware_bridge.clock import VirtualClock

KEY = bytes(range(KEY_BYTES))
BOOT = bytes.fromhex("000102030405060708090a0b0c0d0e0f")
OWN_ID = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
FACTS = (
    Fact("bets_closed", "operator", {"boxes": [1, 2, 5], "who": "anna"}),
    Fact("card_drawn", "shoe", {"n": 1, "position": "box 1"}, {"card": "8S", "raw": b"\x02\x08"}),
    Fact("card_drawn", "shoe", {"n": 2, "position": "dealer"}, {"card": None, "raw": b"\x02\x00"}),
    Fact("checkpoint", "service", {"shoe": 1}),
    Fact("burn", "operator", {}),
    Fact("card_drawn", "shoe", {"n": 3}, {"card": "TH", "raw": None}),
)
REST = "boot, mono_ns, wall_ms, kind, source, data, hidden, sealed, hash"
FIRST = 2
"""Sequence of FACTS[0]: the header is 1."""

GOLDEN_HASHES = [
    "60511c05720a1010",
    "840bbc34c418dc63",
    "b5f9bbb3a4d4ed18",
    "39a346400d107724",
    "baec07aebccfffb0",
    "a51099cbdba87bee",
    "5154315afd686c82",
]
GOLDEN_LAST = "5154315afd686c827e8dd26dbd477492148fb1289ad8546b2d2694e2dc8efb74"
GOLDEN_SEALED = "000000004a55b6bf389b6615b6c8b62246b65191aa170c1c"


def in_memory() -> MemoryJournal:
    log = MemoryJournal(VirtualClock(100.25), boot_id=BOOT, journal_id=OWN_ID, key=KEY)
    log.append(FACTS)
    return log


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    journal = Journal.open(folder / "j.db", folder / "seal.key", clock=VirtualClock())
    journal.append(FACTS)
    journal.close()
    return folder


@pytest.fixture
def path(tmp_path: Path, made: Path) -> Path:
    """A closed journal with FACTS."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "j.db"


def test_golden_chain() -> None:
    log = in_memory()
    assert [row.hash.hex()[:16] for row in log.rows] == GOLDEN_HASHES
    assert log.rows[2].sealed is not None
    assert log.rows[2].sealed.hex()[:48] == GOLDEN_SEALED
    assert log.rows[-1].hash.hex() == GOLDEN_LAST


def test_the_hash_is_sha256_over_previous_hash_and_record() -> None:
    rows = in_memory().rows
    record = b"\x89" + b"".join(cbor2.dumps(value) for value in rows[1][:-1])
    assert rows[1].hash == hashlib.sha256(rows[0].hash + record).digest()


@pytest.mark.rule("R-71")
def test_memory_and_file_agree_in_everything_but_secrets(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock(100.25), boot_id=BOOT)
    entries = journal.append(FACTS)
    other = list(in_memory().entries(1))
    assert [(e.seq, e.fact, e.mono_ns, e.wall_ms, e.boot, e.hidden) for e in entries] == [
        (e.seq, e.fact, e.mono_ns, e.wall_ms, e.boot, e.hidden) for e in other
    ]
    assert entries[0].mono_ns == 100_250_000_000
    assert entries[0].wall_ms == 1_767_225_700_250
    journal.close()


def test_what_append_returns_is_what_is_read_back(path: Path) -> None:
    key = path.with_name("seal.key")
    journal = Journal.open(path, key, clock=VirtualClock(7.0))
    new = journal.append([Fact("x", "operator", {"b": (1, {"z": 1, "a": 2}), "a": "é"}, {"card": "2C"})])
    assert list(journal.entries(journal.last_seq - 1)) == new
    assert list(new[0].fact.data) == ["a", "b"]
    assert new[0].fact.data["b"] == [1, {"a": 2, "z": 1}]
    journal.close()


def test_replay_begins_with_the_last_checkpoint(path: Path) -> None:
    key = path.with_name("seal.key")
    journal = Journal.open(path, key, clock=VirtualClock())
    assert [entry.fact for entry in journal.replay()] == list(FACTS[3:])
    journal.append([Fact("checkpoint", "service", {"shoe": 2})])
    assert [entry.fact.data for entry in journal.replay()] == [{"shoe": 2}]
    journal.close()
    assert [entry.fact for entry in in_memory().replay()] == list(FACTS[3:])


def test_replay_without_checkpoint_begins_after_the_header() -> None:
    log = MemoryJournal(VirtualClock())
    log.append(FACTS[:2])
    assert [entry.fact for entry in log.replay()] == list(FACTS[:2])


def test_nothing_to_append_is_no_commit() -> None:
    log = in_memory()
    assert log.append([]) == []
    assert log.last_seq == FIRST + len(FACTS) - 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("boot", BOOT),
        ("mono_ns", 1),
        ("mono_ns", 0.5),
        ("wall_ms", "soon"),
        ("kind", "burn"),
        ("kind", b"card_drawn"),
        ("source", "shoe2"),
        ("data", cbor2.dumps({"n": 2})),
        ("hidden", "raw"),
        ("hidden", None),
        ("sealed", bytes(148)),
        ("sealed", None),
        ("hash", bytes(32)),
    ],
)
@pytest.mark.parametrize("seq", [3, 7])
def test_a_changed_field_is_found_at_its_fact(path: Path, column: str, value: object, seq: int) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE fact SET {column} = ? WHERE seq = ?", (value, seq))
    verdict = verify(path)
    assert (verdict.bad_seq, verdict.entries) == (seq, seq - 1)
    if seq > 5:  # after the checkpoint: the daemon sees it as well
        with pytest.raises(JournalCorrupt, match=f"fact {seq}"):
            Journal.open(path, path.with_name("seal.key"), clock=VirtualClock())


@pytest.mark.parametrize(
    ("statement", "bad"),
    [
        ("UPDATE fact SET seq = 100 WHERE seq = 4", 4),
        ("UPDATE fact SET seq = -4 WHERE seq = 4", 1),
        ("DELETE FROM fact WHERE seq = 6", 6),
        ("DELETE FROM fact WHERE seq = 1", 1),
        (f"INSERT INTO fact SELECT 8, {REST} FROM fact WHERE seq = 7", 8),
        ("UPDATE fact SET kind = CAST(x'ff' AS TEXT) WHERE seq = 6", 6),
        ("DELETE FROM fact", 1),
    ],
)
def test_a_missing_moved_or_added_fact_is_found(path: Path, statement: str, bad: int) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)
    assert verify(path).bad_seq == bad


def test_a_rewritten_chain_without_the_key_breaks_the_seals(path: Path) -> None:
    """Somebody moves a sealed value to another fact and computes all hashes anew."""
    with closing(sqlite3.connect(path)) as db, db:
        (other,) = db.execute("SELECT sealed FROM fact WHERE seq = 4").fetchone()
        db.execute("UPDATE fact SET sealed = ? WHERE seq = 3", (other,))
        chain = Chain()
        for row in db.execute("SELECT * FROM fact ORDER BY seq").fetchall():
            chain.hash = chain_hash(chain.hash, row[:-1])
            db.execute("UPDATE fact SET hash = ? WHERE seq = ?", (chain.hash, row[0]))
    assert verify(path).ok
    assert verify(path, path.with_name("seal.key")).bad_seq == 3


def test_lost_end_still_verifies_and_says_where_it_ends(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM fact WHERE seq > 5")
    verdict = verify(path)
    assert (verdict.ok, verdict.last_seq) == (True, 5)


@pytest.mark.parametrize(
    "value", [1.5, float("nan"), {1: 2}, {None: 1}, {1, 2}, object(), [0.0], {"a": {"b": 1.0}}]
)
def test_a_value_without_one_encoding_is_refused_and_nothing_written(value: object) -> None:
    log = in_memory()
    before = list(log.rows)
    with pytest.raises(TypeError):
        log.append([Fact("ok", "operator"), Fact("bad", "operator", {"value": value})])
    with pytest.raises(TypeError):
        log.append([Fact("bad", "shoe", {}, {"card": value})])
    assert log.rows == before
    assert log.append([Fact("ok", "operator")])[0].seq == len(before) + 1


def test_an_error_about_a_sealed_value_does_not_tell_it() -> None:
    with pytest.raises(TypeError) as caught:
        in_memory().append([Fact("card_drawn", "shoe", {}, {"card": [8.5, "KC"]})])
    assert "8.5" not in str(caught.value)
    assert "KC" not in str(caught.value)


def test_plain_text_is_plain(tmp_path: Path) -> None:
    assert type(plain(Role.DEALER)) is str
    assert plain({"a": (Role.DEALER, True)}) == {"a": ["dealer", True]}


def test_without_key_sealed_values_stay_sealed_and_none_can_be_added(path: Path) -> None:
    journal = Journal.open(path, None, clock=VirtualClock())
    drawn = next(e for e in journal.entries() if e.fact.kind == "card_drawn")
    assert (drawn.is_sealed, drawn.hidden, drawn.fact.sealed) == (True, ("card", "raw"), {})
    with pytest.raises(KeyMissing):
        journal.append([FACTS[1]])
    assert journal.append([Fact("fault_latched", "service", {"code": "key_missing"})])[0].seq == 8
    journal.close()
    assert verify(path, path.with_name("seal.key")).last_seq == 8


def test_a_boot_id_serves_one_start(path: Path) -> None:
    key = path.with_name("seal.key")
    boot = bytes(16)
    journal = Journal.open(path, key, clock=VirtualClock(), boot_id=boot)
    journal.append(FACTS)
    journal.close()
    with pytest.raises(ValueError, match="boot id"):
        Journal.open(path, key, clock=VirtualClock(), boot_id=boot)
    log = in_memory()
    with pytest.raises(ValueError, match="boot id"):
        MemoryJournal(VirtualClock(), boot_id=BOOT, past=log)
    again = MemoryJournal(VirtualClock(), boot_id=boot, past=log)
    again.append(FACTS)
    assert (again.verify().ok, again.last_seq, again.journal_id) == (True, 13, OWN_ID)
    assert [e.boot for e in again.entries(6)] == [BOOT, *[boot] * 6]
