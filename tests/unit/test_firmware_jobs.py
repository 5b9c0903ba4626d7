"""Firmware management against the simulated device under a virtual clock."""

import json
from functools import partial
from pathlib import Path

import pytest

from firmware_bridge import smp
from firmware_bridge.firmware import image, jobs
from firmware_bridge.firmware.host import Printed
from firmware_bridge.firmware.upload import upload
from firmware_bridge.link import Done, Refused, Unknown
from simulators.models.firmware import Flash, build
from tests.support.firmware import IMAGE, NEW, OLD, World, told

PENDING = Done({"version": "1.2.0", "hash": IMAGE.hash, "sent": len(NEW), "state": "pending"})
VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "managed.json").read_text())
GOLDEN = {vector["name"]: bytes.fromhex(vector["packet"]) for vector in VECTORS}
PACKETS = 7
"""An upload of NEW in packets of 384 bytes."""


def firmware(world):
    return world.do("identify").answer["firmware"]


def flags(end):
    return [(slot["version"], slot["flags"]) for slot in end.answer["images"]]


def test_upload_reset_confirm_is_told_by_the_device_alone():
    w = World()
    assert firmware(w) == "1.0.0"
    assert w.do("upload") == PENDING
    assert firmware(w) == "1.0.0", "an upload changes nothing that runs"
    assert w.progress == sorted(set(w.progress))
    assert w.progress[-1] == len(NEW)
    assert flags(w.do("list")) == [("1.0.0", ["active", "confirmed"]), ("1.2.0", ["pending"])]
    assert w.do("reset") == Done(
        {
            "boot": 2, "firmware": "1.2.0", "version": "1.2.0", "hash": IMAGE.hash, "confirmed": False,
            "restarted": True,
        }
    )  # fmt: skip
    assert flags(w.do("list")) == [("1.2.0", ["active"]), ("1.0.0", ["confirmed"])]
    assert flags(w.do("confirm")) == [("1.2.0", ["active", "confirmed"]), ("1.0.0", [])]
    assert w.do("reset").answer["firmware"] == "1.2.0"
    assert w.do("upload").answer["state"] == "running"


def test_an_image_that_is_not_confirmed_is_gone_after_the_next_restart():
    w = World()
    w.do("upload")
    assert w.do("reset").answer["firmware"] == "1.2.0"
    assert w.do("reset").answer["firmware"] == "1.0.0"


def test_i34_a_device_that_says_yes_and_keeps_the_old_image_is_found_out():
    w = World()
    w.device.flash.traps.set("keep_old")
    w.do("upload")
    end = w.do("reset")
    assert isinstance(end, Refused)
    assert end.code == "other_image"
    assert end.name.startswith(f"1.2.0 ({IMAGE.hash}) was to run; what runs: 1.0.0 (")


def test_only_what_runs_is_confirmed_and_only_once_it_was_tried():
    w = World()
    w.do("upload")
    end = w.do(partial(jobs.confirm, wanted=IMAGE.hash[:8]))
    assert (end.code, "1.0.0" in end.name) == ("not_running", True)
    w.do("reset")
    assert isinstance(w.do(partial(jobs.confirm, wanted=IMAGE.hash[:8])), Done)
    assert w.device.flash.trial is False


def test_i34_a_confirmation_counts_when_the_device_lists_it():
    w = World()
    w.do("upload")
    w.do("reset")
    w.device.images.set_state = w.device.images.state
    end = w.do("confirm")
    assert (end.code, "is not confirmed; what runs: 1.2.0" in end.name) == ("not_confirmed", True)


