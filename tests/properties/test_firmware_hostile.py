"""Whatever a device answers, a firmware job neither fails nor storms, and its end can be printed."""

import json
from functools import partial
from random import Random

import cbor2
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge import smp
from firmware_bridge.firmware import jobs
from firmware_bridge.firmware.host import Ended, FirmwareHost
from firmware_bridge.firmware.upload import upload
from firmware_bridge.link import Done, Send
from tests.properties.test_devices_managed_hostile import values
from tests.support.firmware import IMAGE

KEYS = [
    "r", "rc", "err", "images", "off", "match", "buf_size", "serial", "product", "boot", "hash", "bootloader",
]  # fmt: skip
slots = st.fixed_dictionaries(
    {"slot": st.integers(0, 1) | values, "version": st.text(max_size=3) | values},
    optional={
        "hash": st.just(bytes.fromhex(IMAGE.hash)) | values,
        "image": st.integers(0, 1),
        **dict.fromkeys(("active", "confirmed", "pending", "permanent"), st.booleans() | values),
    },
)
bodies = st.dictionaries(st.sampled_from(KEYS), values, max_size=4) | st.fixed_dictionaries(
    {}, optional={"images": st.lists(slots, max_size=3), "off": st.integers(-1, 3000), "match": st.booleans()}
)
JOBS = {
    "identify": jobs.identify,
    "list": jobs.list_images,
    "confirm": jobs.confirm,
    "reset": jobs.reset,
    "upload": partial(upload, image=IMAGE),
}
RIGHT = {(64, 0): {"serial": "S", "product": "SIM-SHOE", "boot": 1}, (0, 6): {"buf_size": 200}}


@settings(max_examples=150)
@given(st.sampled_from(sorted(JOBS)), st.lists(bodies | st.none(), max_size=30), st.lists(bodies, max_size=2))
def test_a_job_ends_whatever_is_answered(name, answers, greeting):
    """The greeting's nonce is answered right, else nothing begins; at the end the device falls silent."""
    host = FirmwareHost(JOBS[name], Random(1), packets=True)
    now, sent, end = 0.0, 0, None
    out = list(host.start(now))
    hostile, first = iter(answers), iter(greeting)
    while end is None:
        sends = [o for o in out if isinstance(o, Send)]
        ends = [o for o in out if isinstance(o, Ended)]
        out = []
        if ends:
            (end,) = ends
            break
        for send in sends:
            sent += 1
            asked = smp.decode(send.data)
            if (asked.group, asked.command) == (0, 0):
                body = {"r": asked.body["d"]}
            elif (what := (asked.group, asked.command)) in RIGHT:
                body = next(first, RIGHT[what])
            else:
                body = next(hostile, None)
            if body is not None:
                raw = cbor2.dumps(body)
                head = bytes([send.data[0] | 1, 0]) + len(raw).to_bytes(2, "big") + send.data[4:8]
                out += host.feed(head + raw, now)
        if not out:
            due = host.deadline()
            assert due is not None, "it waits for nothing"
            now = max(now, due)
            out += host.tick(now)
        assert sent < 3000
        if now > 5000:  # greeted again and again by who is not awaited: its patience ends it
            raise AssertionError("it never ends")
    if isinstance(end.outcome, Done):
        json.dumps(end.outcome.answer)
