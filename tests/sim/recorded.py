# SPDX-License-Identifier: Apache-2.0
"""The result of the last run, for tests in which it has to be the same again.

Hashes cover every message's arrival, to the cycle: whatever changes the hardware, the library's
messages or the host model changes them, and is recorded with that change (--record). Another
release of Open MPI may send other messages, so a record names the release that it is for.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def release() -> str:
    """Of the Open MPI that mpirun is of."""
    said = subprocess.run(
        ["mpirun.openmpi", "--version"], capture_output=True, text=True, check=True
    ).stdout
    return said.splitlines()[0].strip()


def check(record: Path, found: Any) -> None:
    """Compare, or with --record write; ends the test if it differs."""
    recorded = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    if "--record" in sys.argv:
        record.write_text(json.dumps(recorded | {release(): found}, indent=2) + "\n")
    elif recorded.get(release(), found) != found:
        sys.exit(
            f"recorded for {release()}: {recorded[release()]}\nfound: {found}\n"
            "If that was meant: --record"
        )
