# SPDX-License-Identifier: Apache-2.0
"""A run says in its result and in its last line whether it repeats itself: for each cause, a
program that makes it appear; and programs that say yes.

depends.py VELO DEPENDS STUCK [WORD ...]
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MPI = ("-n", "2")
# By word: options, what runs, and the sentence; None: the run repeats itself.
RUNS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str | None]] = {
    "nothing": (MPI, (), None),
    "long": (MPI, (), None),
    "clock": (MPI, (), "rank . read a real clock, by SYS_clock_gettime"),
    "select": (MPI, (), r"rank . waited for files in real time, in select"),
    "poll": (MPI, (), r"rank . waited for files in real time, in poll"),
    "epoll": (MPI, (), r"rank . waited for files in real time, in epoll_wait"),
    "ppoll": (MPI, (), r"rank . waited for files in real time, in ppoll"),
    "pselect": (MPI, (), r"rank . waited for files in real time, in pselect"),
    "socket": (MPI, (), r"rank . made a socket, by socketpair"),
    "random": (MPI, (), "rank . asked the kernel for random numbers, by getrandom"),
    "open": (MPI, (), "rank . asked the kernel for random numbers, by /dev/urandom"),
    "fopen": (MPI, (), "rank . asked the kernel for random numbers, by /dev/urandom"),
    "signal": (MPI, (), "rank . sent or got a signal, by kill"),
    "computing": ((*MPI, "--compute", "measured"), (), r"\(--compute measured\)"),
    "addresses": (
        MPI,
        ("setarch", os.uname().machine),
        "rank . registered memory, and addresses are random",
    ),
    "late": (MPI, (), "rank . had a thread or process that virtual time no longer waited for"),
    "stranger": (MPI, (), "rank . has a thread or process that virtual time was not told of"),
    "fence": (MPI, (), "rank 1 polled in vain while others waited for their launcher"),
    "death": (MPI, (), "(rank 1|the program) ended with ports open, and others went on"),
    "aside": (("--plain",), (), "the program slept in the kernel, in futex, and others went on"),
    "error": (MPI, (), "the run was ended by an error"),
}
# What the program is told, where it is another word.
WORDS = {"addresses": "long", "error": "waits"}

velo, depends, stuck, *words = sys.argv[1:]
failed = []
for word in words or RUNS:
    options, before, sentence = RUNS[word]
    program = stuck if word == "error" else depends
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        argv = [velo, "sim", *options, "--json", str(result), "--", *before, program]
        argv += [WORDS.get(word, word)]
        done = subprocess.run(argv, timeout=200, check=False, text=True, capture_output=True)
        said = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    last = (done.stderr.strip().splitlines() or [""])[-1]
    because = "; ".join(said.get("because", ["no result"]))
    head = f"velo-sim: host {said.get('host')}; repeatable:"
    if sentence is None:
        is_right = said.get("repeatable") is True and last == f"{head} yes"
    else:
        is_right = said.get("repeatable") is False and bool(re.search(sentence, because))
        is_right = is_right and last == f"{head} no, because {because}"
    print(word, "ok" if is_right else "WRONG", because, flush=True)
    if not is_right:
        failed.append(word)
        print(done.returncode, done.stdout, done.stderr)
sys.exit(f"wrong: {', '.join(failed)}" if failed else 0)
