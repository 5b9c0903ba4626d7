"""A foreign client: smpmgr, as a program of its own, against `cutcard sim` on a pseudo-terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.support.desk import desk
from tests.support.firmware import IMAGE, NEW

SMPMGR = (
    "import json, sys; from smpmgr.main import app\n"
    "for words in json.loads(sys.argv.pop()): app(words, standalone_mode=False)"
)
"""Its commands one after the other in one process: loading it takes the most time."""


def smpmgr(port: Path, *commands: str) -> str:
    """What it prints. The simulator is a program too and needs nobody here."""
    words = [["--port", str(port), "--timeout", "10", *command.split()] for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", SMPMGR, json.dumps(words)],
        capture_output=True, text=True, timeout=40, check=False, env={"COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    return re.sub(r"\s+", " ", done.stdout)


def test_smpmgr_lists_echoes_uploads_and_resets(tmp_path: Path) -> None:
    file, port = tmp_path / "new.bin", tmp_path / "shoe"
    file.write_bytes(NEW)
    with desk() as bench:
        sim = bench.cutcard(
            *("sim", "managed-shoe", "--listen", f"pty:{port}"),
            *("--fault", "banner", "--fault", "no_parameters", "--fault", "pace:none"),
        )
        bench.until(lambda: len(sim.out) > 0)
        said = smpmgr(port, "image state-read", "os echo hello", f"image upload {file}", "image state-read")
        code, out, _ = bench.end_of(bench.cutcard("firmware", "list", f"serial:{port}", "--json"))
        assert "ResetWriteResponse" in smpmgr(port, "os reset")
        boot = json.loads(bench.end_of(bench.cutcard("identify", f"serial:{port}", "--json"))[1][0])["boot"]
    assert said.count("slot=0, version='1.0.0'") == 2
    assert "r='hello'" in said
    assert "100.0%" in said
    assert said.count(IMAGE.hash.upper()) == 1
    assert (code, json.loads(out[0])["answer"]["images"][1]["hash"]) == (0, IMAGE.hash)
    assert boot == 2
