# SPDX-License-Identifier: Apache-2.0
"""Which shared libraries a program loads, and where the dynamic loader finds them."""

import re
from collections.abc import Mapping
from pathlib import Path

from velo.runtime import asking

ELF64 = b"\x7fELF\x02\x01"
PROGRAM_HEADERS_MAX = 64
INTERPRETER = 3
"""Type of the program header that names the dynamic loader."""


def libraries(program: str) -> Mapping[str, str]:
    """The path of each, by its name; none for a script, or where it cannot be known.

    The program's own loader is asked, as ldd does it, and nothing of the program runs.
    """
    question = ask(program)
    listed = question.answer() if question else ""
    return dict(re.findall(r"^\s*(\S+) => (\S+) \(", listed, re.MULTILINE))


def ask(program: str) -> asking.Question | None:
    """Ask its loader; None: it has none."""
    loader = find_loader(program)
    return asking.ask(loader, "--list", program) if loader else None


def find_loader(program: str) -> str | None:
    """The dynamic loader that a program names; None for a script, and for a static program."""
    try:
        with Path(program).open("rb") as file:
            head = file.read(64)
            if len(head) < 64 or not head.startswith(ELF64):
                return None
            at, size, count = (int.from_bytes(head[a:b], "little")
                               for a, b in ((32, 40), (54, 56), (56, 58)))  # fmt: skip
            file.seek(at)
            table = file.read(size * min(count, PROGRAM_HEADERS_MAX))
            for start in range(0, len(table), size or 1):
                entry = table[start : start + size]
                if int.from_bytes(entry[:4], "little") == INTERPRETER:
                    file.seek(int.from_bytes(entry[8:16], "little"))
                    return file.read(4096).partition(b"\0")[0].decode(errors="replace")
    except OSError:
        pass
    return None
