# SPDX-License-Identifier: Apache-2.0
"""A free-threaded Python, if PATH has one, is refused with a sentence, however it gets there.

Such a Python takes the compiled modules for its own, and reads them wrong. test_messages.py can
only pretend to be one.
"""

import os
import shutil
import subprocess
import sys

PYTHONS = ("python3.14t", "python3.13t")
WAYS_IN = ("import velo; velo.Queue", "import velo.binding", "import velo.binding.queue")
NO_VERDICT = 77


def main() -> int:
    pythons = [found for name in PYTHONS if (found := shutil.which(name))]
    if not pythons:
        print(f"none of {', '.join(PYTHONS)} is there")
        return NO_VERDICT
    wrong = 0
    for python in pythons:
        for way_in in WAYS_IN:
            for gil in ("0", "1"):
                program = (
                    f"try: {way_in}\nexcept ImportError as error: print(error)\nimport velo.cli"
                )
                done = subprocess.run(
                    [python, "-c", program],
                    env=os.environ | {"PYTHON_GIL": gil},
                    capture_output=True,
                    text=True,
                )
                is_right = done.returncode == 0 and "in a free-threaded Python" in done.stdout
                wrong += not is_right
                print(f"{python} with PYTHON_GIL={gil}, {way_in}: {done.stdout.strip()}")
                if not is_right:
                    print(f"WRONG: it ended with {done.returncode}: {done.stderr.strip()}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
