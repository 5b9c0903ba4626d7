"""The campaign of CI: `make campaign`. What fails names its seed.

300 shoes from a new seed must end in zeros, with enough kinds of fault and some restarts. The first of them
are then played again in one process and in two, and with the `cutcard` of another Python given as argument on
that: not a byte differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from simulators.rig.campaign.result import COUNTED

SHOES, AGAIN = 300, 12
LEAST_KINDS = 40
CUTCARD = Path(sys.executable).with_name("cutcard")


def played(cutcard: Path | str, *args: object) -> bytes:
    """What a campaign printed; what it says on stderr goes through."""
    done = subprocess.run(
        [cutcard, "campaign", "--faults", "all", "--json", *map(str, args)],
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode not in (0, 1):
        sys.exit(f"cutcard campaign ended with {done.returncode}")
    return done.stdout


def problems(told: dict[str, Any]) -> list[str]:
    """What is wrong with a campaign of 300 shoes."""
    found = [f"{name}: {told[name]}" for name in COUNTED if told[name]]
    for failure in told["failures"]:
        found += [f"shoe {failure['shoe']}: {failure['what']}\n  again: {failure['replay']}"]
        found += [f"{failure['table']}:\n{failure['script']}"] if "script" in failure else []
    if told["shoes"] != SHOES:
        found.append(f"{told['shoes']} shoes were begun instead of {SHOES}")
    if told["kinds"] < LEAST_KINDS:
        found.append(f"{told['kinds']} kinds of fault struck; {LEAST_KINDS} must")
    if told["restarts"] == 0:
        found.append("the daemon was never restarted")
    return found


def main() -> None:
    told = json.loads(played(CUTCARD, "--shoes", SHOES))
    found = problems(told)
    seed = told["seed"]
    once = played(CUTCARD, "--shoes", AGAIN, "--seed", seed, "--workers", 1)
    for cutcard in (CUTCARD, *sys.argv[1:]):
        if played(cutcard, "--shoes", AGAIN, "--seed", seed, "--workers", 2) != once:
            found.append(f"{cutcard}: the first {AGAIN} shoes of seed {seed} are others with two workers")
    shown = {name: value for name, value in told.items() if name not in ("failures", "faults_injected")}
    print(json.dumps(shown))
    sys.exit("\n".join(found) or os.EX_OK)


if __name__ == "__main__":
    main()
