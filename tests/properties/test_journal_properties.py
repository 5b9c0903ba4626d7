"""Properties of encoding, sealing and visibility."""

from __future__ import annotations

from typing import Any

import cbor2
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.factlog import MemoryJournal
from controller.record import Entry, encode, plain
from controller.render import entry_json, visible
from controller.seal import Sealer, padded_size
from controller.table.inputs import Fact
from firmware_bridge.clock import VirtualClock

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | text | st.binary(max_size=70)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
mappings = st.dictionaries(text, values, max_size=6)
names = st.from_regex(r"[a-z_]{1,40}", fullmatch=True)


def head(major: int, size: int) -> bytes:
    for code, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if size < 24:
            return bytes([major << 5 | size])
        if size < 1 << 8 * width:
            return bytes([major << 5 | code]) + size.to_bytes(width, "big")
    raise AssertionError(size)


def reference(value: Any) -> bytes:
    """RFC 8949 sections 3 and 4.2.1, written out: keys sorted by their encoded bytes."""
    match value:
        case None:
            return b"\xf6"
        case bool():
            return b"\xf5" if value else b"\xf4"
        case int():
            return head(0, value) if value >= 0 else head(1, -1 - value)
        case bytes():
            return head(2, len(value)) + value
        case str():
            return head(3, len(value.encode())) + value.encode()
        case list():
            return head(4, len(value)) + b"".join(map(reference, value))
        case _:
            pairs = sorted((reference(key), reference(item)) for key, item in value.items())
            return head(5, len(value)) + b"".join(key + item for key, item in pairs)


@given(mappings)
@settings(max_examples=50)
def test_the_encoding_is_deterministic_cbor(value: dict[str, Any]) -> None:
    encoded = encode(plain(value))
    assert encoded == reference(value) == cbor2.dumps(value, canonical=True)
    assert encoded == encode(plain(dict(reversed(value.items()))))
    assert cbor2.loads(encoded) == value


def test_long_and_wide_keys_are_in_bytewise_order() -> None:
    keys = ["z", "aa", "é", "b" * 23, "a" * 24, "a" * 255, "b" * 256, "日本", "zz"]
    value = dict.fromkeys(keys, 0)
    assert encode(plain(value)) == reference(value) == cbor2.dumps(value, canonical=True)


@given(st.dictionaries(names, values, min_size=1, max_size=30))
@settings(max_examples=30)
def test_padding_always_holds_the_value_and_it_comes_back(value: dict[str, Any]) -> None:
    assert len(encode(value)) <= padded_size(value)
    assert padded_size(value) % 64 == 0
    place = {"seq": 9, "kind": "k", "boot": bytes(16)}
    sealer = Sealer(bytes(32), bytes(16))
    sealed = sealer.seal(value, attempt=0, **place)
    assert len(sealed) == padded_size(value) + 20
    assert sealer.open(sealed, **place) == value


@given(st.lists(st.tuples(mappings, st.dictionaries(names, values, max_size=3)), max_size=5))
@settings(max_examples=30)
def test_facts_come_back_as_they_were_returned(written: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    log = MemoryJournal(VirtualClock(), boot_id=bytes(16), journal_id=bytes(16), key=bytes(32))
    entries = log.append([Fact("k", "shoe", data, sealed) for data, sealed in written])
    assert list(log.entries(1)) == entries
    assert [(e.fact.data, e.fact.sealed) for e in entries] == written
    assert log.verify().ok


def drawn(seq: int) -> Entry:
    return Entry(seq, Fact("card_drawn", "shoe", {}, {"card": "8S"}), 0, 0, bytes(16), b"", ("card",))


def said(seq: int, kind: str, data: dict[str, Any]) -> Entry:
    return Entry(seq, Fact(kind, "shoe", data), 0, 0, bytes(16), b"")


story = st.lists(
    st.tuples(st.just("card_drawn"), st.just(0))
    | st.tuples(st.just("exposed"), st.integers(0, 6))
    | st.tuples(st.just("collected"), st.integers(0, 8)),
    max_size=25,
)


@given(story)
def test_a_card_is_shown_once_exposed_or_collected(events: list[tuple[str, int]]) -> None:
    entries = []
    for seq, (kind, back) in enumerate(events, 1):
        if kind == "card_drawn":
            entries.append(drawn(seq))
        elif kind == "exposed":
            entries.append(said(seq, kind, {"seqs": [max(seq - back, 1), seq + 2]}))
        else:
            entries.append(said(seq, kind, {"from": max(seq - back, 1)}))
    expected = {
        s
        for s in range(1, len(events) + 4)
        for e in entries
        if (e.fact.kind == "exposed" and s in e.fact.data["seqs"])
        or (e.fact.kind == "collected" and e.fact.data["from"] <= s <= e.seq)
    }
    seen = visible(entries)
    assert {s for s in range(len(events) + 4) if s in seen} == expected
    for entry in entries:
        if entry.fact.kind == "card_drawn":
            shown = entry_json(entry, masked=entry.seq not in seen)["card"]
            assert shown == ("8S" if entry.seq in expected else None)
