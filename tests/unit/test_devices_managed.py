import binascii
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import cbor2
import pytest

from devices.base import HearsHost, OptionError, Resume, Setup
from devices.events import DeviceEvent, carries_card, to_json
from devices.registry import load
from firmware_bridge import smp
from firmware_bridge.framing import smp_console
from firmware_bridge.link import Complete, Done, NotSent, Refused, Send, Unknown
from firmware_bridge.smp import Message, Op

GOLDEN = {
    v["name"]: v for v in json.loads((Path(__file__).parents[1] / "vectors" / "managed.json").read_text())
}
TOKEN = bytes(range(16))
ECHO, IDENTITY, SETTINGS, EVENTS = (0, 0), (64, 0), (64, 1), (65, 0)
SHOE_STATUS, LOCK, UNLOCK = (67, 0), (67, 1), (67, 2)
SHUFFLER_STATUS, START, ABORT, RELEASE, REPORT = ((66, n) for n in range(5))


def golden_body(name: str) -> dict[str, Any]:
    message = smp.decode(bytes.fromhex(GOLDEN[name]["packet"]))
    assert isinstance(message, Message)
    return dict(message.body)


def golden_wire(name: str) -> bytes:
    return b"".join(bytes.fromhex(line) + b"\n" for line in GOLDEN[name]["lines"])


def frame(op: int, what: tuple[int, int], sequence: int, body: Any, version: int = 1) -> bytes:
    raw = cbor2.dumps(body, canonical=True)
    head = bytes([version << 3 | op, 0]) + len(raw).to_bytes(2, "big") + what[0].to_bytes(2, "big")
    return smp_console.encode(head + bytes([sequence, what[1]]) + raw)


JOURNALED = Resume(boot=7, seq=0)
"""A device that was met before any of its events."""