def test_an_upload_while_an_image_is_on_trial_would_erase_the_way_back():
    w = World()
    w.do("upload")
    w.do("reset")
    erased, third = w.device.flash.erased, image.read(build("1.3.0", "SIM-SHOE"))
    w.device.images.erase_first = True
    end = w.do(partial(upload, image=third))
    assert (end.code, "confirm it, or reset" in end.name) == ("on_trial", True)
    assert w.device.flash.erased == erased


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"#!/bin/sh", "no firmware image"),
        (b"", "no firmware image"),
        (NEW[:-1], "cut off"),
        (NEW[:40], "cut off"),
        (NEW + b"x", "behind its end"),
        (NEW[:100] + b"\0" + NEW[101:], "SHA-256 does not fit"),
        (NEW[:8] + b"\x08\0" + NEW[10:], "cut off"),
    ],
)
def test_a_bad_file_is_refused_before_anything_is_sent(data, text):
    with pytest.raises(image.BadImage, match=text):
        image.read(data)


@pytest.mark.parametrize(
    ("data", "product", "says"),
    [
        (build("9.0.0", "SIM-SHUFFLER"), None, "for a SIM-SHUFFLER, the device is a SIM-SHOE"),
        (build("9.0.0", None), None, "does not say for which product"),
        (build("9.0.0", "SIM-SHUFFLER"), "SIM-SHUFFLER", "it is a SIM-SHOE, not a SIM-SHUFFLER"),
    ],
)
def test_field_23_a_foreign_image_is_refused_before_the_first_erase(data, product, says):
    w = World()
    w.device.images.erase_first = True
    end = w.do(partial(upload, image=image.read(data), product=product))
    assert (end.code, says in end.name, "nothing was sent" in end.name) == ("foreign", True, True)
    assert (w.device.flash.erased, w.uploads) == (0, [])


@pytest.mark.parametrize("buffer", [None, 72, 101, 128, 384, 1036])
def test_field_23_a_device_that_erases_first_gets_a_whole_header_in_the_first_packet(buffer):
    w = World(buffer=buffer)
    w.device.images.erase_first = True
    assert w.do("upload") == PENDING
    first = w.uploads[0].body
    assert (first["off"], first["len"], len(first["data"]) >= 32) == (0, len(NEW), True)
    assert w.device.flash.erased == 1


def test_no_packet_is_larger_than_the_device_takes_and_no_header_is_cut():
    w = World(buffer=64)
    end = w.do("upload")
    assert (end.code, w.uploads) == ("small_buffer", [])


def test_a_device_that_says_nonsense_of_its_buffer_gets_the_default():
    w = World(buffer=384)
    w.device._commands[0, 6, 0] = lambda _: {"buf_size": "many"}
    assert w.do("upload") == PENDING


def test_an_image_that_arrives_damaged_is_never_marked():
    w = World()
    w.device.flash.traps.set("spoil")
    end = w.do("upload")
    assert isinstance(end, Refused)
    assert end.code == "damaged"
    assert w.device.flash.other is None


def test_the_golden_image_is_read_sent_and_held_as_the_document_says():
    opening = smp.decode(GOLDEN["upload of a whole image"])
    made = image.read(opening.body["data"])
    assert (made.version, made.product) == ("1.2.0", "SIM-SHOE")
    assert bytes.fromhex(made.hash) == smp.decode(GOLDEN["try at the next restart"]).body["hash"]
    w = World(packets=True)
    w.wire.up = lambda frame: answers.append(frame) or [(0.0, frame)]
    answers = []
    assert w.do(partial(upload, image=made)).answer["state"] == "pending"
    w.do("reset")
    w.do("confirm")
    for name in ("upload of a whole image", "images", "try at the next restart", "make what runs stay"):
        golden = smp.decode(GOLDEN[name])
        assert golden.body in [m.body for m in map(smp.decode, w.wire.sent) if m.key[:2] == golden.key[:2]], (
            name
        )
    assert smp.decode(GOLDEN["upload answer"]).body in [smp.decode(frame).body for frame in answers]
    w = World(packets=True, flash=False)
    w.wire.up = lambda frame: answers.append(frame) or [(0.0, frame)]
    assert w.do("list") == Refused("8", "not supported")
    assert answers[-1][:6] + answers[-1][7:] == GOLDEN["group missing"][:6] + GOLDEN["group missing"][7:]


# Restarts


