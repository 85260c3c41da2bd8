#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the rules of the house that no compiler checks.

Dependencies point one way (docs/internals/architecture.md), atomics live in one file, every source
file names its licence, an example stays short. Prints one line a violation and fails if there is
any.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Which areas a folder's sources may include from, beside its own. An area is the longest folder
# here that a file lies in; a rule that names "lib" allows all areas in it. "spec" is the generated
# <velo/spec.h>.
LIB_API = {"include", "spec", "lib/base"}
MAY_INCLUDE = {
    "spec": set(),
    "include": {"spec"},
    "lib/base": {"include", "spec"},
    "lib/shm": LIB_API,
    "lib/core": LIB_API | {"lib/shm"},
    "lib/net": LIB_API | {"lib/shm", "lib/core"},
    "lib/rma": LIB_API | {"lib/shm", "lib/core"},
    "lib/mq": LIB_API | {"lib/shm", "lib/core", "lib/rma"},
    "lib/bcast": LIB_API | {"lib/shm", "lib/core"},
    "lib/dimmnet": LIB_API | {"lib/shm", "lib/core"},
    "lib": {"include", "spec"},
    "transports": {"include", "spec", "lib"},
    "transports/common": {"include", "spec"},
    "transports/faults": {"include", "spec"},
    "transports/loop": {"include", "spec", "transports/common"},
    "transports/ofi": {"include", "spec", "transports/common"},
    "transports/card": {"include", "spec", "transports/common"},
    "bindings": {"include", "spec"},
    "bindings/cpp": {"include", "spec"},
    "adapters": {"include", "spec"},
    "adapters/extoll": {"include", "spec"},
    "adapters/libfabric": {"include", "spec"},
    "adapters/libfabric/test": {"include", "spec", "tests"},
    "adapters/openmpi": {"include", "spec"},
    "tools/inspect": {"include", "spec", "tools/perf"},
    "tools/perf": {"include", "spec", "adapters/extoll"},
    "examples": {"include", "spec", "adapters/extoll", "bindings/cpp"},
    "sim": {"spec"},
    "sim/client": {"spec"},
    "sim/preload": {"include", "spec", "sim/client"},
    "sim/test": {"spec", "sim", "sim/client"},
    "driver": {"spec"},
    # One suite for every engine: it must not know the inside of any.
    "tests/conformance": {"include", "spec", "tests"},
    "tests/dimmnet": {"include", "spec", "tests"},
    "tests": {"include", "spec", "lib", "adapters/extoll", "bindings/cpp"},
}
LIBFABRIC = "adapters/libfabric"
# Headers that every area may include, and why.
FOR_ALL = {
    "lib/base/fd.h": "twenty lines over the system's headers, without a link; a descriptor that a "
    "component opens must not be 0, 1 or 2 either",
    "adapters/linger.h": "one number, which all adapters share",
}
# In these folders the files, too, stand above each other. A module is X.c and X.h. An arrow runs
# from a module to another whose header it includes, or one of whose functions or tables it names in
# a body. An arrow runs upward if it closes a circle: one that is found when all others are followed
# from the modules that nobody uses.
LAYERED = (
    "lib/base", "lib/bcast", "lib/core", "lib/dimmnet", "lib/mq", "lib/net", "lib/rma", "lib/shm",
    "transports/card", "transports/common", "transports/dimmnet", "transports/faults",
    "transports/loop", "transports/nic", "transports/ofi",
)  # fmt: skip
# A job that two of these do is common's. At most TWICE_MAX lines may lie in runs of TWICE_RUN or
# more that two of them have alike; comments, blank lines, lone braces and includes do not count.
WRITTEN_ONCE = ("transports/card", "transports/common", "transports/nic", "transports/ofi")
TWICE_RUN = 3
TWICE_MAX = 30
# A file that may reach one header more, and why.
EXCEPTIONS = {
    ("tools/inspect/info.c", "lib/shm/inspect.h"): "looks at segments without a port of its own",
    ("tools/inspect/info.c", "lib/bcast/inspect.h"): "looks at rings without taking part",
    ("tools/inspect/info.c", "lib/base/copy.h"): "shows how long payloads are copied",
    ("tools/inspect/info.c", "lib/mq/ways.h"): "shows which messages are fetched",
    ("tools/inspect/clean.c", "lib/shm/inspect.h"): "takes away segments that nobody owns",
    (f"{LIBFABRIC}/test/info.c", f"{LIBFABRIC}/older.h"): "asks for what newer headers do not name",
    (
        f"{LIBFABRIC}/test/owner.c",
        f"{LIBFABRIC}/owner.h",
    ): "is the owner that the provider declares",
    ("transports/loop/loop.c", "lib/net/transport.h"): "is what a transport is written against",
    ("transports/faults/faults.c", "lib/net/transport.h"): "is bad in what that permits",
    ("transports/faults/queue.h", "lib/net/transport.h"): "keeps its frames",
    ("transports/common/envelope.h", "lib/net/transport.h"): "is what stands before its frames",
    ("transports/common/ports.h", "lib/net/transport.h"): "keeps what that tells of ports",
    ("transports/card/card.h", "transports/nic/host_io.h"): "works by the same host port",
    ("transports/card/card.h", "transports/nic/recombine.h"): "gets lines that the host split, too",
    ("transports/card/store.c", "lib/base/order.h"): "reads a ring that the node writes",
    ("transports/card/fetch.c", "lib/base/order.h"): "reads a queue that the node writes",
    ("tests/card_transport/stranger.h", "transports/card/wire.h"): "sends what is wrong",
    ("tests/card_transport/stranger.c", "transports/nic/host_io.h"): "has a context of its own",
    ("tests/card_transport/stranger.c", "transports/nic/recombine.h"): "sends the right check",
    ("transports/common/patience.h", "lib/net/transport.h"): "fails with the library's sentences",
    ("tests/nic/driver.c", "driver/include/uapi/linux/velo.h"): "answers in place of a driver",
    ("tests/transport/queue.c", "transports/faults/queue.h"): "adds and takes frames by itself",
    ("tests/ofi_transport/packing.c", "transports/ofi/ofi.h"): "has packet.c with its own fabric",
    ("tests/ofi_transport/stranger.h", "transports/ofi/wire.h"): "sends what no correct peer does",
    ("transports/nic/driver.c", "driver/include/uapi/linux/velo.h"): "calls the driver",
    ("transports/nic/sim.c", "sim/client/poll.h"): "is the back that reaches the simulator",
    ("transports/dimmnet/sim.c", "sim/client/channel.h"): "is the back that reaches the simulator",
}
# System headers that only these areas may include.
SYSTEM_HEADERS = {
    "mpi.h": {"adapters/openmpi", "tools/perf", "tests"},
    "linux/module.h": {"driver"},
}
# Where a quoted name may lie if not beside the file.
INCLUDE_ROOTS = (
    "include", "bindings/cpp", "adapters/extoll", "lib", "tests/support", "tools/perf",
    "adapters/openmpi", "adapters/libfabric", "sim", "driver",
)  # fmt: skip