class Bench:
    """A scripted device and the driver under test. `answers` maps (group, command) to a body, or to a
    function of the request; None means silence. Requests are kept as they came."""

    def __init__(
        self,
        name: str = "managed-shoe",
        *,
        resume: Resume = JOURNALED,
        form: str = "controlled",
        **options: Any,
    ) -> None:
        self.driver: Any = getattr(load(name), form)(Setup("dev", Random(3), resume=resume, options=options))
        self.now = 0.0
        self.log: list[Any] = []
        self.requests: list[Message] = []
        self.acks = True
        self.parks = False
        self.boot = 7
        self.ring: list[dict[str, Any]] = []
        self.oldest = 1
        kind = name.removeprefix("managed-")
        who = golden_body("identity answer")
        self.answers: dict[tuple[int, int], Any] = {
            ECHO: lambda m: {"r": m.body["d"]},
            IDENTITY: lambda m: {**who, "boot": self.boot, "class": kind},
            SETTINGS: golden_body("settings answer"),
            EVENTS: self._events,
            SHOE_STATUS: golden_body("shoe status answer"),
            LOCK: {"locked": True},
            UNLOCK: {"locked": False},
            SHUFFLER_STATUS: {
                "state": "empty", "inside": 0, "door": False, "cycle": 4, "token": None, "mode": "shuffle",
            },
            START: golden_body("start answer"),
            ABORT: {},
            RELEASE: golden_body("release answer"),
            REPORT: golden_body("report answer, one deck"),
        }  # fmt: skip

    def _events(self, message: Message) -> dict[str, Any] | None:
        since = message.body["since"]
        held = [e for e in self.ring if e["n"] >= since][:8]
        if not held and self.parks and "wait" in message.body:
            return None
        first = self.ring[0]["n"] if self.ring else self.oldest
        return {"boot": self.boot, "oldest": first, "next": self.next, "events": held}

    @property
    def next(self) -> int:
        return self.ring[-1]["n"] + 1 if self.ring else self.oldest

    def happen(self, kind: str, **keys: Any) -> None:
        self.ring.append({"n": self.next, "t": 0, "k": kind, **keys})

    def act(self, outputs: Any) -> None:
        for output in outputs:
            if not isinstance(output, Send):
                self.log.append(output)
                continue
            (packet,) = smp_console.Decoder().feed(output.data)
            message = smp.decode(packet.data)
            assert isinstance(message, Message)
            self.requests.append(message)
            answer = self.answers[message.group, message.command]
            body = answer(message) if callable(answer) else answer
            if body is not None:
                self.act(self.driver.feed(self.wire(message, body), self.now))
        last = max((e.n for e in self.events), default=0)
        if self.acks and last > self._acked:
            self._acked = last
            self.act(self.driver.ack(last, self.now))

    _acked = 0

    @staticmethod
    def wire(message: Message, body: Any) -> bytes:
        return frame(message.op + 1, (message.group, message.command), message.sequence, body)

    def start(self) -> "Bench":
        self.act(self.driver.start(self.now))
        return self

    def up(self) -> "Bench":
        self.start()
        assert self.kinds[-1] in {"link_up", "rebooted", "card_drawn", "gap_possible"}
        return self

    def run(self, seconds: float) -> None:
        """Let time pass; the driver is ticked at its deadlines."""
        end = self.now + seconds
        while (due := self.driver.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.act(self.driver.tick(self.now))
        self.now = end

    def command(self, call: str, name: str, **args: Any) -> None:
        self.act(self.driver.command(call, name, args, self.now))

    @property
    def events(self) -> list[Any]:
        return [e for e in self.log if isinstance(e, DeviceEvent)]

    @property
    def kinds(self) -> list[str]:
        return [e.kind for e in self.events]

    @property
    def ends(self) -> dict[str, Any]:
        ends = [o for o in self.log if isinstance(o, Complete)]
        assert len({e.call_id for e in ends}) == len(ends), "a command ended twice"
        return {e.call_id: e.outcome for e in ends}

    def asked(self, what: tuple[int, int]) -> list[Message]:
        return [m for m in self.requests if (m.group, m.command) == what]


def cards(bench: Bench) -> list[tuple[Any, ...]]:
    return [(e.seq, e.card) for e in bench.events if e.kind == "card_drawn"]


# Sessions


def test_a_session_is_echo_identity_settings_status_and_one_link_up() -> None:
    bench = Bench().start()
    order = [(m.group, m.command) for m in bench.requests]
    assert order == [ECHO] * 4 + [IDENTITY, SETTINGS, SHOE_STATUS, EVENTS]
    assert [m.op for m in bench.requests] == [Op.WRITE] * 4 + [Op.READ] * 4
    first = bench.requests[0].sequence
    assert [m.sequence for m in bench.requests] == [(first + at) % 256 for at in range(8)]
    (up,) = bench.events
    assert to_json(up, at=None, masked=False) == {
        "kind": "link_up", "device": "dev", "n": 1, "at": None, "raw": None, "seq": 0, "boot": 7,
        "identity": {
            "vendor": "Cutcard", "product": "SIM-SHOE", "serial": "SH0001", "firmware": "1.0.0", "boot": 7,
            "protocol": 1, "class": "shoe",
        },
        "status": {"locked": False, "lid": False, "empty": False, "drawn": 3},
        "settings": {"decks": 6, "cards_per_deck": 52, "mode": "shuffle", "recognition": True},
        "crc_ok": True,
    }  # fmt: skip


def test_the_requests_are_the_golden_packets() -> None:
    bench = Bench(resume=Resume(n=40, boot=7, seq=40)).start()
    bench.command("a", "lock")
    for name, what in (("identity", IDENTITY), ("events since 41", EVENTS), ("lock", LOCK)):
        golden = bytes.fromhex(GOLDEN[name]["packet"])
        sent = bytearray(smp.encode(bench.asked(what)[0]))
        sent[6] = golden[6]  # the sequence of a session is random
        assert bytes(sent) == golden, name


def test_two_sessions_differ_in_sequence_and_nonce() -> None:
    bench = Bench().start()
    bench.act(bench.driver.lost("unplugged", 1.0))
    bench.act(bench.driver.start(2.0))
    first, second = bench.asked(ECHO)[0], bench.asked(ECHO)[4]
    assert first.body["d"] != second.body["d"]
    assert all(len(m.body["d"]) == 16 and int(m.body["d"], 16) >= 0 for m in (first, second))
    assert first.sequence != second.sequence
    assert bench.kinds == ["link_up", "link_down", "link_up"]


def test_an_echo_of_another_nonce_proves_nothing() -> None:
    bench = Bench()
    bench.answers[ECHO] = {"r": "0011223aabbccdd"}
    bench.start()
    assert not bench.asked(IDENTITY)
    assert "link_up" not in bench.kinds


def test_an_answer_meant_for_a_dead_host_is_ignored() -> None:
    bench = Bench()
    bench.answers[ECHO] = None
    bench.start()
    bench.act(bench.driver.feed(golden_wire("identity answer"), 0.1))
    bench.act(bench.driver.feed(golden_wire("events answer"), 0.1))
    assert bench.log == []
    assert bench.driver.counters.unasked == 2


def test_a_silent_device_is_asked_three_times_then_told_down_once_and_tried_again() -> None:
    bench = Bench()
    bench.answers[ECHO] = None
    bench.start()
    bench.run(1.49)
    assert [m.sequence for m in bench.requests] == [bench.requests[0].sequence] * 3
    assert bench.kinds == []
    bench.run(0.01)
    assert bench.kinds == ["link_down"]
    assert "silent" in bench.events[0].reason
    bench.run(600.0)
    assert bench.kinds == ["link_down"]
    sessions = len({m.body["d"] for m in bench.requests})
    assert 40 <= sessions <= 70, "bounded: at most one session in 9.5 s after the first few"


def test_a_device_that_wakes_up_gets_its_session() -> None:
    bench = Bench()
    bench.answers[ECHO] = None
    bench.start()
    bench.run(5.0)
    bench.answers[ECHO] = lambda m: {"r": m.body["d"]}
    bench.run(10.0)
    assert bench.kinds == ["link_down", "link_up"]


def test_a_wrong_device_is_named_and_no_event_is_read() -> None:
    bench = Bench("managed-shuffler")
    bench.answers[IDENTITY] = golden_body("identity answer")
    bench.start()
    assert bench.kinds == ["link_down"]
    assert "expected a shuffler, found the shoe SIM-SHOE SH0001" in bench.events[0].reason
    assert not bench.asked(EVENTS)
    bench.command("a", "start", token=TOKEN.hex())
    assert isinstance(bench.ends["a"], NotSent)
    assert not bench.asked(START)


def test_a_device_without_settings_still_works() -> None:
    bench = Bench()
    bench.answers[SETTINGS] = {"err": {"group": 64, "rc": 1}}
    bench.start()
    assert bench.kinds == ["link_up"]
    assert (bench.events[0].settings, bench.events[0].crc_ok) == ({}, None)


def test_settings_whose_check_does_not_fit_are_told() -> None:
    bench = Bench()
    bench.answers[SETTINGS] = {**golden_body("settings answer"), "crc": 1}
    bench.start()
    assert bench.events[0].crc_ok is False


def test_status_bytes_become_hex_text() -> None:
    bench = Bench("managed-shuffler")
    bench.answers[SHUFFLER_STATUS] = {
        "state": "done", "inside": 312, "door": False, "cycle": 5, "token": TOKEN, "mode": "shuffle", "x": 1,
    }  # fmt: skip
    bench.start()
    assert bench.events[0].status == {
        "state": "done", "inside": 312, "door": False, "cycle": 5, "token": TOKEN.hex(), "mode": "shuffle",
    }  # fmt: skip


@pytest.mark.parametrize("driver", ["managed-shoe", "managed-shuffler"])
def test_no_key_that_nobody_documents_leaves_the_driver(driver: str) -> None:
    """Law 7: a shoe that tells its next card in a key of its own does not get it into a status."""
    bench = Bench(driver)
    more = {"next_card": "8S", "hash": b"\x01\x02"}
    identity, status = bench.answers[IDENTITY], {**bench.answers[SHOE_STATUS], "next": "8S"}
    bench.answers[IDENTITY] = lambda m: {**identity(m), **more}
    bench.answers[SHOE_STATUS] = status
    bench.answers[SHUFFLER_STATUS] = {**bench.answers[SHUFFLER_STATUS], "order": ["8S"]}
    held = {"decks": 6, "stacked": "8S"}
    crc = binascii.crc32(cbor2.dumps(held, canonical=True))
    bench.answers[SETTINGS] = {"settings": held, "crc": crc}
    bench.start()
    bench.command("a", "status")
    (up,) = bench.events
    assert (up.settings, up.crc_ok, up.identity["hash"]) == ({"decks": 6}, True, "0102")
    assert "8S" not in json.dumps(to_json(up, at=None, masked=False))
    assert "8S" not in json.dumps(bench.ends["a"].answer)


def test_a_refused_map_of_counts_is_not_quoted() -> None:
    bench = Bench("managed-shuffler")
    bench.answers[REPORT] = {**golden_body("report answer, one deck"), "composition": {"8S": -1}}
    bench.start()
    bench.command("a", "report")
    assert bench.events[-1].reason == "malformed answer: composition is no map of counts"


@pytest.mark.parametrize("settings", [{"decks": "6"}, {"mode": 1}, {"recognition": 1}, {"decks": -1}])
def test_settings_that_break_the_page_are_malformed(settings: dict[str, Any]) -> None:
    bench = Bench()
    bench.answers[SETTINGS] = {"settings": settings, "crc": 1}
    bench.start()
    assert bench.kinds == ["frame_rejected"]


# Events


def test_golden_events_become_device_events() -> None:
    bench = Bench(resume=Resume(n=10, boot=7, seq=40))
    bench.ring, bench.oldest = list(golden_body("events answer")["events"]), 1
    bench.start()
    told = [to_json(e, at=None, masked=False) for e in bench.events[1:]]
    assert [t["kind"] for t in told] == ["card_drawn", "cut_card", "card_drawn"]
    assert told[0] == {
        "kind": "card_drawn", "device": "dev", "n": 12, "at": None, "seq": 41,
        "raw": "a56162637265646163623853616b6463617264616e182961741903e8",
        "card": "8S", "position": None, "index": None, "in_game": True, "face_up": False, "back": "red",
    }  # fmt: skip
    assert (told[2]["card"], told[2]["seq"], told[2]["back"]) == (None, 43, "red")


def test_reading_starts_after_the_last_journaled_event() -> None:
    bench = Bench(resume=Resume(n=90, boot=7, seq=3))
    for face in ("2C", "3C", "4C", "5C", "6C"):
        bench.happen("card", c=face, b="red")
    bench.start()
    assert cards(bench) == [(4, "5C"), (5, "6C")]
    assert bench.kinds == ["link_up", "card_drawn", "card_drawn"]
    assert [e.n for e in bench.events] == [91, 92, 93]


def test_another_boot_is_told_and_all_its_events_are_read() -> None:
    bench = Bench(resume=Resume(n=90, boot=6, seq=300))
    bench.happen("card", c="2C", b="red")
    bench.start()
    assert bench.kinds == ["link_up", "rebooted", "card_drawn"]
    assert bench.events[1].boot == 7
    assert bench.asked(EVENTS)[0].body["since"] == 1


def test_the_first_contact_begins_at_the_end_of_the_ring() -> None:
    bench = Bench(resume=Resume())
    bench.happen("card", c="2C", b="red")
    bench.happen("card", c="3C", b="red")
    bench.start()
    assert bench.kinds == ["link_up"]
    assert bench.events[0].seq == 2
    bench.happen("card", c="4C", b="red")
    bench.run(0.1)
    assert cards(bench) == [(3, "4C")]


def test_what_happens_during_the_first_session_is_told() -> None:
    bench = Bench(resume=Resume())
    status = bench.answers[SHOE_STATUS]

    def opened_meanwhile(_: Message) -> dict[str, Any]:
        bench.happen("lid", open=True)
        return {**status, "lid": True}

    bench.answers[SHOE_STATUS] = opened_meanwhile
    bench.start()
    assert bench.kinds == ["link_up", "lid"]
    assert bench.events[0].status["lid"] is True


def test_a_restart_during_the_first_session_begins_it_anew() -> None:
    bench = Bench(resume=Resume())
    plain = bench._events

    def restarted(message: Message) -> dict[str, Any]:
        bench.answers[EVENTS] = plain
        bench.boot = 8
        return {**plain(message), "boot": 8}

    bench.answers[EVENTS] = restarted
    bench.start()
    assert bench.kinds == ["link_down", "link_up"]
    assert bench.events[1].boot == 8


def test_lost_events_are_counted_exactly() -> None:
    bench = Bench(resume=Resume(n=90, boot=7, seq=3))
    bench.ring = [{"n": n, "t": 0, "k": "card", "c": "2C", "b": "red"} for n in (10, 11)]
    bench.start()
    assert bench.kinds == ["link_up", "gap_possible", "card_drawn", "card_drawn"]
    assert bench.events[1].missing == 6
    assert bench.asked(EVENTS)[1].body["since"] == 12


def test_a_gap_without_any_event_left_is_told_too() -> None:
    bench = Bench(resume=Resume(n=90, boot=7, seq=3))
    bench.oldest = 10
    bench.start()
    assert bench.kinds == ["link_up", "gap_possible"]
    assert bench.events[1].missing == 6


def test_events_out_of_order_and_twice_are_told_once_in_order() -> None:
    bench = Bench(resume=Resume(n=0, boot=7, seq=3))
    entry = {"t": 0, "k": "card", "b": "red"}
    bench.answers[EVENTS] = lambda m: {
        "boot": 7, "oldest": 1, "next": 7,
        "events": [{**entry, "n": n, "c": f"{n}C"} for n in (5, 4, 6, 5, 3) if m.body["since"] < 7],
    }  # fmt: skip
    bench.start()
    assert cards(bench) == [(4, "4C"), (5, "5C"), (6, "6C")]
    assert bench.driver.counters.repeats == 1


def test_nothing_is_asked_before_the_last_event_was_acknowledged() -> None:
    bench = Bench()
    bench.acks = False
    for face in ("2C", "3C"):
        bench.happen("card", c=face, b="red")
    bench.start()
    bench.run(5.0)
    assert bench.kinds == ["link_up"]
    assert not bench.asked(EVENTS)
    bench.act(bench.driver.ack(1, bench.now))
    assert cards(bench) == [(1, "2C"), (2, "3C")]
    bench.act(bench.driver.ack(2, bench.now))
    bench.run(5.0)
    assert len(bench.asked(EVENTS)) == 1
    bench.act(bench.driver.ack(3, bench.now))
    assert bench.asked(EVENTS)[1].body["since"] == 3


def test_an_event_not_yet_journaled_is_not_told_again_in_the_next_session() -> None:
    bench = Bench()
    bench.happen("card", c="2C", b="red")
    bench.acks = False
    bench.start()
    bench.act(bench.driver.ack(1, 0.0))
    bench.act(bench.driver.lost("unplugged", 1.0))
    bench.acks = True
    bench.act(bench.driver.start(2.0))
    assert bench.kinds == ["link_up", "card_drawn", "link_down", "link_up"]
    assert bench.asked(EVENTS)[-1].body["since"] == 2


def test_a_restart_of_the_device_in_a_session_begins_a_new_one_at_once() -> None:
    bench = Bench()
    bench.happen("card", c="2C", b="red")
    bench.start()
    bench.boot, bench.ring = 8, []
    bench.happen("lid", open=True)
    bench.run(0.6)
    assert bench.kinds == ["link_up", "card_drawn", "link_down", "link_up", "rebooted", "lid"]
    assert bench.events[2].reason == "the device restarted"
    assert bench.events[3].boot == 8


def test_a_command_under_way_at_a_restart_is_unknown() -> None:
    bench = Bench().start()
    bench.answers[LOCK] = None
    bench.command("a", "lock")
    bench.boot = 8
    bench.run(0.3)
    assert bench.ends == {"a": Unknown("the device restarted")}
    assert len(bench.asked(LOCK)) == 1


def test_event_numbers_that_go_back_within_a_boot_end_the_session_and_tell_nothing_again() -> None:
    bench = Bench(resume=Resume(n=90, boot=7, seq=300))
    bench.happen("lid", open=True)
    bench.start()
    bench.run(3.0)
    assert bench.kinds[:6] == ["link_up"] + ["frame_rejected"] * 3 + ["gap_possible", "link_down"]
    assert "numbers went back without a restart: restart the device" in bench.events[5].reason
    bench.run(60.0)
    assert "lid" not in bench.kinds
    assert bench.kinds.count("gap_possible") == 1
    assert bench.kinds.count("link_up") <= 9, "no session without back-off"
    bench.boot = 8
    bench.run(20.0)
    assert bench.kinds[-3:] == ["link_up", "rebooted", "lid"]


def test_one_answer_that_goes_back_tells_no_card_twice() -> None:
    bench = Bench()
    for face in ("2C", "3C", "4C"):
        bench.happen("card", c=face, b="red")
    bench.start()
    backwards = [True]
    bench.answers[EVENTS] = lambda m: (
        {"boot": 7, "oldest": 1, "next": 2, "events": bench.ring[:1]}
        if backwards and backwards.pop()
        else bench._events(m)
    )
    bench.run(2.0)
    bench.happen("card", c="5C", b="red")
    bench.run(2.0)
    assert cards(bench) == [(1, "2C"), (2, "3C"), (3, "4C"), (4, "5C")]
    assert bench.kinds.count("frame_rejected") == 1
    assert "gap_possible" not in bench.kinds


def test_a_boot_counter_that_flickers_tells_no_card_twice() -> None:
    bench = Bench()
    for face in ("2C", "3C"):
        bench.happen("card", c=face, b="red")
    bench.start()
    identity, plain = bench.answers[IDENTITY], bench._events
    bench.answers[EVENTS] = lambda m: {**plain(m), "boot": 9}
    bench.answers[IDENTITY] = lambda m: {**identity(m), "boot": 9}
    bench.ring, ring = [], bench.ring
    bench.run(1.0)
    bench.ring = ring
    bench.answers[EVENTS], bench.answers[IDENTITY] = plain, identity
    bench.run(5.0)
    assert [e.boot for e in bench.events if e.kind == "rebooted"] == [9, 7]
    assert cards(bench) == [(1, "2C"), (2, "3C")]


@pytest.mark.parametrize("form", ["reader", "controlled"])
@pytest.mark.parametrize("resume", [JOURNALED, Resume()])
def test_a_boot_counter_that_never_stands_still_is_backed_off_from(resume: Resume, form: str) -> None:
    bench = Bench(resume=resume, form=form)

    def count(answer: Callable[[Message], Any]) -> Callable[[Message], Any]:
        def counted(message: Message) -> Any:
            bench.boot += 1
            return answer(message)

        return counted

    for what in (IDENTITY, EVENTS):
        bench.answers[what] = count(bench.answers[what])
    bench.start()
    bench.run(1.0)
    assert len(bench.asked(IDENTITY)) <= 4
    downs = [e.reason for e in bench.events if e.kind == "link_down"]
    assert downs[0] == "the device restarted"
    assert "again and again" in downs[1]
    bench.run(80.0)
    assert len(bench.asked(IDENTITY)) <= 20


def test_a_device_that_is_silent_after_its_restart_is_told_silent() -> None:
    bench = Bench().start()
    bench.boot, bench.answers[IDENTITY] = 8, None
    bench.run(5.0)
    restarted, silent = (e.reason for e in bench.events if e.kind == "link_down")
    assert restarted == "the device restarted"
    assert silent.startswith("the device is silent (no answer within 0.5 s in 3 attempts): check its power")


def test_an_event_that_is_there_and_never_told_is_lost_and_the_rest_is_read() -> None:
    bench = Bench()
    for face in ("2C", "3C", "4C"):
        bench.happen("card", c=face, b="red")
    plain = bench._events
    bench.answers[EVENTS] = lambda m: plain(m) | ({"events": []} if m.body["since"] == 2 else {})
    bench.ring, rest = bench.ring[:1], bench.ring
    bench.start()
    bench.ring = rest
    bench.run(3.0)
    assert bench.kinds == ["link_up", "card_drawn", "gap_possible", "warning", "card_drawn"]
    assert (bench.events[2].missing, bench.events[3].code, bench.events[3].seq) == (1, "event_withheld", 2)
    assert cards(bench) == [(1, "2C"), (3, "4C")]


def test_one_answer_without_the_event_that_is_there_loses_nothing() -> None:
    bench = Bench().start()
    bench.happen("card", c="2C", b="red")
    plain, empty = bench._events, [True, True]
    bench.answers[EVENTS] = lambda m: plain(m) | ({"events": []} if empty and empty.pop() else {})
    bench.run(3.0)
    assert bench.kinds == ["link_up", "card_drawn"]


def test_a_device_that_tells_none_of_its_events_makes_no_storm() -> None:
    bench = Bench()
    bench.answers[EVENTS] = {"boot": 7, "oldest": 1, "next": 2**40, "events": []}
    bench.start()
    bench.run(30.0)
    assert 15 <= bench.kinds.count("gap_possible") <= 25
    assert len(bench.asked(EVENTS)) <= 65


@pytest.mark.parametrize("more", [0, 1])
def test_a_device_that_tells_an_old_event_again_and_again_makes_no_storm(more: int) -> None:
    bench = Bench()
    old = {"n": 1, "t": 0, "k": "cut"}
    bench.answers[EVENTS] = {"boot": 7, "oldest": 1, "next": 2 + more, "events": [old]}
    bench.start()
    bench.run(3.0)
    assert bench.kinds == ["link_up", "cut_card"] + ["gap_possible", "warning"] * more
    assert len(bench.asked(EVENTS)) <= 155


def test_two_events_with_one_number_are_no_answer() -> None:
    bench = Bench()
    pair = [{"n": 1, "t": 0, "k": "cut"}, {"n": 1, "t": 0, "k": "card", "c": "8S", "b": "red"}]
    bench.answers[EVENTS] = {"boot": 7, "oldest": 1, "next": 2, "events": pair}
    bench.start()
    bench.run(3.0)
    assert bench.kinds[:5] == ["link_up"] + ["frame_rejected"] * 3 + ["link_down"]
    assert "two different events with number 1" in bench.events[4].reason


# Another device on the port


def replaced(bench: Bench, serial: str, *, boot: int, ring: list[dict[str, Any]]) -> None:
    """The cable goes to another device."""
    who = {**golden_body("identity answer"), "serial": serial}
    bench.boot, bench.ring = boot, ring
    bench.answers[IDENTITY] = lambda m: {**who, "boot": bench.boot}
    bench.act(bench.driver.lost("unplugged", bench.now))
    bench.now += 1.0
    bench.act(bench.driver.start(bench.now))


@pytest.mark.parametrize("other_boot", [7, 9])
@pytest.mark.parametrize("resume", [Resume(boot=7, seq=0), Resume(boot=7, seq=0, serial="SH0001")])
def test_another_devices_events_are_not_read_and_ours_not_told_again(resume: Resume, other_boot: int) -> None:
    bench = Bench(resume=resume)
    for face in ("2C", "3C", "4C"):
        bench.happen("card", c=face, b="red")
    bench.start()
    ours, theirs = bench.ring, [{"n": n, "t": 0, "k": "card", "c": "9H", "b": "red"} for n in (1, 2, 3, 4)]
    reads = len(bench.asked(EVENTS))
    replaced(bench, "OTHER", boot=other_boot, ring=theirs)
    bench.run(10.0)
    up = bench.events[-1]
    assert (up.kind, up.boot, up.seq, up.identity["serial"]) == ("link_up", other_boot, None, "OTHER")
    assert len(bench.asked(EVENTS)) == reads
    replaced(bench, "SH0001", boot=7, ring=ours)
    bench.happen("card", c="5C", b="red")
    bench.run(1.0)
    assert cards(bench) == [(1, "2C"), (2, "3C"), (3, "4C"), (4, "5C")]
    assert "rebooted" not in bench.kinds
    assert bench.events[-2].seq == 3


def test_the_known_device_comes_from_the_journal() -> None:
    bench = Bench(resume=Resume(n=5, boot=7, seq=0, serial="MINE"))
    bench.happen("card", c="2C", b="red")
    bench.start()
    bench.run(5.0)
    assert bench.kinds == ["link_up"]


def test_another_device_is_watched_seldom_and_its_silence_is_told() -> None:
    bench = Bench(resume=Resume(n=5, boot=7, seq=0, serial="MINE")).start()
    before = len(bench.requests)
    bench.run(10.0)
    assert 18 <= len(bench.requests) - before <= 21
    bench.answers[IDENTITY] = None
    bench.run(3.0)
    assert bench.kinds == ["link_up", "link_down"]


def test_the_known_device_is_found_again_without_a_loss_of_the_line() -> None:
    bench = Bench(resume=Resume(n=5, boot=7, seq=0, serial="MINE")).start()
    bench.happen("card", c="2C", b="red")
    who = golden_body("identity answer")
    bench.answers[IDENTITY] = {**who, "serial": "MINE"}
    bench.run(2.0)
    assert bench.kinds == ["link_up", "link_down", "link_up", "card_drawn"]


def test_another_device_gets_no_command() -> None:
    bench = Bench(resume=Resume(n=5, boot=7, seq=0, serial="MINE")).start()
    bench.command("a", "lock")
    assert isinstance(bench.ends["a"], NotSent)
    assert not bench.asked(LOCK)


@pytest.mark.parametrize(
    ("entry", "kind", "fields"),
    [
        ({"k": "card", "c": "TH", "b": None, "up": True}, "card_drawn",
         {"card": "TH", "back": None, "face_up": True}),
        ({"k": "card", "c": "1X", "b": "red"}, "card_drawn", {"card": None, "diag": ("bad_card",)}),
        ({"k": "card", "c": ["8S"], "b": 3}, "card_drawn", {"card": None, "diag": ("bad_card", "bad_back")}),
        ({"k": "cut"}, "cut_card", {}),
        ({"k": "empty"}, "shoe_empty", {}),
        ({"k": "lid", "open": True}, "lid", {"open": True}),
        ({"k": "lock", "locked": False}, "lock_changed", {"locked": False}),
        ({"k": "fault", "code": 3, "name": "sensor", "on": True}, "fault_raised",
         {"code": "3", "name": "sensor"}),
        ({"k": "fault", "code": 3, "name": "sensor", "on": False}, "fault_cleared", {"code": "3"}),
        ({"k": "party 8S"}, "warning", {"code": "unknown_event"}),
        ({"k": "lid", "open": 1}, "warning",
         {"code": "malformed_event", "diag": ("open is neither true nor false",)}),
        ({"k": "cut", "x": cbor2.CBORTag(36, "x"), "y": cbor2.CBORTag(257, b"x")}, "cut_card", {}),
        ({"k": "card", "c": cbor2.CBORTag(30, [1, 0]), "b": "red"}, "card_drawn", {"card": None}),
    ],
)  # fmt: skip
def test_events_of_a_shoe(entry: dict[str, Any], kind: str, fields: dict[str, Any]) -> None:
    check_event("managed-shoe", entry, kind, fields)


REPORT_BODY = {
    "cycle": 9, "token": TOKEN, "count": 2, "mode": "shuffle", "composition": {"8S": 2}, "backs": {"red": 2},
    "unread": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "kind", "fields"),
    [
        ({"k": "start", "cycle": 9, "token": TOKEN}, "cycle_started", {"cycle": 9, "token": TOKEN.hex()}),
        ({"k": "done", **REPORT_BODY}, "cycle_completed", {**REPORT_BODY, "token": TOKEN.hex()}),
        ({"k": "abort", "cycle": 9, "cause": "jam"}, "cycle_aborted", {"cycle": 9, "cause": "jam"}),
        ({"k": "out", "count": 312, "inside": 0, "token": TOKEN}, "batch_released",
         {"count": 312, "inside": 0, "token": TOKEN.hex()}),
        ({"k": "out", "count": 3, "inside": 309, "token": None}, "batch_released",
         {"count": 3, "token": None}),
        ({"k": "door", "open": True}, "door", {"open": True}),
        ({"k": "jam", "place": "shelf", "attempt": 2}, "jam", {"place": "shelf", "attempt": 2}),
        ({"k": "fault", "code": "E7", "name": "motor", "on": True}, "fault_raised", {"code": "E7"}),
        ({"k": "done", **REPORT_BODY, "token": None}, "warning",
         {"code": "malformed_event", "diag": ("no token",)}),
        ({"k": "done", **REPORT_BODY, "composition": {"8S": -1}}, "warning", {}),
        ({"k": "start", "cycle": True, "token": TOKEN}, "warning", {}),
    ],
)  # fmt: skip
def test_events_of_a_shuffler(entry: dict[str, Any], kind: str, fields: dict[str, Any]) -> None:
    check_event("managed-shuffler", entry, kind, fields)


