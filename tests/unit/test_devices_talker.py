"""The session that drivers of talking devices share: link events, silence, gaps, the end of all."""

import re
from random import Random

import pytest

from devices.base import Resume, Setup
from devices.events import CardDrawn
from devices.talker import TakesNoCommand, Talker
from firmware_bridge.framing.patterns import Decoder, Match
from firmware_bridge.link import Complete, NotSent


class Plain(Talker[Match]):
    """A card a line, without anything else."""

    def __init__(self, setup, **more):
        super().__init__(setup, Decoder(re.compile(rb"(..)\n"), 3), 0.5, **more)

    def told(self, frame, now):
        yield self.event(CardDrawn, now, card=frame[1].decode())


class PlainControlled(TakesNoCommand, Plain): ...


def plain(n=0, **more):
    return Plain(Setup("dev", Random(1), Resume(n)), **more)


def kinds(outputs):
    return [event.kind for event in outputs]


def test_a_session_begins_and_ends_and_says_when_something_may_be_lost_in_between():
    driver = plain()
    assert kinds(driver.start(0.0)) == ["link_up"]
    assert kinds(driver.feed(b"8S\nxxA", 1.0)) == ["card_drawn"]
    ended = driver.lost("unplugged", 1.1)
    assert kinds(ended) == ["frame_rejected", "link_down"]
    assert [e.n for e in ended] == [3, 4]
    assert (ended[0].raw, ended[0].bytes, ended[1].reason) == (b"xxA", 3, "unplugged")
    assert driver.deadline() is None
    assert kinds(driver.start(2.0)) == ["link_up", "gap_possible"]
    assert kinds(plain(7).start(0.0)) == ["link_up", "gap_possible"]


def test_where_the_device_numbers_its_frames_a_new_session_alone_is_no_gap():
    driver = plain(7, numbered=True)
    assert kinds(driver.start(0.0)) == ["link_up"]
    driver.lost("unplugged", 1.0)
    assert kinds(driver.start(2.0)) == ["link_up"]


def test_a_decoder_has_no_link_to_report():
    driver = plain(7, live=False)
    assert [*driver.start(0.0), *driver.lost("end of input", 1.0)] == []


@pytest.mark.parametrize("woken", [True, False])
def test_silence_gives_up_what_is_under_way_also_when_nobody_ticked(woken):
    driver = plain()
    assert driver.feed(b"8", 0.0) == []
    assert driver.deadline() == 0.5
    assert driver.tick(0.4) == []
    out = list(driver.tick(0.5)) if woken else []
    out += driver.feed(b"S\n", 0.6)
    assert kinds(out) == ["frame_rejected"]
    assert kinds(driver.feed(b"9S\n", 0.7)) == ["frame_rejected", "card_drawn"]
    assert driver.deadline() is None
    assert driver.counters.frames == 1
    assert driver.ack(3, 0.8) == []


def test_the_reading_form_has_no_command_and_the_other_refuses_each():
    assert not hasattr(Plain, "command")
    ended = PlainControlled(Setup("dev", Random(1))).command("c1", "lock", {}, 0.0)
    assert ended == [Complete("c1", NotSent("this device takes no commands"))]