# Headers that are generated at configure time.
GENERATED = {"velo/spec.h": "spec/velo.toml", "velo/dimmnet_spec.h": "spec/dimmnet.toml"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)', re.MULTILINE)

# Where these areas have their atomics.
ATOMICS_HOMES = {
    "lib": "lib/base/order.h",
    "transports": "lib/base/order.h",
    "adapters/extoll": "adapters/extoll/turn.h",
    "sim/client": "sim/client/order.h",
    "sim/preload": "sim/client/order.h",
}
# Assembly that orders nothing: a system call.
SYSTEM_CALLS = "sim/client/raw.h"
# (Assembly with operands that is not volatile can be no fence: the compiler may move it.)
ATOMICS = re.compile(
    r"__atomic_\w+|__sync_\w+|\batomic_\w+|\b_Atomic\b|\b(?:__)?asm(?:__)?(?:\s+(?:__)?volatile|\s*\(\s*\))"
    r"|\b_mm_(?:pause|[lms]fence)\b|__builtin_ia32_(?:pause|[lms]fence)\b|\bstdatomic\.h\b"
)
EXAMPLE_LINES_MAX = {".c": 70, ".cc": 70, ".rs": 70, ".py": 50}
# A stage of the tutorial: its page shows what is new in it.
STAGE_LINES_MAX = {".c": 130, ".cc": 130, ".rs": 130, ".py": 75}
SPDX = "SPDX-License-Identifier: Apache-2.0"
# What is, or may be, a part of Linux names its licence, too.
SPDX_LINUX = {
    "driver/include/uapi": (
        "SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0"
    ),
    "driver": "SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0",
}
SPDX_WITHIN_LINES = 3
C_SUFFIXES = {".c", ".h", ".cc", ".cpp", ".hpp"}
SOURCE_SUFFIXES = C_SUFFIXES | {
    ".sv", ".svh", ".py", ".rs", ".cmake", ".toml", ".pml", ".j2", ".in",
}  # fmt: skip
SOURCE_NAMES = {"CMakeLists.txt", "Makefile"}
SKIPPED_FOLDERS = {"build", "target", "__pycache__", "corpus"}