def check_event(driver: str, entry: dict[str, Any], kind: str, fields: dict[str, Any]) -> None:
    bench = Bench(driver)
    bench.ring = [{"n": 1, "t": 5, **entry}]
    bench.start()
    event = next(e for e in bench.events if e.kind == kind)
    malformed = getattr(event, "code", "") == "malformed_event"
    assert [e.missing for e in bench.events if e.kind == "gap_possible"] == ([1] if malformed else [])
    assert (event.kind, event.seq) == (kind, 1)
    assert event.raw == cbor2.dumps(bench.ring[0], canonical=True)
    assert {name: getattr(event, name) for name in fields} == fields


def test_an_event_nobody_understands_is_hidden_like_a_card() -> None:
    bench = Bench()
    bench.ring = [{"n": 1, "t": 0, "k": "card2", "c": "8S"}]
    bench.start()
    assert to_json(bench.events[1], at=None, masked=True)["raw"] is None


@pytest.mark.parametrize("kind", ["card", "cut", "empty", "lid", "lock", "fault", "8S", "lid8S"])
def test_no_event_of_a_shoe_shows_a_card_in_a_key_nobody_knows(kind: str) -> None:
    bench = Bench()
    known = {"open": True, "locked": True, "code": 1, "name": "x", "on": True}
    bench.ring = [{"n": 1, "t": 0, "k": kind, "c": "8S", "next": "8S", **known}, {"n": 2, "t": 0, "k": kind}]
    bench.start()
    told = [to_json(e, at=None, masked=True) for e in bench.events]
    assert len(told) >= 3
    assert "8S" not in json.dumps(told)
    assert b"8S".hex() not in json.dumps(told)
    assert all(carries_card(e) for e in bench.events if e.raw is not None)


