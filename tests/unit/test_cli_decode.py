import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import cbor2
import pytest
from typer.testing import CliRunner, Result

from controller.cli import decode as decode_module
from controller.cli import event_lines
from controller.cli import monitor as monitor_module
from controller.cli.app import app
from controller.cli.exits import CommandError
from firmware_bridge.framing import smp_console

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "angel_eye.json").read_text())
ROUND_TRIP = b"".join(bytes.fromhex(v["hex"]) for v in VECTORS["round_trip"])


def run(*args: str, data: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["decode", *args], input=data)


def lines(*args: str, data: bytes | None = None) -> list[dict[str, Any]]:
    done = run(*args, "--json", data=data)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_round_trip_from_a_file_with_its_summary(tmp_path: Path) -> None:
    file = tmp_path / "shoe.bin"
    file.write_bytes(ROUND_TRIP)
    *events, summary = lines("--driver", "angel-eye", str(file))
    assert summary == {
        "kind": "summary", "frames": 18, "events": 18, "repeats": 0, "rejected": 0, "bytes": len(ROUND_TRIP),
    }  # fmt: skip
    assert [e["raw"] for e in events] == [v["hex"] for v in VECTORS["round_trip"]]
    assert [e["seq"] for e in events] == [v["seq"] for v in VECTORS["round_trip"]]
    assert [e["n"] for e in events] == list(range(1, 19))
    assert {(e["device"], e["at"]) for e in events} == {("angel-eye", None)}
    assert events[2] == {
        "kind": "card_drawn", "device": "angel-eye", "n": 3, "at": None,
        "raw": "053344c0b3033037", "seq": "3",
        "card": "3S", "position": "first_card", "index": 0, "in_game": True, "face_up": False, "back": None,
    }  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda v: v["meaning"])