def source_files(root: Path) -> Iterator[Path]:
    """Every source file below `root`, as a path relative to it; generated folders are left out."""
    for path in sorted(root.iterdir()):
        hidden = path.name.startswith(".") and path.name != ".ci"
        if hidden or path.name in SKIPPED_FOLDERS or path.is_symlink():
            continue
        if path.is_dir():
            yield from (path.relative_to(root) / below for below in source_files(path))
        elif path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES or _is_script(path):
            yield path.relative_to(root)


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def without_comments(text: str) -> str:
    """C source with comments and string contents blanked; line numbers stay."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    # An include's name is a string too, and must stay readable.
    token = r'^[ \t]*#[ \t]*include[^\n]*|/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"'
    return re.sub(
        token,
        lambda match: match[0] if match[0].lstrip().startswith("#") else blank(match),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )


def _included_from(root: Path, file: Path, name: str, quoted: bool) -> Path | None:
    if name in GENERATED:
        return Path(GENERATED[name])
    folders = [Path(folder) for folder in INCLUDE_ROOTS]
    for folder in [file.parent, *folders] if quoted else folders:
        candidate = root / folder / name
        if candidate.is_file():
            return candidate.resolve().relative_to(root.resolve())
    return None


def includes(root: Path, file: Path, code: str) -> Iterator[tuple[int, str, Path | None]]:
    """Each #include of a file: its line, its name, and the file of this tree that it reaches;
    None for one of the system."""
    for match in INCLUDE.finditer(code):
        line = code.count("\n", 0, match.start(2)) + 1
        yield line, match[2], _included_from(root, file, match[2], quoted=match[1] == '"')


def area_of(path: Path, rules: dict[str, set[str]]) -> str:
    """The longest folder of `path` that has a rule, else its first folder."""
    folders = [str(parent) for parent in path.parents]
    return next((folder for folder in folders if folder in rules), path.parts[0])


def check_includes(root: Path, file: Path, code: str) -> Iterator[tuple[int, str]]:
    area = area_of(file, MAY_INCLUDE)
    if area not in MAY_INCLUDE:
        return
    for line, name, target in includes(root, file, code):
        if target is None:
            users = SYSTEM_HEADERS.get(name)
            if users is not None and not any(file.is_relative_to(user) for user in users):
                yield line, f"{area} must not include <{name}>"
            continue
        reached = area_of(target, MAY_INCLUDE)
        allowed = any(Path(reached).is_relative_to(one) for one in MAY_INCLUDE[area])
        is_excepted = str(target) in FOR_ALL or (str(file), str(target)) in EXCEPTIONS
        if reached != area and not allowed and not is_excepted:
            yield line, f"{area} must not include {target}; see docs/internals/architecture.md"


def check_atomics(file: Path, text: str) -> Iterator[tuple[int, str]]:
    homes = [home for area, home in ATOMICS_HOMES.items() if file.is_relative_to(area)]
    if not homes or str(file) in (*homes, SYSTEM_CALLS):
        return
    for match in ATOMICS.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield line, f"{match[0]}: atomics, fences and assembly belong in {homes[0]}"


# A function, or a table of functions, that other modules of the folder can name.
DEFINED = re.compile(
    r"^(?!static\b|hot_inline\b|typedef\b|extern\b|#)[A-Za-z_](?:[\w \t*()]*[ \t*])?(\w+)"
    r"(?:\([^;{}]*\)\s*\{|(?:\[\w*\])? = )",
    re.MULTILINE,
)
TOKEN = re.compile(r"[{}]|\b(?:struct|union|enum)\s+\w+|\b\w+\b")


def _named_in_bodies(code: str) -> set[str]:
    """The words inside braces, without the names of structures."""
    depth, found = 0, set()
    for token in TOKEN.findall(code):
        if token in "{}":
            depth += 1 if token == "{" else -1
        elif depth > 0 and " " not in token:
            found.add(token)
    return found


def module_arrows(root: Path, folder: str) -> dict[str, dict[str, str]]:
    """For each module of a folder, the modules that it uses, each with what it uses of it."""
    codes = {
        file: without_comments(file.read_text(encoding="utf-8", errors="replace"))
        for file in sorted((root / folder).glob("*.[ch]"))
    }
    home = {
        match[1]: file.stem
        for file, code in codes.items()
        if file.suffix == ".c"
        for match in DEFINED.finditer(code)
    }
    arrows: dict[str, dict[str, str]] = {file.stem: {} for file in codes}
    for file, code in codes.items():
        used = {(Path(match[2]).stem, match[2]) for match in INCLUDE.finditer(code)
                if match[1] == '"' and (file.parent / match[2]) in codes}  # fmt: skip
        used |= {(home[word], word) for word in _named_in_bodies(code) if word in home}
        for module, what in sorted(used):
            if module != file.stem:
                arrows[file.stem].setdefault(module, what)
    return arrows


def arrows_upward(arrows: dict[str, dict[str, str]]) -> Iterator[tuple[str, str, str]]:
    """The arrows that close a circle: who uses whom, and for what."""
    done: set[str] = set()
    path: list[str] = []

    def follow(module: str) -> Iterator[tuple[str, str, str]]:
        path.append(module)
        for other, what in sorted(arrows[module].items()):
            if other in path:
                yield module, other, what
            elif other not in done:
                yield from follow(other)
        done.add(path.pop())

    used = {other for others in arrows.values() for other in others}
    for module in sorted(arrows, key=lambda module: (module in used, module)):
        if module not in done:
            yield from follow(module)


def check_layers(root: Path, folder: str) -> Iterator[str]:
    for module, other, what in arrows_upward(module_arrows(root, folder)):
        yield f"{folder}: {module} uses {what} of {other}, which uses {module}; see LAYERED"


COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
TRIVIAL = re.compile(r"[{});\s]*|#\s*include.*")


def _telling_lines(file: Path) -> list[tuple[int, str]]:
    """The lines of a file that say something, with their numbers."""
    text = file.read_text(encoding="utf-8", errors="replace")
    code = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    lines = enumerate((" ".join(line.split()) for line in code.splitlines()), start=1)
    return [(number, line) for number, line in lines if not TRIVIAL.fullmatch(line)]


def lines_written_twice(root: Path) -> Iterator[tuple[str, str, str]]:
    """The lines in runs that an earlier folder has, too: place, place there, line."""
    files = [
        (folder, file.relative_to(root), _telling_lines(file))
        for folder in WRITTEN_ONCE
        for file in sorted((root / folder).glob("*.[ch]"))
    ]
    runs: dict[tuple[str, ...], list[tuple[str, Path, list[int]]]] = {}
    for folder, file, lines in files:
        said: dict[int, tuple[str, str, str]] = {}
        for i in range(len(lines) - TWICE_RUN + 1):
            numbers = [number for number, _ in lines[i : i + TWICE_RUN]]
            run = tuple(line for _, line in lines[i : i + TWICE_RUN])
            for other, where, theirs in runs.setdefault(run, []):
                if other != folder:
                    for j, line in enumerate(run):
                        said[i + j] = (f"{file}:{numbers[j]}", f"{where}:{theirs[j]}", line)
            runs[run].append((folder, file, numbers))
        yield from said.values()


def check_twice(root: Path) -> Iterator[str]:
    twice = list(lines_written_twice(root))
    if len(twice) > TWICE_MAX:
        yield f"transports: {len(twice)} lines are written twice, more than {TWICE_MAX}"
        yield from (f"{at}: as at {other}: {line}" for at, other, line in twice)


def licence_of(file: Path) -> str:
    """The line that names a file's licence."""
    return next((spdx for at, spdx in SPDX_LINUX.items() if file.is_relative_to(at)), SPDX)