# Malformed answers and noise


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"boot": 7, "oldest": 1, "next": 1},
        {"boot": 7, "oldest": 1, "next": 2, "events": [1]},
        {"boot": 7, "oldest": 1, "next": 2, "events": [{"n": 1}]},
        {"boot": 7, "oldest": 1, "next": 2, "events": [{"n": -1, "k": "cut"}]},
        {"boot": 7, "oldest": 1, "next": 2, "events": [{"n": 2, "k": "cut"}]},
        {"boot": 7, "oldest": 3, "next": 2, "events": []},
        {"boot": "7", "oldest": 1, "next": 1, "events": []},
        {"err": "what"},
        {"err": {"group": 65}},
    ],
)
def test_a_malformed_answer_is_rejected_asked_again_and_ends_the_session(body: dict[str, Any]) -> None:
    bench = Bench()
    bench.answers[EVENTS] = body
    bench.start()
    bench.run(2.2)
    assert bench.kinds == ["link_up"] + ["frame_rejected"] * 3 + ["link_down"]
    assert bench.events[1].reason.startswith("malformed answer")
    assert len({m.sequence for m in bench.asked(EVENTS)}) == 1


def test_one_malformed_answer_costs_one_attempt_only() -> None:
    bench = Bench()
    bad = [True]
    bench.answers[EVENTS] = lambda m: {} if bad and bad.pop() else bench._events(m)
    bench.happen("card", c="2C", b="red")
    bench.start()
    bench.run(1.0)
    assert bench.kinds == ["link_up", "frame_rejected", "card_drawn"]


