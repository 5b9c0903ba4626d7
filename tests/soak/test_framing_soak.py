"""A thousand million bytes of junk a codec: no good frame is hidden, no buffer grows, nothing is raised."""

from __future__ import annotations

import os
from random import Random

import pytest

from firmware_bridge.framing import Garbage
from tests.support.streams import CODECS, held, hostile, is_subsequence

FUZZED = int(os.environ.get("CUTCARD_FUZZ_BYTES", "1000000000"))
SEED = os.environ.get("CUTCARD_FUZZ_SEED", "soak")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("codec", CODECS, ids=lambda c: c.name)
def test_junk(codec):
    decoder = codec.decoder()
    for chunks, good in hostile(codec, Random(f"{SEED}/{codec.name}"), FUZZED):
        items = []
        for chunk in chunks:
            items += decoder.feed(chunk)
        assert held(decoder) <= codec.slack
        assert is_subsequence(good, codec.found(items)), good
        assert all(len(item.data) <= 64 for item in items if isinstance(item, Garbage))