def violations(root: Path) -> Iterator[str]:
    """Every violation below `root`, as file:line: message."""
    for file in source_files(root):
        text = (root / file).read_text(encoding="utf-8", errors="replace")
        lines = text.splitlines()
        found: list[tuple[int, str]] = []
        spdx = licence_of(file)
        if not any(spdx in line for line in lines[:SPDX_WITHIN_LINES]) and text.strip():
            found.append((1, f"the first lines lack '{spdx}'"))
        if file.suffix in C_SUFFIXES:
            code = without_comments(text)
            found += check_includes(root, file, code)
            found += check_atomics(file, code)
        limits: dict[str, int] = {}
        if file.parts[0] == "examples":
            limits = STAGE_LINES_MAX if file.parts[1] == "tutorial" else EXAMPLE_LINES_MAX
        lines_max = limits.get(file.suffix, 0)
        if lines_max and len(lines) > lines_max:
            found.append((len(lines), f"an example has at most {lines_max} lines"))
        for line, message in sorted(found):
            yield f"{file}:{line}: {message}"
    for folder in LAYERED:
        yield from check_layers(root, folder)
    yield from check_twice(root)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path, nargs="?", default=Path(__file__).parents[1])
    found = list(violations(parser.parse_args(argv).root))
    for violation in found:
        print(violation)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
