# SPDX-License-Identifier: Apache-2.0
"""Stands in for QEMU, virtiofsd and velo-sim in test_vm.py: fake_machine.py PROGRAM ARGUMENT...

As QEMU it is a guest that reports by the socket it is given, writes a kernel's log, and does what
$FAKE_GUEST says: `good` (prints, ends with 7), `well` (the same with 0), `refuses`, `dies`,
`warns`, `hangs`, `leaks`, `ends` (never checks itself). As velo-sim it offers its cards, starts its
command and goes on, or dies at once ($FAKE_SIMULATOR).
"""

import os
import re
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path


def main() -> None:
    program, *words = sys.argv[1:]
    {"qemu": guest, "virtiofsd": serve, "velo-sim": simulate}[program](words)


def guest(words: list[str]) -> None:
    ports = {}
    log = None
    for word in words:
        if found := re.fullmatch(r"socket,id=(\w+),fd=(\d+)", word):
            ports[found[1]] = socket.socket(fileno=int(found[2]))
        elif word.startswith("file:"):
            log = Path(word.removeprefix("file:"))
    assert log
    log.write_text("[ 0.1] Linux version of a fake\n")
    does = os.environ["FAKE_GUEST"] if log.name == "velo0.log" else "good"
    if does == "refuses":
        ports["report"].sendall(b"failed the card cannot be set up: no such thing\n")
        time.sleep(60)
    if does == "dies":
        log.write_text("[ 0.1] early\n[ 0.2] Kernel panic - not syncing: fake\n[ 0.3] late\n")
        print("qemu says why", file=sys.stderr)
        sys.exit(3)
    if does == "warns":
        log.write_text("[ 0.2] WARNING: CPU: 0 PID: 1 at fake.c:1\n")
    ports["report"].sendall(b"read")
    time.sleep(0.05)  # Words come in pieces.
    ports["report"].sendall(b"y 1.5\n")
    told = ports["report"].makefile("rb")
    assert told.readline() == b"go\n"
    if log.name == "velo0.log":
        ports["out"].sendall(b"to out\n")
        ports["err"].sendall(b"to err\n")
        if does == "babbles":
            ports["report"].sendall(os.environ["FAKE_WORDS"].encode() + b"\n")
        elif does != "hangs":
            ports["report"].sendall(b"end 0\n" if does == "well" else b"end 7\n")
    if told.readline() == b"check\n":
        if does == "leaks":
            log.write_text("[ 0.9] velo: fault: leak at the end: unreferenced object\n")
        if does != "ends":
            ports["report"].sendall(b"checked\n")
    time.sleep(60)


def serve(words: list[str]) -> None:
    time.sleep(60)


def simulate(words: list[str]) -> None:
    if os.environ.get("FAKE_SIMULATOR") == "dies":
        sys.exit("velo-sim: no model fits")
    held = []
    for option, value in pairwise(words):
        if option == "--card":
            held.append(socket.socket(socket.AF_UNIX))
            held[-1].bind(value.partition("=")[2])
    if "--" in words:
        subprocess.Popen(words[words.index("--") + 1 :])
    time.sleep(60)


if __name__ == "__main__":
    main()
