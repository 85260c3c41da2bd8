# SPDX-License-Identifier: Apache-2.0
"""Fail if a hot call costs more from C++ than from C, beyond a few instructions.

Callgrind counts the instructions of each function c_* and cpp_* of the program, with all that they
call. What C++ adds by design: the handle is loaded from its object, a message that was not received
has zeros to show, and a message that is held is known to its port.

Usage: cost.py PROGRAM
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
# Instructions that C++ may add to a call. With gcc 12 it adds 6, 6, 13 and 3, and 1 to the others.
MORE_MAX = {"recv": 12, "try_recv": 12, "peek": 20, "reserve": 6}
MORE_MAX_OTHERS = 3


def read_profile(text: str) -> dict[str, tuple[int, int]]:
    """Of each function called c_* or cpp_*: the calls and their instructions, all together."""
    counts: dict[str, tuple[int, int]] = {}
    callee, calls = "", 0
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "cfn":
            callee = value
        elif key == "calls":
            calls = int(value.split()[0])
        elif calls:  # The line of the call, and what it has cost.
            if callee.startswith(("c_", "cpp_")):
                before = counts.get(callee, (0, 0))
                counts[callee] = (before[0] + calls, before[1] + int(line.split()[1]))
            calls = 0
    return counts


def main() -> int:
    """Count, show, and compare with the limits."""
    (program,) = sys.argv[1:]
    if not shutil.which("valgrind"):
        print("skipped: there is no valgrind; scripts/setup test installs it")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile"
        command = [
            "valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
            f"--callgrind-out-file={profile}", program,
        ]  # fmt: skip
        # Lazy binding would add the linker's work to the first call.
        settings = {"LD_BIND_NOW": "1", "VELO_DOMAIN": f"cppcost{os.getpid()}"}
        done = subprocess.run(
            command, env=os.environ | settings, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        counts = read_profile(profile.read_text())
    names = [name.removeprefix("c_") for name in counts if name.startswith("c_")]
    each = {name: instructions / calls for name, (calls, instructions) in counts.items()}
    bad = not names
    for name in names:
        more = each[f"cpp_{name}"] - each[f"c_{name}"]
        limit = MORE_MAX.get(name, MORE_MAX_OTHERS)
        bad |= more > limit
        print(f"{name}: {each[f'c_{name}']:.1f} in C, {more:+.1f} in C++, at most {limit:+}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
