"""An upload that is interrupted anywhere ends in a state that the device and this end agree on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge import smp
from firmware_bridge.link import Done, Refused, Unknown
from simulators.models.firmware import Flash
from tests.support.firmware import IMAGE, NEW, OLD, UPLOADS, World, told

PACKETS = 7
"""An upload of NEW in packets of 384 bytes."""
LINE = b"[00:00:07.000] <wrn> fan: slow\r\n"


def broken_line(frame):
    """A log line in the middle of a frame's first line."""
    middle = min(40, len(frame) // 2)
    return [(0.0, frame[:middle] + LINE + frame[middle:])]


BREAKS = {
    "request lost": lambda w, up, frame: [] if not up else None,
    "answer lost": lambda w, up, frame: [] if up else None,
    "answer twice": lambda w, up, frame: [(0.0, frame)] * 2 if up else None,
    "answer late": lambda w, up, frame: [(40.0, frame)] if up else None,
    "log line inside": lambda w, up, frame: broken_line(frame) if up and not w.packets else None,
    "log line before": lambda w, up, frame: [(0.0, LINE + frame)] if up and not w.packets else None,
    "restart before": lambda w, up, frame: None if up else w.device.machine.power_cut(0.2) or [],
    "restart after": lambda w, up, frame: w.device.machine.power_cut(0.2) or [] if up else None,
    "unplugged before": lambda w, up, frame: None if up else w.unplug(0.5) or [],
    "unplugged after": lambda w, up, frame: w.unplug(0.5) or [] if up else None,
    "unplugged for long": lambda w, up, frame: None if up else w.unplug(30.0, power=True) or [],
}


class Meddling:
    """Breaks the upload packets and answers whose number is in `plan`, the answers at `marks` too."""

    def __init__(self, world, plan):
        self.world, self.plan = world, plan
        self.seen = {True: 0, False: 0}
        world.wire.up = lambda frame: self.meddle(frame, up=True)
        world.wire.down = lambda frame: self.meddle(frame, up=False)

    def meddle(self, frame, *, up):
        message = told(frame, packets=self.world.packets)
        mark = message.op in {smp.Op.WRITE, smp.Op.WRITE_ANSWER} and (message.group, message.command) == (
            1,
            0,
        )
        if (message.group, message.command) != UPLOADS and not mark:
            return [(0.0, frame)]
        self.seen[up] += 1
        name = self.plan.get(self.seen[up])
        bent = None if name is None else BREAKS[name](self.world, up, frame)
        return [(0.0, frame)] if bent is None else bent


def agree(world, end):
    """What was said of the end is what is in the flash."""
    flash = world.device.flash
    held = flash.other is not None and flash.other.data == NEW
    if isinstance(end, Done) and end.answer["state"] == "running":
        assert flash.running.data == NEW
        assert flash.trial
    elif isinstance(end, Done):
        assert (end.answer["state"], held, flash.pending) == ("pending", True, "test")
        assert flash.running.data == OLD
    else:
        assert isinstance(end, Refused | Unknown)


@pytest.mark.parametrize(("packets", "remembers"), [(False, False), (True, True)], ids=["console", "usb"])
@pytest.mark.parametrize("name", BREAKS)
def test_one_break_at_any_packet_or_at_the_mark_costs_time_and_no_image(name, packets, remembers):
    for number in range(1, PACKETS + 2):
        w = World(packets=packets, buffer=None, flash=Flash(OLD, remembers=remembers))
        Meddling(w, {number: name})
        end = w.do("upload")
        assert isinstance(end, Done), (number, end, w.told)
        agree(w, end)


breaks = st.dictionaries(st.integers(1, 24), st.sampled_from(sorted(BREAKS)), max_size=8)


@settings(max_examples=40)
@given(plan=breaks, packets=st.booleans(), remembers=st.booleans(), erase_s=st.sampled_from([0.0, 2.0, 45.0]))
def test_any_breaks_end_in_agreement_and_the_next_upload_completes_it(plan, packets, remembers, erase_s):
    w = World(packets=packets, buffer=None, flash=Flash(OLD, remembers=remembers, erase_s=erase_s))
    Meddling(w, plan)
    agree(w, w.do("upload"))
    w.wire.up = w.wire.down = lambda frame: [(0.0, frame)]
    again = w.do("upload")
    assert isinstance(again, Done)
    agree(w, again)
    assert again.answer["hash"] == IMAGE.hash


@settings(max_examples=30)
@given(
    noise=st.lists(
        st.tuples(st.sampled_from(["before", "after", "split"]), st.binary(max_size=200)), max_size=12
    )
)
def test_random_chatter_around_and_inside_frames(noise):
    w = World(buffer=None)
    turns = iter(noise)

    def meddle(frame):
        where, data = next(turns, ("before", b""))
        at = {"before": 0, "after": len(frame), "split": len(frame) // 2}[where]
        return [(0.0, frame[:at] + data + frame[at:])]

    w.wire.up = meddle
    agree(w, w.do("upload"))
    assert isinstance(w.do("upload"), Done), "the noise is over by now"
