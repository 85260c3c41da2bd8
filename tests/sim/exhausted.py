# SPDX-License-Identifier: Apache-2.0
"""A table that is full is an error: before the run, where the number is known by then, else a
clear end.

exhausted.py VELO DEPENDS
"""

import re
import resource
import subprocess
import sys
from collections.abc import Sequence

PLAIN = ("sim", "--plain")
FILES = 200


def few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


def run(*words: str, limit: bool = False) -> tuple[int, str]:
    done = subprocess.run(
        words, timeout=120, check=False, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, preexec_fn=few_files if limit else None,
    )  # fmt: skip
    return done.returncode, done.stdout


def cases(depends: str) -> Sequence[tuple[str, Sequence[str], int, str]]:
    """What there is too little of, a command behind `velo`, its exit code, and what it says."""
    return (
        ("nodes of the RTL", ("sim", "--topology", "torus:8x8x8", "--", "true"), 2,
         "512 nodes: the RTL has ids for 256; use --model fast"),
        ("nodes", ("sim", "--model", "fast", "--topology", "torus:17x17x17", "--", "true"), 2,
         "4913 nodes, node ids end at 4095"),
        ("contexts", ("sim", "--ranks-a-node", "257", "--", "true"), 2,
         "a node of a cluster of 2 has 256 contexts"),
        ("contexts of many nodes",
         ("sim", "--model", "fast", "--topology", "torus:8x8x8", "--ranks-a-node", "129", "--",
          "true"), 2, "a node of a cluster of 512 has 128 contexts"),
        ("ranks", ("sim", "-n", "40", "--ranks-a-node", "20", "--threads-max", "32", "--", "true"),
         2, "40 ranks: the cluster has room for 32 threads and processes"),
        ("threads", (*PLAIN, "--threads-max", "16", "--", depends, "threads"), 70,
         "room for 16 threads and processes of all ranks together.*--threads-max(.|\n)*"
         "repeatable: no, because .*the run was ended by a full table"),
        ("boards", ("sim", "--dimmnet", "17", "--", "true"), 2, "give 1 to 16 boards"),
    )  # fmt: skip


velo, depends = sys.argv[1:]
failed = []
for what, command, status, sentence in cases(depends):
    code, said = run(velo, *command)
    if code != status or not re.search(sentence, said):
        failed.append((what, code, said))
code, said = run(velo, "sim", "-n", "100", "--ranks-a-node", "50", "--", "true", limit=True)
if code != 1 or f"may have {FILES}; raise that" not in said:
    failed.append(("files", code, said))
for fail in failed:
    print(*fail)
sys.exit(1 if failed else 0)
