#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a check of the hardware depends on, so that its result can be kept (scripts/kept.py).

  rtl_inputs.py files BLOCK         the files that the tests of a block see
  rtl_inputs.py tree BLOCK FOLDER   a copy of the tree that has these and no others
  rtl_inputs.py wanted GROUP NAME lint|test|proof WHAT [TASK...]
                                    the tasks of a check that have not passed yet, a line each as
                                    "KEY TASK"; what has passed is recorded. WHAT: rtl/BLOCK, or the
                                    file of a test or proof
  rtl_inputs.py done GROUP NAME lint|test|proof WHAT passed|failed SECONDS
                                    record tasks that have run; standard input has a line each, as
                                    `wanted` wrote it. One that passed is kept if its key is still
                                    the same: else somebody changed a file meanwhile
  rtl_inputs.py order PROOF...      the proofs, those that took longest when they ran last first;
                                    before them those that have not run here yet, the deepest first

The tests of a block see the folders of all blocks in its list (files.f), of other blocks without
their tests and proofs, what all tests share, and what a line "# tests:" of the list names besides:
files or folders from the root of the tree. They run in a copy that has nothing else, so that a file
that is missing here is missed there. A proof sees the files that it lists itself. Linters see what
tests see, and the rest of the block's own folder.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import kept

ROOT = Path(__file__).resolve().parents[1]

# What any test may need.
SHARED = (
    "pyproject.toml",
    "rtl/conftest.py",
    "rtl/stream.py",
    "rtl/structs.py",
    "rtl/shared.vlt",
    "rtl/verilator.vlt",
    "scripts/packages/requirements-dev.txt",
    "scripts/packages/requirements-rtl.txt",
    "scripts/help.sh",
    "scripts/rtl",
    "scripts/rtl-setup",
    "spec",
    "tools/generators",
)
LINTERS = (
    "rtl/verible.rules",
    "scripts/rtl_slang.py",
    "scripts/rtl_take.py",
)
PROVERS = (
    "scripts/packages/requirements-rtl.txt",
    "scripts/help.sh",
    "scripts/rtl",
    "scripts/rtl-setup",
    "scripts/rtl_yosys.py",
)
TOOLS = (("clang++", "--version"), ("c++", "--version"), ("ld", "--version"))
# What may be in the private Python environment besides does not count.
REQUIREMENTS = ("requirements.txt", "requirements-dev.txt", "requirements-rtl.txt")
# No inputs, wherever they are.
IGNORED = ("__pycache__",)

PROOFS = "proofs"  # The group of their results.


def lines_of(files_f: Path) -> list[str]:
    return files_f.read_text(encoding="utf-8").splitlines()


def blocks_of(block: str) -> list[str]:
    """A block and all whose files are in its list."""
    found: set[str] = set()
    todo = [block]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        listing = ROOT / "rtl" / name / "files.f"
        if listing.is_file():
            text = "\n".join(re.sub(r"(//|#).*", "", line) for line in lines_of(listing))
            todo += re.findall(r"\brtl/(\w+)/", text)
    return sorted(found)


def named_by_tests(block: str) -> list[str]:
    """What the lines "# tests:" of the block's list name."""
    lines = lines_of(ROOT / "rtl" / block / "files.f")
    marked = [line for line in lines if line.startswith("# tests:")]
    return [name for line in marked for name in line.removeprefix("# tests:").split()]


def below(name: str, without: Iterable[str] = ()) -> list[str]:
    """A file, or all files of a folder but those of some of its folders; as paths from the root."""
    path = ROOT / name
    if path.is_file():
        return [name]
    if not path.is_dir():
        raise FileNotFoundError(f"there is no {name}")
    return [
        str(file.relative_to(ROOT))
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and not set(file.relative_to(path).parts[:-1]) & {*without, *IGNORED}
        and (file.suffix != ".md")
        and file.name not in ("mutants.toml", "equivalent.toml")
    ]


def files_of(block: str) -> list[str]:
    """All that the tests of a block see."""
    files = {file for name in (*SHARED, *named_by_tests(block)) for file in below(name)}
    for each in blocks_of(block):
        files.update(below(f"rtl/{each}", ("formal",) if each == block else ("formal", "test")))
    return sorted(files)