def test_text_and_garbage_between_frames_are_told_and_hurt_nothing() -> None:
    bench = Bench()
    bench.answers[EVENTS] = None
    bench.start()
    request = bench.requests[-1]
    bench.happen("cut")
    answer = bench.wire(request, {"boot": 7, "oldest": 1, "next": 2, "events": bench.ring})
    bench.act(bench.driver.feed(b"boot: ok\r\n\x00\xff\x00\n" + answer, 0.1))
    assert bench.kinds == ["link_up", "chatter", "frame_rejected", "cut_card"]
    assert bench.events[1].text == "boot: ok"


def test_a_frame_with_a_broken_check_is_rejected_and_the_retry_answers() -> None:
    bench = Bench()
    bench.answers[EVENTS] = None
    bench.start()
    wire = bytearray(bench.wire(bench.requests[-1], {"boot": 7, "oldest": 1, "next": 1, "events": []}))
    wire[20] ^= 1
    bench.act(bench.driver.feed(bytes(wire), 0.1))
    bench.answers[EVENTS] = bench._events
    bench.run(1.0)
    assert bench.kinds == ["link_up", "frame_rejected"]
    assert bench.driver.counters.retries == 1


@pytest.mark.parametrize("size", [1, 2, 7, 61])
def test_any_split_of_the_answers_gives_the_same_events(size: int) -> None:
    bench = Bench(resume=Resume(n=10, boot=7, seq=40))
    plain_feed = bench.driver.feed

    def in_pieces(data: bytes, now: float) -> list[Any]:
        return [o for at in range(0, len(data), size) for o in plain_feed(data[at : at + size], now)]

    bench.driver.feed = in_pieces
    bench.ring = list(golden_body("events answer")["events"])
    bench.start()
    assert [(e.kind, e.seq) for e in bench.events] == [
        ("link_up", 40), ("card_drawn", 41), ("cut_card", 42), ("card_drawn", 43),
    ]  # fmt: skip


