"""The ReShuffled driver: vectors, options, commands, and what its answers prove and do not prove."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from devices.base import OptionError, Resume, Setup
from devices.events import DeviceEvent, to_json
from devices.shufflers.reshuffled import ERROR, SPEC
from firmware_bridge.framing.reshuffled import Style, encode
from firmware_bridge.link import Complete, Done, NotSent, Refused, Send, Unknown

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "reshuffled.json").read_text())
OK, E1 = b":OK#D736D92D\n", b":E1#9D09A985\n"
D1 = b":D1#841298C4\n"
ACCEPTED = Done({"accepted": True, "done": None})
MEANINGS = {
    "IN": ("command_seen", "init", []),
    "SH": ("command_seen", "shuffle", []),
    "XX": ("command_seen", "off", []),
    "D1": ("command_seen", "deal", ["1"]),
    "D12": ("command_seen", "deal", ["12"]),
    "A5": ("command_seen", "deal-each", ["5"]),
    "OK": ("command_done",),
    "E1": ("command_refused", "E1"),
    "E2": ("command_refused", "E2"),
}


def decode(*chunks: bytes, **options: Any) -> list[dict[str, Any]]:
    driver = SPEC.decoder(Setup("dealer", Random(1), options=options))
    events = [e for chunk in chunks for e in driver.feed(chunk, 0.0)]
    events += driver.lost("end of input", 0.0)
    return [to_json(e, at=None, masked=False) for e in events if isinstance(e, DeviceEvent)]


def told(event: dict[str, Any]) -> tuple[Any, ...]:
    rest = [event[key] for key in ("command", "args", "code") if key in event]
    return (event["kind"], *rest)


@pytest.mark.parametrize("profile", ["tolerant", "strict"])
@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda v: v["meaning"])
def test_every_vector_is_what_it_says_under_its_options_and_profile(vector, profile):
    raw = bytes.fromhex(vector["hex"])
    (event,) = decode(raw, profile=profile, **vector.get("options", {}))
    if vector["good"] and vector.get("profile", profile) == profile:
        word = raw[1 : raw.index(b"#")].decode("latin-1").rstrip("\x01\xfe")
        assert told(event) == MEANINGS[word]
        assert bytes.fromhex(event["raw"]) == raw
    elif vector["good"]:
        assert event["kind"] == "frame_rejected"
        assert event["reason"] in {"CRC without its leading zeros", "stray bytes after the answer"}
    elif profile == "strict":
        assert (event["kind"], event["reason"], event["bytes"]) == (
            "frame_rejected", vector["reason"], len(raw),
        )  # fmt: skip
    else:
        assert event["kind"] in {"frame_rejected", "chatter"}


@pytest.mark.parametrize(
    "vector", [v for v in VECTORS["vectors"] if "options" in v], ids=lambda v: v["meaning"]
)
def test_a_frame_of_the_other_reading_is_refused_by_default(vector):
    assert [e["kind"] for e in decode(bytes.fromhex(vector["hex"]))] == ["frame_rejected"]
    assert [e["kind"] for e in decode(OK, **vector["options"])] == ["frame_rejected"]


@pytest.mark.parametrize("stream", VECTORS["streams"], ids=lambda s: s["meaning"])
def test_field_32_free_text_on_the_data_line_is_chatter_and_hides_no_frame(stream):
    chunks = [bytes.fromhex(chunk) for chunk in stream["chunks"]]
    assert [e["kind"] for e in decode(*chunks)] == stream["told"]
    assert decode(b"".join(chunks)) == decode(*chunks)
    strict = [e["kind"] for e in decode(*chunks, profile="strict")]
    assert strict[-1] == stream["told"][-1]
    assert set(strict[:-1]) == {"frame_rejected"}


def test_what_a_tolerant_reader_let_pass_is_said():
    (short,) = decode(b":E2#400F83F\n")
    stray_vector = next(v for v in VECTORS["vectors"] if "two stray" in v["meaning"])
    (stray,) = decode(bytes.fromhex(stray_vector["hex"]))
    (plain,) = decode(OK)
    assert short["diag"] == ["short_crc"]
    assert stray["diag"] == ["accepted", "stray_bytes"]
    assert plain["diag"] == ["accepted"], "OK is not done"


def test_a_capture_tells_what_the_host_sent_from_what_the_machine_said():
    driver = SPEC.decoder(Setup("dealer", Random(1)))
    events = [*driver.feed_host(D1[:4], 0.0), *driver.feed(b":O", 0.1), *driver.feed_host(D1[4:], 0.2)]
    events += driver.feed(OK[2:], 0.3)
    assert [(e.kind, getattr(e, "args", None)) for e in events] == [
        ("command_seen", ("1",)),
        ("command_done", None),
    ]


def test_rejected_bytes_and_text_are_told_after_a_silence():
    driver = SPEC.decoder(Setup("dealer", Random(1)))
    assert driver.feed(b"Error", 1.0) == []
    assert driver.deadline() == pytest.approx(1.2)
    assert driver.tick(1.19) == []
    (chatter,) = driver.tick(1.2)
    assert (chatter.kind, chatter.text) == ("chatter", "Error")
    assert driver.deadline() is None


def test_bad_options_are_named():
    for name, value in (("profile", "lax"), ("crc_includes_hash", "maybe"), ("frame_end", "cr")):
        with pytest.raises(OptionError, match=f"{name} is one of .*not '{value}'"):
            SPEC.reader(Setup("dealer", Random(1), options={name: value}))


# Commands


def controlled(**options: Any) -> Any:
    driver = SPEC.controlled(Setup("dealer", Random(1), options=options))
    driver.start(0.0)
    return driver


def sent(outputs: Any) -> list[bytes]:
    return [o.data for o in outputs if isinstance(o, Send)]


def ends(outputs: Any) -> list[Any]:
    return [o.outcome for o in outputs if isinstance(o, Complete)]


def kinds(outputs: Any) -> list[str]:
    return [o.kind for o in outputs if isinstance(o, DeviceEvent)]


@pytest.mark.parametrize(
    ("name", "args", "data"),
    [
        ("init", {}, "IN"), ("shuffle", {}, "SH"), ("off", {}, "XX"), ("deal", {"n": "1"}, "D1"),
        ("deal", {"n": 9}, "D9"), ("deal", {"n": "05"}, "D5"), ("deal-each", {"n": "5"}, "A5"),
    ],
)  # fmt: skip
def test_a_command_is_one_frame_and_its_ok_means_accepted(name, args, data):
    driver = controlled()
    assert sent(driver.command("c", name, args, 1.0)) == [encode(data, Style())]
    assert ends(driver.feed(OK, 1.01)) == [ACCEPTED]


@pytest.mark.parametrize(("range_", "end"), [("false", "lf"), ("true", "lf"), ("false", "semicolon")])
def test_commands_and_answers_follow_the_options(range_, end):
    driver = controlled(crc_includes_hash=range_, frame_end=end)
    style = Style(crc_includes_hash=range_ == "true", end={"lf": b"\n", "semicolon": b";"}[end])
    assert sent(driver.command("c", "deal", {"n": "1"}, 1.0)) == [encode("D1", style)]
    assert ends(driver.feed(encode("OK", style), 1.01)) == [ACCEPTED]


@pytest.mark.parametrize("name", ["deal", "deal-each"])
def test_twelve_cards_are_no_frame_of_the_firmware_and_are_refused_before_a_byte_is_sent(name):
    driver = controlled()
    (end,) = driver.command("c", name, {"n": "12"}, 1.0)
    assert end == Complete("c", NotSent(
        f"the machine's firmware takes frames of 13 bytes only, and {name} 12 makes one of 14: "
        "ask for 1 to 9 cards at a time"
    ))  # fmt: skip
    assert sent(driver.command("d", "deal", {"n": "1"}, 1.0)) == [D1], "nothing is in its way"


def test_the_document_has_no_such_limit():
    assert sent(controlled(profile="strict").command("c", "deal", {"n": "12"}, 1.0)) == [b":D12#8658AA3C\n"]


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("deal", {"n": "0"}, "a number of cards from 1 to 99, not '0'"),
        ("deal", {"n": "100"}, "not '100'"),
        ("deal", {"n": "-1"}, "not '-1'"),
        ("deal", {"n": "٣"}, "a number of cards"),
        ("deal", {"n": "1" * 5000}, "a number of cards"),
        ("deal", {}, "deal takes n"),
        ("init", {"n": "1"}, "init takes no arguments"),
        ("eject", {}, "no command 'eject': it knows init, shuffle, deal, deal-each, off"),
    ],
)
def test_what_cannot_be_meant_is_not_sent(name, args, says):
    (end,) = controlled().command("c", name, args, 1.0)
    assert isinstance(end.outcome, NotSent)
    assert says in end.outcome.reason
    with pytest.raises(ValueError, match=r"takes|no command"):
        SPEC.check(name, args)


@pytest.mark.parametrize("code", range(1, 10))
def test_an_error_is_a_refusal_with_the_machines_own_code(code):
    driver = controlled()
    driver.command("c", "deal", {"n": "1"}, 1.0)
    assert ends(driver.feed(encode(f"E{code}", Style()), 1.01)) == [
        Refused(f"E{code}", "error without a published meaning")
    ]


def test_without_an_answer_a_deal_is_unknown_after_a_second_and_never_goes_out_again():
    for name, args in (("deal", {"n": "1"}), ("deal-each", {"n": "1"}), ("shuffle", {})):
        driver = controlled()
        assert len(sent(driver.command("c", name, args, 1.0))) == 1
        assert driver.tick(1.99) == []
        assert ends(driver.tick(2.0)) == [Unknown("no answer within 1 s")]
        for now in range(3, 60):
            assert driver.tick(float(now)) == []


@pytest.mark.parametrize("late", [1.0001, 2.0, 3.9])
def test_i26_a_late_ok_is_not_taken_for_the_answer_to_the_next_command(late):
    driver = controlled()
    driver.command("a", "deal", {"n": "1"}, 0.0)
    assert ends(driver.tick(1.0)) == [Unknown("no answer within 1 s")]
    assert sent(driver.command("b", "shuffle", {}, 1.0)) == [], "the line is held"
    outputs = driver.feed(OK, late)
    assert kinds(outputs) == ["frame_rejected"]
    assert ends(outputs) == []
    assert sent(outputs) == [encode("SH", Style())], "the late answer has come: the line is free"
    assert ends(driver.feed(E1, late + 0.01)) == [Refused("E1", "error without a published meaning")]


def test_a_line_is_held_three_seconds_for_an_answer_that_never_comes():
    driver = controlled()
    driver.command("a", "deal", {"n": "1"}, 0.0)
    driver.tick(1.0)
    driver.command("b", "shuffle", {}, 1.0)
    assert driver.deadline() == 4.0
    assert sent(driver.tick(3.99)) == []
    assert sent(driver.tick(4.0)) == [encode("SH", Style())]


@pytest.mark.parametrize("name", ["init", "off"])
def test_what_sets_a_state_goes_out_once_more_when_no_answer_can_be_under_way(name):
    driver = controlled()
    first = sent(driver.command("a", name, {}, 0.0))
    assert driver.tick(1.0) == [], "not the end yet"
    assert sent(driver.tick(4.0)) == first
    assert driver.counters.retries == 1
    assert ends(driver.tick(5.0)) == [Unknown("no answer within 1 s")]
    assert driver.tick(60.0) == []


def test_a_late_answer_lets_the_repeat_go_at_once_and_each_of_both_answers_counts_for_one():
    driver = controlled()
    driver.command("a", "init", {}, 0.0)
    driver.tick(1.0)
    outputs = driver.feed(OK, 1.5)
    assert (len(sent(outputs)), ends(outputs)) == (1, [])
    assert ends(driver.feed(OK, 1.6)) == [ACCEPTED]
    assert sent(driver.command("b", "deal", {"n": "1"}, 1.7)) == [D1]


def test_nothing_is_repeated_before_a_command_that_waits_or_after_a_loss():
    driver = controlled()
    driver.command("a", "init", {}, 0.0)
    driver.command("b", "deal", {"n": "1"}, 0.5)
    assert ends(driver.tick(1.0)) == [Unknown("no answer within 1 s")]
    assert sent(driver.tick(4.0)) == [D1]
    driver = controlled()
    driver.command("a", "init", {}, 0.0)
    outputs = driver.lost("the cable is out", 0.5)
    assert (ends(outputs), sent(outputs)) == ([Unknown("the cable is out")], [])
    driver.start(1.0)
    assert all(driver.tick(float(now)) == [] for now in range(2, 20))


def test_a_refused_repeat_leaves_it_unknown_for_the_first_may_have_been_carried_out():
    driver = controlled()
    driver.command("a", "init", {}, 0.0)
    driver.tick(1.0)
    assert sent(driver.tick(4.0)) != []
    (end,) = ends(driver.feed(E1, 4.5))
    assert end == Unknown("no answer within 1 s, and its repeat was refused (E1)")


def test_bytes_that_were_on_the_line_before_a_command_never_answer_it():
    driver = controlled()
    driver.command("a", "deal", {"n": "1"}, 1.0)
    outputs = driver.feed(OK, 1.0015)
    assert (kinds(outputs), ends(outputs)) == (["frame_rejected"], [])
    assert outputs[0].reason == "answer to no command"
    assert driver.counters.unasked == 1
    assert ends(driver.feed(OK, 1.0045)) == [ACCEPTED]


def test_a_copy_of_an_answer_is_not_taken_for_the_answer_to_a_command_sent_right_behind_it():
    """It is whole 2.3 ms later: sooner than the next command's own bytes and an answer to it can be."""
    driver = controlled()
    driver.command("a", "init", {}, 1.0)
    assert ends(driver.feed(OK, 1.01)) == [ACCEPTED]
    driver.command("b", "deal", {"n": "1"}, 1.01)
    assert ends(driver.feed(OK, 1.0123)) == []
    assert driver.counters.unasked == 1
    assert ends(driver.feed(E1, 1.02)) == [Refused("E1", ERROR)]


