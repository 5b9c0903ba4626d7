"""What we send and what the simulated device answers, read by the public `smp` package, which is strict."""

from functools import partial

import cbor2
from hypothesis import given, settings
from hypothesis import strategies as st
from smp import error, header, image_management, os_management, packet

from firmware_bridge import smp as ours
from firmware_bridge.firmware import image, jobs, messages
from firmware_bridge.firmware.upload import upload
from firmware_bridge.framing import smp_console
from simulators.models.firmware import build
from tests.support.firmware import World

REQUESTS = {
    (2, 0, 0): os_management.EchoWriteRequest,
    (2, 0, 5): os_management.ResetWriteRequest,
    (0, 0, 6): os_management.MCUMgrParametersReadRequest,
    (0, 1, 0): image_management.ImageStatesReadRequest,
    (2, 1, 0): image_management.ImageStatesWriteRequest,
    (2, 1, 1): image_management.ImageUploadWriteRequest,
}
ANSWERS = {
    (3, 0, 0): os_management.EchoWriteResponse,
    (3, 0, 5): os_management.ResetWriteResponse,
    (1, 0, 6): os_management.MCUMgrParametersReadResponse,
    (1, 1, 0): image_management.ImageStatesReadResponse,
    (3, 1, 0): image_management.ImageStatesWriteResponse,
    (3, 1, 1): image_management.ImageUploadWriteResponse,
}
ERRORS = {
    0: (os_management.OSManagementErrorV1, os_management.OSManagementErrorV2),
    1: (image_management.ImageManagementErrorV1, image_management.ImageManagementErrorV2),
}


def theirs(frame):
    """The packet of a console frame, as the package reads it."""
    decoder = packet.decode()
    next(decoder)
    try:
        for line in frame.splitlines(keepends=True):
            decoder.send(line)
    except StopIteration as done:
        return done.value
    raise AssertionError("no whole packet")


def check(frame, kinds):
    """Read it with the class that it must be of; group 64 is ours and unknown to them."""
    data = theirs(frame)
    head = header.Header.loads(data[:8])
    if head.group_id == 64:
        return None
    body = cbor2.loads(data[8:])
    if "err" in body or "rc" in body:
        return ERRORS[head.group_id]["err" in body].loads(data)
    return kinds[head.op, head.group_id, head.command_id].loads(data)


@settings(max_examples=25)
@given(
    size=st.integers(0, 3000),
    buffer=st.sampled_from([None, 72, 96, 128, 200, 384, 1036]),
    old=st.booleans(),
    refused=st.none() | st.integers(1, 4),
)
def test_every_request_of_ours_and_every_answer_of_the_device(size, buffer, old, refused):
    w = World(buffer=buffer, old_errors=old)
    answers = []
    w.wire.up = lambda frame: answers.append(frame) or [(0.0, frame)]
    made = image.read(build("3.2.1", "SIM-SHOE", bytes(size)))
    if refused:
        w.device.traps.set("upload_refused", refused)
    for job in (jobs.list_images, partial(upload, image=made), jobs.reset, jobs.confirm):
        w.do(job)
    w.do(partial(jobs.echo, text="hällo"))
    asked = [check(frame, REQUESTS) for frame in w.wire.sent]
    for frame in answers:
        check(frame, ANSWERS)
    packets = [r for r in asked if isinstance(r, image_management.ImageUploadWriteRequest)]
    if not refused:
        assert b"".join(p.data for p in packets) == made.data
        assert packets[0].len == len(made.data)
        assert packets[0].sha in {None, made.session}
    limit = 384 if buffer is None else buffer
    assert all(len(p.BYTES) + 4 <= limit for p in packets)


states = st.builds(
    image_management.ImageState,
    slot=st.integers(0, 1),
    version=st.text(max_size=12),
    image=st.none() | st.integers(0, 3),
    hash=st.none() | st.binary(min_size=32, max_size=32),
    **dict.fromkeys(("bootable", "pending", "confirmed", "active", "permanent"), st.none() | st.booleans()),
)


@settings(max_examples=50)
@given(st.lists(states, max_size=4), st.integers(0, 255))
def test_every_list_that_they_can_write_is_read(found, sequence):
    made = image_management.ImageStatesReadResponse(images=found, sequence=sequence)
    (item,) = smp_console.Decoder().feed(b"".join(packet.encode(made.BYTES)))
    message = ours.decode(item.data)
    assert (message.group, message.command, message.sequence) == (1, 0, sequence)
    read = messages.slots(message.body)
    assert [(s.image, s.slot, s.version, s.hash) for s in read] == [
        (s.image or 0, s.slot, s.version, None if s.hash is None else s.hash.hex()) for s in found
    ]
    assert [s.flags for s in read] == [
        [n for n in ("active", "confirmed", "pending", "permanent") if getattr(s, n)] for s in found
    ]


def test_every_error_of_theirs_has_words():
    for code in image_management.IMG_MGMT_ERR:
        assert not messages.meaning({"err": {"group": 1, "rc": code}}, 1, code).startswith("error ")
    for code in error.MGMT_ERR:
        words = messages.meaning({"rc": code}, 1, code)
        assert words.startswith("error ") == (code >= error.MGMT_ERR.EPERUSER)
    assert messages.meaning({"err": {"group": 1, "rc": 9}}, 1, 9).startswith("no free slot")