# Polling


def test_a_device_that_waits_is_asked_again_when_its_wait_is_over() -> None:
    bench = Bench()
    bench.parks = True
    bench.start()
    request = bench.asked(EVENTS)[0]
    assert request.body == {"since": 1, "wait": 200}
    bench.now = 0.2
    bench.act(bench.driver.feed(bench.wire(request, {"boot": 7, "oldest": 1, "next": 1, "events": []}), 0.2))
    assert len(bench.asked(EVENTS)) == 2
    assert bench.asked(EVENTS)[1].body == {"since": 1, "wait": 200}


def test_a_device_that_cannot_wait_is_asked_every_20_ms_in_play_and_500_ms_idle() -> None:
    bench = Bench().start()
    bench.run(1.0)
    assert 48 <= len(bench.asked(EVENTS)) <= 52
    assert "wait" not in bench.asked(EVENTS)[1].body
    bench.run(60.0)
    before = len(bench.asked(EVENTS))
    bench.run(10.0)
    assert 19 <= len(bench.asked(EVENTS)) - before <= 21
    bench.happen("cut")
    bench.run(0.6)
    assert "cut_card" in bench.kinds
    before = len(bench.asked(EVENTS))
    bench.run(1.0)
    assert len(bench.asked(EVENTS)) - before >= 48


def test_idle_reads_are_parked_longer() -> None:
    bench = Bench(wait_ms=100)
    bench.parks = True
    bench.start()
    for _ in range(400):
        request = bench.asked(EVENTS)[-1]
        bench.now += request.body["wait"] / 1000
        empty = bench.wire(request, {"boot": 7, "oldest": 1, "next": 1, "events": []})
        bench.act(bench.driver.feed(empty, bench.now))
    waits = [m.body["wait"] for m in bench.asked(EVENTS)]
    assert waits[0] == 100
    assert waits[-1] == 500


@pytest.mark.parametrize("wait", [-1, 1001, "200", True, 0.2])
def test_a_wrong_wait_is_an_error(wait: Any) -> None:
    with pytest.raises(OptionError, match="wait_ms"):
        Bench(wait_ms=wait)


def test_without_wait_the_key_is_not_sent() -> None:
    bench = Bench(wait_ms=0).start()
    assert bench.asked(EVENTS)[0].body == {"since": 1}


def test_a_half_open_line_is_found_by_its_deadline() -> None:
    bench = Bench()
    bench.parks = True
    bench.start()
    bench.run(3 * 0.7 - 0.01)
    assert bench.kinds == ["link_up"]
    bench.run(0.02)
    assert bench.kinds == ["link_up", "link_down"]


# Commands


def test_a_command_goes_out_at_once_beside_a_parked_read() -> None:
    bench = Bench()
    bench.parks = True
    bench.start()
    bench.now = 0.05
    bench.command("a", "lock")
    assert bench.ends == {"a": Done({"locked": True})}
    parked = bench.asked(EVENTS)
    assert len(parked) == 1
    bench.happen("lock", locked=True)
    bench.act(bench.driver.feed(bench.wire(parked[0], bench._events(parked[0])), 0.06))
    assert bench.kinds == ["link_up", "lock_changed"]