@pytest.mark.parametrize("before", [5, 12])
@pytest.mark.parametrize("at", [0.99, 1.0015])
def test_half_an_answer_that_was_there_before_a_command_is_not_completed_after_it(before, at):
    driver = controlled()
    if at < 1.0:
        driver.feed(OK[:before], at)
    outputs = list(driver.command("a", "deal", {"n": "1"}, 1.0))
    if at > 1.0:
        outputs += driver.feed(OK[:before], at)
    outputs += driver.feed(OK[before:], 1.004)
    assert ends(outputs) == []
    assert ends(driver.feed(OK, 1.01)) == [ACCEPTED]


def test_a_second_answer_in_one_read_is_told_and_answers_nothing():
    driver = controlled()
    driver.command("a", "deal", {"n": "1"}, 1.0)
    driver.command("b", "shuffle", {}, 1.0)
    outputs = driver.feed(OK + OK, 1.01)
    assert ends(outputs) == [ACCEPTED]
    assert sent(outputs) == [encode("SH", Style())]
    assert kinds(outputs) == ["frame_rejected"]


def test_text_of_the_machine_never_ends_a_command():
    driver = controlled()
    driver.command("a", "deal", {"n": "1"}, 1.0)
    outputs = driver.feed(b"Fehler: 1\r\nError", 1.01)
    assert (kinds(outputs), ends(outputs)) == (["chatter"], [])
    assert ends(driver.tick(2.0)) == [Unknown("no answer within 1 s")]