@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("packet", range(1, PACKETS + 1))
def test_field_24_a_restart_at_every_packet_ends_with_the_whole_image(packet, when, remembers):
    """Whether the device knows how far it was, and where it starts again, is told."""
    w = World(buffer=None, flash=Flash(OLD, remembers=remembers))
    w.device.traps.set("upload_reboot", packet, when)
    assert w.do("upload") == PENDING
    assert w.device.flash.other.data == NEW
    assert w.device.machine.boot == 2
    finished = (packet, when) == (PACKETS, "after")
    held = packet - (when == "before") if remembers else packet - 1  # else: as far as was answered
    if held < 2 or finished:
        assert not any(": the upload" in text for text in w.told)
    elif remembers:
        assert w.told[-1].endswith("bytes of this image already: the upload goes on there")
        assert w.progress == sorted(w.progress)
    else:
        assert w.told[-1].endswith("nothing of this image any more: the upload starts again at zero")


def test_field_25_what_runs_after_a_disconnect_is_asked_and_not_assumed():
    """The reset is never answered, since the device is gone at once; it comes back with what it had."""
    w = World()
    w.do("upload")
    w.device.flash.traps.set("keep_old")
    w.wire.up = lambda frame: [] if (told(frame).group, told(frame).command) == (0, 5) else [(0.0, frame)]
    assert w.do("reset").code == "other_image"


def test_field_27_a_watchdog_in_a_long_erase_is_a_break_and_no_failure():
    w = World(flash=Flash(OLD, erase_s=65.0))
    w.device.traps.set("watchdog", 1, 5.0)
    assert w.do("upload") == PENDING
    assert (w.device.machine.boot, w.device.flash.erased) == (2, 2)


def test_field_27_a_device_that_restarts_at_every_erase_is_given_up_with_the_truth():
    w = World(flash=Flash(OLD, erase_s=65.0))
    w.device.traps.set("watchdog", None, 5.0)
    end = w.do("upload")
    assert isinstance(end, Unknown)
    assert "no answer within 30 s" in end.reason
    assert w.device.flash.other is None


def test_a_slow_erase_is_waited_for():
    w = World(flash=Flash(OLD, erase_s=65.0))
    assert w.do("upload") == PENDING
    assert w.device.flash.erased == 1


def test_a_device_that_takes_nothing_more_is_given_up():
    w = World(buffer=None)
    take = w.device.images.upload
    w.device.images.upload = lambda body: take(body) if body["off"] == 0 else {"off": 300}
    end = w.do("upload")
    assert isinstance(end, Unknown)
    assert f"of {len(NEW)} bytes" in end.reason


def test_a_device_that_forgets_an_upload_is_asked_who_it_is_before_it_starts_again():
    w = World(buffer=None)
    take = w.device.images.upload
    packets = []

    def forget(body):
        packets.append(body["off"])
        if len(packets) == 4:
            w.device.flash._forget()
        return take(body)

    w.device.images.upload = forget
    assert w.do("upload") == PENDING
    assert w.told == [
        "the device is back at byte 0 of the upload; asking who is there",
        "the device has nothing of this image any more: the upload starts again at zero",
    ]


def test_a_device_that_says_it_has_more_than_it_got_is_not_believed():
    w = World(buffer=None)
    take = w.device.images.upload
    w.device.images.upload = lambda body: {"off": take(body)["off"] + 400 * (body["off"] == 656)}
    assert w.do("upload") == PENDING
    assert any("an answer that makes no sense: it has" in o.text for o in w.log if isinstance(o, Printed))
    assert w.told[0] == "no answer within 3 s; asking who is there"


def test_a_device_that_never_comes_back_is_unknown():
    w = World()
    w.device.traps.set("silent", 8)
    end = w.do("reset")
    assert isinstance(end, Unknown)
    assert "not there again within 120 s: it does not answer" in end.reason


def test_a_device_that_says_yes_to_a_reset_and_does_not_restart():
    w = World()
    w.device._commands[0, 5, 2] = lambda _: {}
    end = w.do("reset")
    assert isinstance(end, Unknown)
    assert "it answers and has not restarted" in end.reason