@pytest.mark.parametrize(
    ("name", "args", "answer"),
    [
        ("start", {"token": TOKEN.hex()}, {"cycle": 1057}),
        ("release", {"token": TOKEN}, {"count": 312, "inside": 0}),
        ("abort", {}, {}),
        ("settings", {}, {
            "settings": {"decks": 6, "cards_per_deck": 52, "mode": "shuffle", "recognition": True},
            "crc": 0xEAB29296, "crc_ok": True,
        }),
        ("status", {}, {
            "state": "empty", "inside": 0, "door": False, "cycle": 4, "token": None, "mode": "shuffle",
        }),
    ],
)  # fmt: skip
def test_commands_of_a_shuffler(name: str, args: dict[str, Any], answer: dict[str, Any]) -> None:
    bench = Bench("managed-shuffler").start()
    bench.command("a", name, **args)
    assert bench.ends == {"a": Done(answer)}
    if "token" in args:
        assert bench.requests[-1].body == {"token": TOKEN}


def test_the_report_counts_and_carries_its_token() -> None:
    bench = Bench("managed-shuffler").start()
    bench.command("a", "report")
    report = bench.ends["a"].answer
    assert (report["cycle"], report["token"], report["count"], report["mode"]) == (
        1057,
        TOKEN.hex(),
        52,
        "shuffle",
    )
    assert len(report["composition"]) == 52
    assert (report["backs"], report["unread"]) == ({"blue": 52}, 0)


def test_a_refusal_names_what_the_device_said() -> None:
    bench = Bench("managed-shuffler")
    bench.answers[START] = golden_body("start refused, door open")
    bench.start()
    bench.command("a", "start", token=TOKEN.hex())
    assert bench.ends == {"a": Refused("6", "door or lid open")}
    bench.answers[START] = {"rc": 4}
    bench.command("b", "start", token=TOKEN.hex())
    assert bench.ends["b"] == Refused("4", "busy")


def test_a_lost_answer_is_asked_again_with_the_same_bytes() -> None:
    bench = Bench("managed-shuffler").start()
    silent = [True]
    bench.answers[RELEASE] = lambda m: None if silent and silent.pop() else golden_body("release answer")
    bench.command("a", "release", token=TOKEN.hex())
    assert bench.ends == {}
    bench.run(0.6)
    assert bench.ends == {"a": Done({"count": 312, "inside": 0})}
    first, second = bench.asked(RELEASE)
    assert smp.encode(first) == smp.encode(second)


def test_three_silences_are_unknown_and_never_sent_a_fourth_time() -> None:
    bench = Bench("managed-shuffler").start()
    bench.parks = True
    bench.answers[RELEASE] = None
    bench.command("a", "release", token=TOKEN.hex())
    bench.run(60.0)
    assert isinstance(bench.ends["a"], Unknown)
    assert len(bench.asked(RELEASE)) == 3
    assert "link_down" in bench.kinds


def test_an_answer_of_a_restarted_device_read_late_ends_the_overdue_command_once() -> None:
    """The machine stood still while the command's time ran out; what it reads first tells of a new start."""
    bench = Bench()
    bench.parks = True
    bench.start()
    parked = bench.requests[-1]
    bench.answers[LOCK] = bench.answers[IDENTITY] = None
    bench.command("a", "lock")
    bench.run(1.9)  # overdue, and nobody proved who is there
    bench.boot = 8
    bench.now = 2.05
    ring = {"boot": 8, "oldest": 1, "next": 1, "events": []}
    bench.act(bench.driver.feed(bench.wire(parked, ring), bench.now))
    assert isinstance(bench.ends["a"], Unknown)
    bench.answers[IDENTITY] = {**golden_body("identity answer"), "boot": 8}
    bench.run(2.0)
    assert bench.kinds == ["link_up", "link_down", "link_up", "rebooted"]
    assert len(bench.asked(LOCK)) == 1


def test_a_late_reply_is_not_the_answer_to_the_next_command() -> None:
    """I-26: the answer to a lock that was given up comes just after the unlock went out."""
    bench = Bench().start()
    bench.answers[LOCK] = bench.answers[UNLOCK] = None
    bench.command("a", "lock")
    lock = bench.requests[-1]
    bench.run(1.6)
    assert isinstance(bench.ends["a"], Unknown)
    bench.run(1.0)
    assert bench.kinds[-1] == "link_up"
    bench.command("b", "unlock")
    unlock = bench.requests[-1]
    unasked = bench.driver.counters.unasked
    bench.act(bench.driver.feed(bench.wire(lock, {"locked": True}), bench.now))
    assert "b" not in bench.ends
    assert bench.driver.counters.unasked == unasked + 1
    bench.act(bench.driver.feed(bench.wire(unlock, {"locked": False}), bench.now))
    assert bench.ends["b"] == Done({"locked": False})


def test_foreign_frames_neither_complete_nor_fail_a_request() -> None:
    """I-27 and N-01: a stale answer, a request and the right answer in one read."""
    bench = Bench().start()
    bench.answers[LOCK] = None
    bench.command("a", "lock")
    lock = bench.requests[-1]
    stale = frame(3, LOCK, (lock.sequence - 9) % 256, {"locked": False})
    other = frame(3, UNLOCK, lock.sequence, {"locked": False})
    wrong_op = frame(1, LOCK, lock.sequence, {"locked": False})
    request = frame(2, LOCK, lock.sequence, {})
    right = bench.wire(lock, {"locked": True})
    bench.act(bench.driver.feed(stale + other + wrong_op + request + right, bench.now))
    assert bench.ends == {"a": Done({"locked": True})}
    assert bench.driver.counters.unasked == 4


def test_a_second_answer_changes_nothing() -> None:
    bench = Bench().start()
    bench.command("a", "lock")
    again = bench.wire(bench.asked(LOCK)[0], {"locked": False})
    bench.act(bench.driver.feed(again, bench.now))
    assert bench.ends == {"a": Done({"locked": True})}


def test_commands_go_one_after_the_other() -> None:
    bench = Bench().start()
    bench.answers[LOCK] = None
    bench.command("a", "lock")
    bench.command("b", "unlock")
    bench.command("b", "unlock")
    assert not bench.asked(UNLOCK)
    bench.act(bench.driver.feed(bench.wire(bench.requests[-1], {"locked": True}), bench.now))
    assert list(bench.ends) == ["a", "b"]
    assert len(bench.asked(UNLOCK)) == 1


def test_a_lost_handle_ends_what_was_sent_unknown_and_what_waited_not_sent() -> None:
    bench = Bench().start()
    bench.answers[LOCK] = None
    bench.command("a", "lock")
    bench.command("b", "unlock")
    bench.act(bench.driver.lost("unplugged", 1.0))
    assert bench.ends == {"a": Unknown("unplugged"), "b": NotSent("unplugged")}
    assert bench.events[-1].reason == "unplugged"
    bench.command("c", "lock")
    assert isinstance(bench.ends["c"], NotSent)
    assert bench.driver.deadline() is None


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("strat", {}, "it knows status, settings, start"),
        ("start", {}, "takes token"),
        ("start", {"token": "0011"}, "32 digits"),
        ("start", {"token": "zz" * 16}, "32 digits"),
        ("abort", {"token": TOKEN.hex()}, "no arguments"),
    ],
)
def test_a_wrong_command_is_not_sent(name: str, args: dict[str, Any], says: str) -> None:
    bench = Bench("managed-shuffler").start()
    sent = len(bench.requests)
    bench.command("a", name, **args)
    assert says in bench.ends["a"].reason
    assert isinstance(bench.ends["a"], NotSent)
    assert len(bench.requests) == sent