def test_every_vector_runs_alone_and_rejects_are_no_failure(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    *events, summary = lines("--driver", "angel-eye", "-", data=data)
    assert (events[0]["kind"] == "frame_rejected") is not vector["good"]
    assert summary["rejected"] == (0 if vector["good"] else 1)
    assert summary["events"] == len(events)
    assert summary["bytes"] == len(data)
    text = f"{vector['hex']}  # {vector['meaning']}\n".encode()
    assert lines("--driver", "angel-eye", "--format", "hex", "-", data=text) == [*events, summary]


def test_copies_at_line_rate_are_repeats() -> None:
    *events, summary = lines("--driver", "angel-eye", "-", data=bytes.fromhex("053343033733") * 3)
    assert [e["kind"] for e in events] == ["cut_card"]
    assert (summary["frames"], summary["repeats"]) == (3, 2)


def test_a_copy_after_400_ms_of_bytes_at_line_rate_is_a_new_event() -> None:
    one, filler = bytes.fromhex("053343033733"), b"\x00" * 200  # 200 bytes take 417 ms at 4800 bit/s
    *events, summary = lines("--driver", "angel-eye", "-", data=one + filler + one)
    assert [e["kind"] for e in events] == ["cut_card", "frame_rejected", "gap_possible", "cut_card"]
    assert summary["repeats"] == 0


def test_hex_text_may_hold_white_space_comments_and_split_bytes() -> None:
    text = b"# a cutting card\n05 33 4\n3 03\t37 33 # end\n\n"
    assert [e["kind"] for e in lines("--driver", "angel-eye", "--format", "hex", "-", data=text)] == [
        "cut_card", "summary",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [(b"05 31\n0x44", "standard input, line 2: '0x44' is no hex"), (b"05 3", "an odd number of hex digits")],
)
def test_bad_hex_is_one_clear_error(text: bytes, says: str) -> None:
    done = run("--driver", "angel-eye", "--format", "hex", "-", data=text)
    assert isinstance(done.exception, CommandError)
    assert done.exception.code == 2
    assert says in str(done.exception)
    assert done.stdout == ""


def test_an_unknown_driver_is_answered_with_the_nearest() -> None:
    done = run("--driver", "angle-eye", "-", data=b"")
    assert isinstance(done.exception, CommandError)
    assert "did you mean 'angel-eye'" in str(done.exception)


def test_text_is_aligned_and_ends_with_the_summary() -> None:
    done = run("--driver", "angel-eye", "-", data=ROUND_TRIP + b"\xaa\xbb")
    *events, summary = done.stdout.splitlines()
    assert events[6] == "     7       7  card_drawn          card=4S position=player index=1"
    assert events[10] == "    11       2  game_result         outcome=player"
    assert events[18] == "    19       -  frame_rejected      reason=noise bytes=2 raw=aabb"
    assert summary == f"18 frames, 19 events, 0 repeats, 1 rejected, {len(ROUND_TRIP) + 2} bytes"
    assert "\x1b" not in done.stdout


def test_an_empty_file_has_a_summary_of_zeros() -> None:
    (summary,) = lines("--driver", "managed-shoe", "-", data=b"")
    assert summary == {"kind": "summary", "frames": 0, "events": 0, "repeats": 0, "rejected": 0, "bytes": 0}


def test_100_kb_of_noise_before_a_frame_cost_nothing_of_it() -> None:
    noise = bytes(b for b in range(256) if b not in (0x02, 0x05)) * 400
    *events, summary = lines(
        "--driver", "angel-eye", "-", data=b"\x00" + noise + bytes.fromhex("05314481b8033446")
    )
    assert [e["kind"] for e in events] == ["frame_rejected", "card_drawn"]
    assert events[0]["bytes"] == len(noise) + 1
    assert len(events[0]["raw"]) == 128
    assert summary["rejected"] == 1


@pytest.mark.parametrize("data", [b"\x06" * 300_000, Random(3).randbytes(500_000)], ids=["acks", "noise"])
def test_a_long_dump_of_nothing_takes_seconds(data: bytes) -> None:
    """The time of one byte does not grow with those before it: twice as many cost twice the time."""
    times = []
    for part in (data[: len(data) // 2], data):
        start = time.process_time()
        (*_, summary) = lines("--driver", "angel-eye", "-", data=part)
        times.append(time.process_time() - start)
        assert summary["bytes"] == len(part)
    assert times[1] < 3 * times[0] + 0.2
    assert times[1] < 8.0


def test_progress_goes_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_module, "PROGRESS_S", 0.0)
    done = run("--driver", "angel-eye", "-", data=ROUND_TRIP)
    assert done.stderr == f"{len(ROUND_TRIP)} bytes decoded, 18 events\n"
    assert "decoded" not in done.stdout


def test_hex_text_of_any_length_is_read() -> None:
    text = b" ".join(b"%02x" % byte for byte in b"\x00" * 100_000)
    (event, summary) = lines("--driver", "angel-eye", "--format", "hex", "-", data=text)
    assert (event["bytes"], summary["bytes"]) == (100_000, 100_000)


def test_hex_text_without_end_is_refused_before_memory_is_full() -> None:
    done = run("--driver", "angel-eye", "--format", "hex", "/dev/zero")
    assert isinstance(done.exception, CommandError)
    assert "more than 64 MiB" in str(done.exception)


ESCAPES = "a\x1b[2Jb\rc\x9b31md\u202ee"
HIDDEN = ("\x1b", "\r", "\x9b", "\u202e", "\x7f")


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_no_terminal_escape_of_a_device_reaches_the_terminal(form: list[str]) -> None:
    done = run("--driver", "managed-shoe", *form, "-", data=(ESCAPES + "\n").encode())
    assert "chatter" in done.stdout
    assert not any(c in done.stdout for c in HIDDEN)


def test_texts_and_maps_are_escaped_wherever_they_stand() -> None:
    event = {
        "kind": "link_up", "n": 1, "at": None, "seq": "\x1b", "raw": None,
        "identity": {"serial": "S\x7f\x9b"}, "missing": ["\x1b[0m"], "name": "x\x7f",
    }  # fmt: skip
    text = event_lines.as_text(event, colour=False)
    assert text.isprintable()
    assert "\\x1b" in text
    assert json.loads(event_lines.as_json(event)) == event
    assert event_lines.as_json(event).isprintable()


CUTCARD = [sys.executable, "-c", "from controller.cli.app import main; main()"]


@pytest.mark.parametrize(
    ("redirect", "says"), [("<&-", "standard input is closed"), (">&-", "standard output is closed")]
)
@pytest.mark.parametrize("form", ["raw", "hex"])
def test_a_closed_stream_is_one_sentence(redirect: str, says: str, form: str) -> None:
    command = shlex.join([*CUTCARD, "decode", "--driver", "angel-eye", "--format", form, "-"])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} {redirect}"], input="", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert says in done.stderr


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_a_terminal_that_knows_ascii_only_gets_every_event(form: list[str]) -> None:
    done = subprocess.run(
        [*CUTCARD, "decode", "--driver", "managed-shoe", *form, "-"],
        input="gr\u00fc\u00df \U0001f0a1\n".encode(), capture_output=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    first = done.stdout.splitlines()[0]
    if form:
        assert json.loads(first)["text"] == "gr\u00fc\u00df \U0001f0a1"
    else:
        assert b"gr\\xfc\\xdf" in first


def test_only_garbage_and_text_are_cut_to_64_bytes() -> None:
    entry = {"n": 1, "t": 0, "k": "cut", "x": "y" * 200}
    body = cbor2.dumps({"boot": 1, "oldest": 1, "next": 2, "events": [entry]})
    head = bytes([9, 0]) + len(body).to_bytes(2, "big") + bytes([0, 65, 0, 0])
    broken = head[:-1] + b"\x01" + b"\xff" * len(body)
    data = smp_console.encode(head + body) + b"z" * 200 + b"\n" + smp_console.encode(broken)
    cut, chatter, rejected, _ = lines("--driver", "managed-shoe", "-", data=data)
    assert [e["kind"] for e in (cut, chatter, rejected)] == ["cut_card", "chatter", "frame_rejected"]
    assert cut["raw"] == cbor2.dumps(entry, canonical=True).hex()
    assert (chatter["text"], chatter["raw"]) == ("z" * 200, b"z".hex() * 64)
    assert (rejected["raw"], rejected["bytes"]) == (broken[:64].hex(), len(broken))


def test_a_dump_of_a_managed_device() -> None:
    golden = {
        v["name"]: v for v in json.loads((Path(__file__).parents[1] / "vectors" / "managed.json").read_text())
    }
    data = b"".join(bytes.fromhex(line) + b"\n" for line in golden["events answer"]["lines"])
    *events, summary = lines("--driver", "managed-shoe", "-", data=data)
    assert [(e["kind"], e["seq"]) for e in events] == [
        ("card_drawn", 41),
        ("cut_card", 42),
        ("card_drawn", 43),
    ]
    assert (summary["frames"], summary["bytes"]) == (1, len(data))


def test_the_name_of_a_device_moves_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """What a USB device says of itself stands in the line that tells which port was opened."""
    monitor_module.note("listening on USB device 1209:0002 at 1-1, Shoe \x1b[2J, bulk")
    assert capsys.readouterr().err == "listening on USB device 1209:0002 at 1-1, Shoe \\x1b[2J, bulk\n"