def test_an_echo_of_the_request_is_told_and_answers_nothing():
    driver = controlled()
    driver.command("a", "deal", {"n": "1"}, 1.0)
    outputs = driver.feed(b"Received a request: " + D1, 1.01)
    assert (kinds(outputs), ends(outputs)) == (["chatter", "command_seen"], [])
    assert ends(driver.feed(OK, 1.02)) == [ACCEPTED]


def test_a_strict_reader_believes_no_answer_with_stray_bytes():
    driver = controlled(profile="strict")
    driver.command("a", "deal", {"n": "1"}, 1.0)
    stray = next(v for v in VECTORS["vectors"] if "two stray" in v["meaning"])
    assert ends(driver.feed(bytes.fromhex(stray["hex"]), 1.01)) == []
    assert ends(driver.tick(2.0)) == [Unknown("no answer within 1 s")]


def test_a_closed_port_sends_nothing_and_one_call_ends_once():
    driver = SPEC.controlled(Setup("dealer", Random(1)))
    assert ends(driver.command("a", "init", {}, 0.0)) == [NotSent("the machine's port is not open")]
    driver.start(0.0)
    assert len(sent(driver.command("b", "init", {}, 0.0))) == 1
    assert driver.command("b", "init", {}, 0.1) == []


def test_field_42_a_machine_that_numbers_nothing_may_have_told_something_meanwhile():
    driver = SPEC.reader(Setup("dealer", Random(1)))
    assert kinds(driver.start(0.0)) == ["link_up"]
    assert kinds(driver.lost("out", 1.0)) == ["link_down"]
    assert kinds(driver.lost("out", 1.0)) == []
    assert kinds(driver.start(2.0)) == ["link_up", "gap_possible"]
    again = SPEC.reader(Setup("dealer", Random(1), Resume(n=7)))
    first, gap = again.start(0.0)
    assert (first.n, gap.kind, gap.missing) == (8, "gap_possible", None)


def test_the_spec_says_what_moves_cards_and_that_it_serves_no_table():
    assert {c.name for c in SPEC.commands if c.moves_cards} == {"shuffle", "deal", "deal-each"}
    assert (SPEC.role, SPEC.games, SPEC.polled, SPEC.baud) == ("shuffler", frozenset(), False, 57600)
    assert "token" in SPEC.unfit
