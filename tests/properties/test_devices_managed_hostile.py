"""Whatever a device answers, the driver neither fails nor storms; nothing is lost or told twice."""

from random import Random
from typing import Any

import cbor2
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.base import Resume, Setup
from devices.events import DeviceEvent, FrameRejected, GapPossible, to_json
from devices.registry import load
from firmware_bridge.framing import smp_console
from firmware_bridge.link import Complete, Send
from firmware_bridge.smp import BODY_LIMIT

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2**33), st.text(max_size=4), st.binary(max_size=17),
    st.floats(),
    st.sampled_from([cbor2.CBORTag(0, "2026-01-01T00:00:00Z"), cbor2.CBORTag(35, "a*"), cbor2.undefined]),
    st.builds(
        cbor2.CBORTag,
        st.sampled_from([1, 2, 4, 30, 36, 37, 257, 258, 260, 70000]),
        st.none() | st.integers() | st.text(max_size=2) | st.binary(max_size=4) | st.just([1, 2]),
    ),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3) | st.integers(0, 3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
KEYS = [
    "r", "rc", "err", "group", "boot", "oldest", "next", "events", "n", "k", "c", "b", "token", "cycle",
    "settings", "crc", "class", "serial", "vendor", "product", "firmware", "protocol", "locked", "lid",
]  # fmt: skip
entries = st.fixed_dictionaries(
    {"n": st.integers(1, 12), "k": st.sampled_from(["card", "cut", "lid", "done", "out", "fault", "?"])},
    optional=dict.fromkeys(
        ("c", "b", "x", "up", "open", "token", "composition", "code", "name", "on"), values
    ),
)
rings = st.fixed_dictionaries(
    {"boot": st.sampled_from([3, 4]), "oldest": st.integers(0, 9), "next": st.integers(0, 14),
     "events": st.lists(entries, max_size=6)}
)  # fmt: skip
bodies = st.dictionaries(st.sampled_from(KEYS), values, max_size=6)
RIGHT: dict[tuple[int, int], dict[str, Any]] = {
    (64, 0): {
        "vendor": "V", "product": "P", "serial": "S", "firmware": "1", "boot": 3, "protocol": 1,
        "class": "shoe",
    },
    (64, 1): {"settings": {}, "crc": 0},
    (67, 0): {"locked": False, "lid": False, "empty": False, "drawn": 1},
    (65, 0): {"boot": 3, "oldest": 1, "next": 1, "events": []},
}  # fmt: skip


def wire(request: bytes, raw: bytes) -> bytes:
    head = bytes([request[0] | 1, 0]) + len(raw).to_bytes(2, "big") + request[4:8]
    return smp_console.encode(head + raw)


class World:
    """Answers from a list of hostile bodies, right ones when it is empty."""

    def __init__(self, hostile: list[Any]) -> None:
        self.driver: Any = load("managed-shoe").controlled(Setup("shoe", Random(5), Resume(boot=3, seq=0)))
        self.hostile, self.now, self.sent, self.log = hostile, 0.0, 0, list[Any]()

    def run(self, seconds: float) -> None:
        self.act(self.driver.start(0.0))
        self.act(self.driver.command("call", "lock", {}, 0.0))
        for _ in range(2000):
            due = self.driver.deadline()
            if due is None or due > seconds:
                return
            self.now = max(self.now, due)
            self.act(self.driver.tick(self.now))
        raise AssertionError("the driver never comes to rest")

    def act(self, outputs: Any) -> None:
        todo = list(outputs)
        while todo:
            output = todo.pop(0)
            if not isinstance(output, Send):
                self.log.append(output)
                if isinstance(output, DeviceEvent):
                    to_json(output, at=None, masked=False)
                    todo += self.driver.ack(output.n, self.now)
                continue
            self.sent += 1
            assert self.sent < 3000, "a storm"
            (packet,) = smp_console.Decoder().feed(output.data)
            what = (int.from_bytes(packet.data[4:6], "big"), packet.data[7])
            if what == (0, 0):
                body: Any = {"r": cbor2.loads(packet.data[8:])["d"]}
            elif self.hostile:
                body = self.hostile.pop(0)
            else:
                body = RIGHT.get(what, {"locked": True})
            raw = body if isinstance(body, bytes) else cbor2.dumps(body)
            todo += self.driver.feed(wire(packet.data, raw[:BODY_LIMIT]), self.now)


@settings(max_examples=60)
@given(st.lists(st.one_of(bodies, rings, values, st.binary(max_size=30)), max_size=8))
def test_no_answer_breaks_the_driver_or_makes_it_storm(hostile: list[Any]) -> None:
    world = World(list(hostile))
    world.run(2.5)
    assert world.log, "nothing was told"
    assert len([o for o in world.log if isinstance(o, Complete)]) == 1
    assert len([o for o in world.log if isinstance(o, FrameRejected)]) <= 8


@settings(max_examples=60)
@given(st.binary(max_size=200), st.integers(0, 300))
def test_damaged_wires_decode_to_something(noise: bytes, at: int) -> None:
    ring = {**RIGHT[65, 0], "next": 2, "events": [{"n": 1, "k": "cut"}]}
    good = wire(bytes([8, 0, 0, 0, 0, 65, 7, 0]), cbor2.dumps(ring))
    damaged = good[:at] + noise + good[at:]
    results = []
    for chunks in ([damaged], [damaged[i : i + 1] for i in range(len(damaged))]):
        driver = load("managed-shoe").decoder(Setup("shoe", Random(1)))
        events = [e for chunk in chunks for e in driver.feed(chunk, 0.0)]
        results.append([to_json(e, at=None, masked=False) for e in [*events, *driver.lost("end", 0.0)]])
    assert results[0] == results[1]


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 8)), max_size=15), st.randoms(use_true_random=False)
)
def test_every_event_is_told_once_in_order_and_every_loss_counted(
    reads: list[tuple[int, int]], random: Random
) -> None:
    """Rings of any overlap: what was told plus what was counted missing is everything there ever was."""
    answers, first, last = [], 1, 0
    for lost, more in reads:
        last += more
        first = max(first, min(first + lost, last))
        held = [{"n": n, "t": 0, "k": "cut"} for n in range(first, last + 1)]
        random.shuffle(held)
        answers.append({"boot": 3, "oldest": first, "next": last + 1, "events": held})
    world = World([])
    world.act(world.driver.start(0.0))
    world.hostile = answers
    for _ in range(200):
        world.now += 0.5
        world.act(world.driver.tick(world.now))
        if not answers:
            break
    numbers = [o.seq for o in world.log if getattr(o, "kind", "") == "cut_card"]
    missing = sum(o.missing or 0 for o in world.log if isinstance(o, GapPossible))
    assert numbers == sorted(set(numbers))
    assert len(numbers) + missing == last