def test_a_reader_takes_one_place_in_the_answer_cache_and_a_controller_all() -> None:
    """Law 10: four echoes of a monitor would push another host's open write out of the device's cache."""
    assert len(Bench(form="reader").start().asked(ECHO)) == 1
    assert len(Bench(form="controlled").start().asked(ECHO)) == 4


def test_the_read_only_form_reads_and_cannot_command() -> None:
    bench = Bench("managed-shuffler", form="reader")
    bench.happen("door", open=True)
    bench.start()
    bench.run(1.0)
    assert bench.kinds == ["link_up", "door"]
    assert {(m.op, m.group) for m in bench.requests} == {
        (Op.WRITE, 0),
        (Op.READ, 64),
        (Op.READ, 65),
        (Op.READ, 66),
    }
    assert not hasattr(bench.driver, "command")


# The decoder of captures


def decode(name: str, *vectors: str, take: Callable[[bytes], list[bytes]] | None = None) -> Any:
    driver = load(name).decoder(Setup("dev", Random(1)))
    data = b"".join(golden_wire(v) for v in vectors)
    chunks = take(data) if take else [data]
    events = [e for chunk in chunks for e in driver.feed(chunk, 0.0)]
    return [*events, *driver.lost("end", 0.0)], driver.counters


def test_a_dump_of_answers_gives_their_events() -> None:
    every = (
        "identity",
        "identity answer",
        "settings answer",
        "events since 41",
        "events answer",
        "shoe status answer",
    )
    for take in (None, lambda d: [d[at : at + 1] for at in range(len(d))]):
        events, counters = decode("managed-shoe", *every, take=take)
        assert [(e.kind, e.seq) for e in events] == [("card_drawn", 41), ("cut_card", 42), ("card_drawn", 43)]
        assert counters.frames == 6


def test_an_event_answered_twice_in_a_dump_is_told_once() -> None:
    events, counters = decode("managed-shoe", "events answer", "events answer")
    assert len(events) == 3
    assert counters.repeats == 3


def test_commands_in_a_dump_are_seen_and_their_ends_too() -> None:
    names = (
        "echo",
        "echo answer",
        "start",
        "start answer",
        "start refused, door open",
        "lock",
        "error of version 0",
    )
    events, counters = decode("managed-shuffler", *names)
    told = [to_json(e, at=None, masked=False) for e in events]
    assert [t["kind"] for t in told] == [
        "command_seen", "command_done", "command_refused", "command_seen", "command_refused",
    ]  # fmt: skip
    assert (told[0]["command"], told[0]["args"]) == ("start", [f"token={TOKEN.hex()}"])
    assert (told[2]["code"], told[2]["name"]) == ("6", "door or lid open")
    assert (told[4]["code"], told[4]["name"]) == ("1", "unknown command")
    assert counters.frames == 7


def test_a_dump_tells_a_restart_and_what_is_missing() -> None:
    def ring(boot: int, first: int, last: int) -> bytes:
        entries = [{"n": n, "t": 0, "k": "cut"} for n in range(first, last + 1)]
        return frame(1, EVENTS, 0, {"boot": boot, "oldest": 1, "next": last + 1, "events": entries})

    driver = load("managed-shoe").decoder(Setup("dev", Random(1)))
    events = [*driver.feed(ring(1, 5, 6) + ring(1, 9, 9) + ring(2, 1, 1), 0.0)]
    assert [e.kind for e in events] == [
        "cut_card", "cut_card", "gap_possible", "cut_card", "rebooted", "cut_card",
    ]  # fmt: skip
    assert events[2].missing == 2


def test_events_that_the_host_left_out_are_no_gap_and_no_event_is_hidden_by_its_questions() -> None:
    """Host and device are framed apart: a question may fall into the middle of an answer."""

    def ring(*numbers: int) -> bytes:
        entries = [{"n": n, "t": 0, "k": "cut"} for n in numbers]
        return frame(1, EVENTS, 0, {"boot": 1, "oldest": 1, "next": 100, "events": entries})

    driver = load("managed-shoe").decoder(Setup("dev", Random(1)))
    assert isinstance(driver, HearsHost)
    events = [*driver.feed(ring(1)[:9], 0.0), *driver.feed_host(frame(0, EVENTS, 0, {"since": 7}), 0.0)]
    events += driver.feed(ring(1)[9:] + ring(7), 0.0)
    assert [(e.kind, e.seq) for e in events] == [("cut_card", 1), ("cut_card", 7)]
    driver.feed_host(frame(0, EVENTS, 0, {"since": 90}), 0.0)
    assert [(e.kind, e.seq) for e in driver.feed(ring(8), 0.0)] == [("cut_card", 8)]
    assert [(e.kind, e.seq) for e in driver.feed(ring(92), 0.0)] == [("gap_possible", None), ("cut_card", 92)]


def test_a_dump_of_two_devices_keeps_their_numbers_apart() -> None:
    who = golden_body("identity answer")
    ring = {"boot": 7, "oldest": 1, "next": 2, "events": [{"n": 1, "t": 0, "k": "cut"}]}
    data = b"".join(
        frame(1, IDENTITY, 0, {**who, "serial": serial}) + frame(1, EVENTS, 0, ring) for serial in "AB"
    )
    driver = load("managed-shoe").decoder(Setup("dev", Random(1)))
    assert [e.kind for e in driver.feed(data, 0.0)] == ["cut_card", "cut_card"]


@pytest.mark.parametrize("tag", [36, 257, 0, 1, 2, 4, 30, 35, 37, 258, 260, 43000, 70000])
@pytest.mark.parametrize("value", [1, "x", b"x", [1, 2], [[1]], None])
def test_no_tag_in_a_dump_is_more_than_a_tag(tag: int, value: Any) -> None:
    ring = {
        "boot": 7, "oldest": 1, "next": 2,
        "events": [{"n": 1, "t": 0, "k": "cut", "x": cbor2.CBORTag(tag, value)}],
    }  # fmt: skip
    driver = load("managed-shoe").decoder(Setup("dev", Random(1)))
    (event,) = driver.feed(frame(1, EVENTS, 0, ring), 0.0)
    assert (event.kind, event.raw) == ("cut_card", cbor2.dumps(ring["events"][0], canonical=True))


def test_a_dump_with_a_broken_answer_rejects_it() -> None:
    driver = load("managed-shoe").decoder(Setup("dev", Random(1)))
    (event,) = driver.feed(frame(1, EVENTS, 0, {"boot": 1}), 0.0)
    assert (event.kind, event.reason) == ("frame_rejected", "events are no list")