# Bootloaders


def test_i37_another_device_on_the_port_after_a_restart_is_no_success():
    w = World()
    w.do("upload")
    w.device.flash.boot = lambda: w.device._identity.update(serial="SH0002")
    end = w.do("reset")
    assert isinstance(end, Unknown)
    assert "another device answers there, with serial number SH0002" in end.reason


@pytest.mark.parametrize("tells", [True, False])
def test_i37_a_device_that_stays_in_its_bootloader_is_no_success_and_can_be_rescued(tells):
    w = World()
    w.device.tells = tells
    w.do("upload")
    w.device.flash.traps.set("stay_in_bootloader", 1)
    end = w.do("reset")
    assert isinstance(end, Unknown)
    assert end.reason.endswith("its bootloader answers, and no image runs")
    who = w.do("identify").answer
    assert (who["serial"], who["bootloader"]) == (("SH0001", True) if tells else (None, False))
    assert w.do("confirm").code == "nothing_runs"
    rescue = partial(upload, image=image.read(build("1.3.0", "SIM-SHOE")))
    if not tells:
        refused = w.do(rescue)
        assert (refused.code, "--product" in refused.name) == ("foreign", True)
        rescue = partial(rescue, product="SIM-SHOE")
    assert w.do(rescue).answer["state"] == "stored"
    done = w.do("reset")
    assert (done.answer["version"], done.answer["firmware"]) == ("1.3.0", "1.3.0")


def test_i37_an_upload_that_ends_in_the_bootloader_waits_for_the_device():
    w = World(buffer=None)
    w.device.traps.set("upload_reboot", 3, "before")
    w.device.flash.traps.set("stay_in_bootloader", 1)
    end = w.do("upload")
    assert isinstance(end, Unknown)
    assert "its bootloader answers" in end.reason


# What a device may refuse, or be without


@pytest.mark.parametrize(
    ("old_errors", "code", "name"), [(False, "12", "not written"), (True, "1", "unknown")]
)
def test_a_refused_packet_ends_the_upload_and_names_the_cause(old_errors, code, name):
    w = World(old_errors=old_errors)
    w.device.traps.set("upload_refused", 2)
    end = w.do("upload")
    assert (type(end), end.code, name in end.name) == (Refused, code, True)


@pytest.mark.parametrize("old_errors", [False, True])
def test_a_device_without_images_says_so(old_errors):
    w = World(flash=False, old_errors=old_errors)
    assert w.do("list") == Refused("8", "not supported")
    assert w.do("identify").answer["running"] is None
    assert w.do(partial(jobs.echo, text="hello")) == Done({"text": "hello"})
    assert w.do("reset").answer["boot"] == 2


def test_a_device_that_is_not_ours_is_managed_and_its_restart_is_its_word():
    w = World()
    del w.device._commands[64, 0, 0]
    assert w.do("identify").answer["product"] is None
    foreign = partial(upload, image=image.read(build("2.0.0", None)))
    assert w.do(foreign).answer["state"] == "pending"
    done = w.do("reset").answer
    assert (done["version"], done["boot"], done["restarted"]) == ("2.0.0", None, None)


def test_banners_and_log_lines_are_for_people():
    w = World(banner="*** Booting Zephyr OS ***\r\n\x06\x09junk\r\n")
    w.device.traps.set("chatter")
    w.do("upload")
    assert w.do("reset").answer["version"] == "1.2.0"
    printed = [o.text for o in w.log if isinstance(o, Printed)]
    assert "*** Booting Zephyr OS ***" in printed
    assert any("<inf> main: request" in text for text in printed)


def test_a_line_that_gives_back_what_is_sent_answers_nothing():
    w = World()
    w.wire.down = lambda frame: [(0.0, frame)] if w.host.endpoint.to_controller.add(frame) is None else []
    assert w.do("upload") == PENDING
    assert w.do("reset").answer["version"] == "1.2.0"