def copy_tree(files: Iterable[str], target: Path) -> None:
    """Copies of some files, in the same folders below another root."""
    for name in files:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, path)


def proof_files(proof: str) -> list[str]:
    """A proof, and what its section [files] names."""
    files, inside = [proof], False
    for line in lines_of(ROOT / proof):
        if line.startswith("["):
            inside = line.strip() == "[files]"
        elif inside and line.strip() and not line.startswith("#"):
            files.append(line.split()[-1])
    return [*files, *PROVERS]


def words() -> list[str]:
    """What else counts: the tools, and what of the environment they look at."""
    return [*kept.versions(TOOLS, REQUIREMENTS), *kept.variables(())]


def key(kind: str, name: str, task: str = "") -> str:
    """The key of a check: of a block's lint, a test file or `run` of it, or a task of a proof."""
    if kind == "proof":
        files = proof_files(name)
    elif kind == "lint":
        files = [*files_of(name.split("/")[1]), *LINTERS, *below(name)]
    else:
        files = files_of(name.split("/")[1])
    return kept.key_of(files, [kind, name, task, *words()])


def wanted(group: str, title: str, kind: str, name: str, tasks: Sequence[str]) -> list[str]:
    """The tasks that have not passed with what is there now, each behind its key."""
    left = []
    for task in tasks or [""]:
        one = key(kind, name, task)
        if kept.passed(one):
            kept.record(group, f"{title} {task}".strip(), "kept", 0)
        else:
            left.append(f"{one} {task}".strip())
    return left


def done(
    group: str, title: str, kind: str, name: str, outcome: str, seconds: float, lines: Iterable[str]
) -> None:
    """Record tasks that have run, and keep those that passed with what is there now."""
    for line in lines:
        before, _, task = line.strip().partition(" ")
        full = f"{title} {task}".strip()
        kept.record(group, full, "run" if outcome == "passed" else "failed", seconds)
        if outcome != "passed":
            continue
        try:
            after = key(kind, name, task)
        except OSError:  # A file that a list names is gone.
            after = ""
        if after == before:
            kept.keep(after, full, seconds)
        else:
            print(f"rtl: not kept, as a file of it changed meanwhile: {full}", file=sys.stderr)


def title_of(proof: str) -> str:
    """What a proof is called where results are told: "BLOCK: NAME"."""
    path = Path(proof)
    return f"{path.parts[1]}: {path.stem}"


def order(proofs: Iterable[str]) -> list[str]:
    """The proofs, longest first, so that none of those is left alone at the end."""
    took: dict[str, float] = {}
    for task, seconds in kept.seconds_of(PROOFS).items():
        title = task.rpartition(" ")[0]
        took[title] = max(seconds, took.get(title, 0))

    def rank(proof: str) -> tuple[float, int]:
        text = (ROOT / proof).read_text(encoding="utf-8")
        depths = [int(depth) for depth in re.findall(r"^(?:\w+: *)?depth +(\d+)", text, re.M)]
        return (-took.get(title_of(proof), float("inf")), -max(depths, default=0))

    return sorted(proofs, key=rank)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="rtl_inputs.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("files").add_argument("block")
    tree = verbs.add_parser("tree")
    tree.add_argument("block")
    tree.add_argument("folder", type=Path)
    wants, has_run = verbs.add_parser("wanted"), verbs.add_parser("done")
    for verb in (wants, has_run):
        for argument in ("group", "title"):
            verb.add_argument(argument)
        verb.add_argument("kind", choices=("lint", "test", "proof"))
        verb.add_argument("name", help="rtl/BLOCK, a test's file or a proof's")
    wants.add_argument("tasks", nargs="*")
    has_run.add_argument("outcome", choices=("passed", "failed"))
    has_run.add_argument("seconds", type=float)
    verbs.add_parser("order").add_argument("proofs", nargs="+")
    args = parser.parse_args(argv)
    if args.verb == "files":
        print("\n".join(files_of(args.block)))
    elif args.verb == "tree":
        copy_tree(files_of(args.block), args.folder)
    elif args.verb == "order":
        print("\n".join(order(args.proofs)))
    elif args.verb == "done":
        check = (args.group, args.title, args.kind, args.name)
        done(*check, args.outcome, args.seconds, sys.stdin)
    else:
        for line in wanted(args.group, args.title, args.kind, args.name, args.tasks):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
