# SPDX-License-Identifier: Apache-2.0
"""What a program of C++ says of its waits is right, and the same in two runs; what the cluster does
not have ends a run with a sentence.

futures.py VELO FUTURES
"""

import subprocess
import sys

# What each argument of the program asks for, as the sentence names it.
REFUSED = {
    "requeue": "FUTEX_REQUEUE",
    "wake_op": "FUTEX_WAKE_OP",
    "lock_pi": "a futex that lends priority",
    "waitv": "one of the newer calls of futexes",
}
LINES = 26  # A case each.


def run(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [velo, "sim", "-n", "1", "--", futures, *words], timeout=120, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, done.stdout


velo, futures = sys.argv[1:]
said = []
for _ in range(2):
    code, text = run()
    print(text)
    if code != 0:
        sys.exit(f"the run ended with {code}")
    said.append([line for line in text.splitlines() if line.endswith(" ns")])
if len(said[0]) != LINES:
    sys.exit(f"{len(said[0])} cases, not {LINES}")
if said[0] != said[1]:
    sys.exit("the two runs differ")
for word, name in REFUSED.items():
    code, text = run(word)
    if code == 0 or f"velo: the program asks the kernel for {name}" not in text:
        sys.exit(f"{word}: ended with {code}\n{text}")
