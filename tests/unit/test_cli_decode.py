import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from controller.cli.app import app
from controller.cli.exits import CommandError

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


def test_pcapng_belongs_to_a_later_version() -> None:
    done = run("--driver", "angel-eye", "--format", "pcapng", "x.pcapng")
    assert isinstance(done.exception, CommandError)
    assert done.exception.code == 2
    assert "raw or --format hex" in str(done.exception)


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
