#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Break the hardware on purpose, one way at a time, and see that a proof or a test notices.

Each file rtl/BLOCK/mutants.toml has the breaks of one block, a table [[break]] each, in the order
of their names:

    name    of the break, unique in its block
    why     what goes wrong in the hardware
    file    the source that is broken
    before  what stands there, exactly once
    after   what is put in its place
    proof   the killer: a task of a proof, as "rtl/velo/formal/velo_completer.sby:prove"; or
    test    the killer: a node of pytest, as "rtl/velo/test/test_x.py::test_x[32]"; or
    only    of a test: the only one of its simulation's tests that is run
    run     the killer: a command, from the root of the tree
    by      what must fail: a property of the proof, an assertion or test of the simulation, or
            words of the command's output; a list, if any of several will do
    quick   true: the break is in the quick subset, too

A break counts as caught if its killer passes on the tree as it is and fails on a copy with the
break, by what `by` names. A break that does not elaborate is an error of the list. The tree itself
is never changed: everything happens in copies below build/rtl/mutants, which are removed. They have
the files that the killer may see (scripts/rtl_inputs.py) and no others. A break that was caught
with the same files is not tried again (scripts/kept.py); FRESH=1 tries all.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import kept
import rtl_inputs

ROOT = Path(__file__).resolve().parents[1]
LISTS = "rtl/*/mutants.toml"
OUT = ROOT / "build" / "rtl" / "mutants"
RESULT = ROOT / "build" / "rtl-mutants.json"

SELF = "scripts/rtl_mutate.py"
GROUP = "breaks of the hardware"

# What a copy of the tree has, beside the files that the killer sees: what spec/ generates.
GENERATED = ("velo_pkg.sv", "dimmnet_pkg.sv", "pcie_pkg.sv", "velo_regs.sv", "velo_regs_pkg.sv")
GENERATED += ("include", "dimmnet_dram.v", "dimmnet_ddr_pkg.sv")

# Why a killer failed, if no property or test did.
NOT_ELABORATED = "no elaboration"
NOTHING_SAID = "nothing that a check says"

KILLERS = ("proof", "test", "run")
NEEDED = {"name", "why", "file", "before", "after", "by"}
FIELDS = {*NEEDED, "quick", "only", *KILLERS}
TYPES: dict[str, type | tuple[type, ...]] = {"by": (str, list), "quick": bool}  # Others are text.


class ListError(Exception):
    """The list of mutants is wrong; the hardware may be right."""


class StoppedError(Exception):
    """The run was ended from outside."""


class Mutant(NamedTuple):
    """One break and its killer; see the top of this file."""

    block: str
    name: str
    why: str
    file: str
    before: str
    after: str
    kind: str
    killer: str
    by: tuple[str, ...]
    only: str
    quick: bool

    @property
    def title(self) -> str:
        return f"{self.block}/{self.name}"

    def command(self) -> list[str]:
        """What the killer runs in a copy of the tree."""
        if self.kind == "proof":
            proof, task = self.killer.split(":")
            return ["sby", "-f", "--prefix", "build/proof", proof, task]
        if self.kind == "test":
            only = ["env", f"COCOTB_TEST_FILTER=\\b{self.only}\\b"] if self.only else []
            pytest = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", self.killer]
            # A whole file without what is left to the night.
            return [*only, *pytest, *([] if "::" in self.killer else ["-m", "not nightly"])]
        return shlex.split(self.killer)

    def files(self) -> list[str]:
        """All files that the killer sees; a copy of the tree has no others."""
        if self.kind == "proof":
            return rtl_inputs.proof_files(self.killer.split(":")[0])
        block = re.match(r"rtl/(\w+)/test/", self.killer)
        return rtl_inputs.files_of(block[1] if block else "node")  # Networks are tests of nodes.


class Outcome(NamedTuple):
    """How one run of a killer ended."""

    word: str  # passed, failed, error, or timeout
    by: str  # what failed


class Verdict(NamedTuple):
    """What became of a mutant: caught, kept, survived, or error, with the reason in words. Kept is
    caught, earlier, with the same sources."""

    mutant: Mutant
    word: str
    reason: str
    seconds: float

    @property
    def caught(self) -> bool:
        return self.word in ("caught", "kept")


# ----- the list -----------------------------------------------------------------------------------


def read_block(path: Path) -> list[dict[str, Any]]:
    """The tables of one block's file, in the order of their names."""
    title = path.relative_to(ROOT)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ListError(f"{title}: {error}") from error
    tables = content.get("break")
    if set(content) != {"break"} or not isinstance(tables, list) or not tables:
        raise ListError(f"{title}: has other things than tables [[break]], or none")
    if not all(isinstance(table, dict) for table in tables):
        raise ListError(f"{title}: a break is no table [[break]]")
    names = [str(table.get("name")) for table in tables]
    for one, other in itertools.pairwise(names):
        if one >= other:
            said = "is there twice" if one == other else f"stands behind {one}"
            raise ListError(f"{title}: {other} {said}; names are unique and in order")
    return tables


def read_mutant(block: str, fields: dict[str, Any]) -> Mutant:
    """One break of a block; its fields are checked here, its text by `broken`."""
    title = f"{block}/{fields.get('name', 'a break without a name')}"
    kinds = [kind for kind in KILLERS if kind in fields]
    if set(fields) - FIELDS or NEEDED - set(fields) or len(kinds) != 1:
        raise ListError(f"{title}: unknown fields, missing ones, or not exactly one killer")
    wrong = [key for key, value in fields.items() if not isinstance(value, TYPES.get(key, str))]
    if wrong:
        raise ListError(f"{title}: {', '.join(wrong)}: not of the right type")
    by = fields["by"] if isinstance(fields["by"], list) else [fields["by"]]
    mutant = Mutant(
        block=block,
        name=fields["name"],
        why=fields["why"].strip(),
        file=fields["file"],
        before=fields["before"].strip("\n"),
        after=fields["after"].strip("\n"),
        kind=kinds[0],
        killer=fields[kinds[0]],
        by=tuple(by),
        only=fields.get("only", ""),
        quick=fields.get("quick", False),
    )
    check_killer(mutant)
    return mutant


def check_killer(mutant: Mutant) -> None:
    if mutant.kind == "proof":
        path, _, task = mutant.killer.partition(":")
        proof = ROOT / path
        if not proof.is_file() or task not in proof_section(proof, "tasks"):
            raise ListError(f"{mutant.title}: there is no proof {mutant.killer}")
    elif mutant.kind == "test" and not (ROOT / mutant.killer.split("::")[0]).is_file():
        raise ListError(f"{mutant.title}: there is no test {mutant.killer}")
    if not mutant.why or not all(mutant.by):
        raise ListError(f"{mutant.title}: `why` or `by` says nothing")


def proof_section(proof: Path, section: str) -> list[str]:
    """The first word of each line of a section of a .sby file."""
    words, inside = [], False
    for line in proof.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            inside = line.strip() == f"[{section}]"
        elif inside and line.strip() and not line.startswith("#"):
            words.append(line.split()[0])
    return words


def broken(mutant: Mutant) -> str:
    """The source with the break in it."""
    path = ROOT / mutant.file
    if not path.is_file():
        raise ListError(f"{mutant.title}: there is no {mutant.file}")
    source = path.read_text(encoding="utf-8")
    if mutant.file not in mutant.files():
        raise ListError(f"{mutant.title}: {mutant.killer} does not see {mutant.file}")
    count = source.count(mutant.before)
    if count != 1:
        raise ListError(f"{mutant.title}: its text stands {count} times in {mutant.file}")
    if mutant.before == mutant.after:
        raise ListError(f"{mutant.title}: changes nothing")
    return source.replace(mutant.before, mutant.after)


def read_list() -> tuple[list[Mutant], list[str]]:
    """All mutants that are in order, and what is wrong with the others."""
    mutants: list[Mutant] = []
    errors: list[str] = []
    for path in sorted(ROOT.glob(LISTS)):
        try:
            tables = read_block(path)
        except ListError as error:
            errors.append(str(error))
            continue
        for fields in tables:
            try:
                mutant = read_mutant(path.parent.name, fields)
                broken(mutant)
                mutants.append(mutant)
            except ListError as error:
                errors.append(str(error))
    return mutants, errors


# ----- running a killer ---------------------------------------------------------------------------


class Runner:
    """Runs killers in copies of the tree; `stop` ends all of them."""

    def __init__(self, limit_s: float):
        self.limit_s = limit_s
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.baselines: dict[str, concurrent.futures.Future[Outcome]] = {}

    def stop(self) -> None:
        self.stopped.set()

    def run(self, mutant: Mutant, source: bytes | None) -> Outcome:
        """The killer's verdict on the tree with another text of the mutant's file, or as it is."""
        with self._copy(mutant.files()) as tree:
            if source is not None:
                (tree / mutant.file).write_bytes(source)
            log = tree / "log"
            code = self._execute(mutant.command(), tree, log)
            text = log.read_text(encoding="utf-8", errors="replace")
            whole = "-whole" if source is None else ""
            kept = OUT / "log" / (mutant.title.replace("/", "-") + whole)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(text, encoding="utf-8")
            if code is None:
                return Outcome("timeout", "")
            return judge(mutant, code, text, tree)

    def baseline(self, mutant: Mutant) -> Outcome:
        """How the killer does on the tree as it is; kept until one of its sources changes."""
        key = whole_key(mutant)
        with self.lock:
            future = self.baselines.get(key)
            mine = future is None
            if future is None:
                future = self.baselines[key] = concurrent.futures.Future()
        if not mine:
            return future.result()
        try:
            if kept.passed(key):
                outcome = Outcome("passed", "")
            else:
                begin = time.monotonic()
                outcome = self.run(mutant, None)
                if outcome.word == "passed" and whole_key(mutant) == key:
                    kept.keep(key, mutant.killer, time.monotonic() - begin)
            future.set_result(outcome)
        except BaseException as error:
            future.set_exception(error)
            raise
        return outcome

    @contextlib.contextmanager
    def _copy(self, files: list[str]) -> Iterator[Path]:
        OUT.mkdir(parents=True, exist_ok=True)
        tree = Path(tempfile.mkdtemp(prefix="tree-", dir=OUT))
        try:
            rtl_inputs.copy_tree(files, tree)
            for name in GENERATED:
                source, target = ROOT / "build" / "rtl" / name, tree / "build" / "rtl" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if source.is_dir():
                    shutil.copytree(source, target, dirs_exist_ok=True)
                else:
                    shutil.copy2(source, target)
            (tree / ".venv").symlink_to((ROOT / ".venv").resolve())
            yield tree
        finally:
            shutil.rmtree(tree, ignore_errors=True)

    def _execute(self, command: list[str], tree: Path, log: Path) -> int | None:
        """The exit code, or None after the time limit. No process is left behind."""
        environment = os.environ | {"PYTHONPATH": str(tree / "tools"), "SEED": "1"}
        deadline = time.monotonic() + self.limit_s
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                while True:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        return process.wait(timeout=0.2)
                    if self.stopped.is_set():
                        raise StoppedError
                    if time.monotonic() > deadline:
                        return None
            finally:
                end_session(process)


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started, whatever groups they made: they share its session."""
    members = session_members(process.pid)
    for pid in members:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 5
    while members and time.monotonic() < deadline:
        time.sleep(0.05)
        process.poll()
        members = session_members(process.pid)
    for pid in members:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def session_members(session: int) -> list[int]:
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # After the name in parentheses: state, parent, group, session.
                fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    members.append(int(entry.name))
    return members


def judge(mutant: Mutant, code: int, text: str, tree: Path) -> Outcome:
    """What a killer's end means. A failure for another reason than `by` is an error."""
    if mutant.kind == "proof":
        task = mutant.killer.split(":")[1]
        status = tree / "build" / f"proof_{task}" / "status"
        words = status.read_text(encoding="utf-8").split() if status.is_file() else ["ERROR"]
        if words[0] == "PASS":
            return Outcome("passed", "")
        # TIMEOUT and UNKNOWN decide nothing, so nothing was caught.
        if words[0] != "FAIL":
            undecided = words[0] != "ERROR"
            return Outcome("timeout", "") if undecided else Outcome("error", NOT_ELABORATED)
        patterns = [rf"failed assertion [^\n]*\b{re.escape(by)}\b" for by in mutant.by]
    elif code == 0:
        return Outcome("passed", "")
    elif mutant.kind == "test":
        # A test in the table at the end of a simulation, or an assertion of the hardware.
        patterns = [
            rf"\b{re.escape(by)}(/\S+)?\s+FAIL\b|Assertion failed in [^\n]*\b{re.escape(by)}\b"
            for by in mutant.by
        ]
    else:
        patterns = [re.escape(by) for by in mutant.by]
    for by, pattern in zip(mutant.by, patterns, strict=True):
        if re.search(pattern, text):
            return Outcome("failed", by)
    others = re.findall(r"failed assertion \S+|Assertion failed in \S+|\*\* \S+ +FAIL\b", text)
    nothing = NOT_ELABORATED if mutant.kind != "proof" and "%Error" in text else NOTHING_SAID
    return Outcome("error", ", ".join(dict.fromkeys(others)) or nothing)


def whole_key(mutant: Mutant) -> str:
    """What the killer's result without a break is kept by: as `scripts/rtl` does, if it can be."""
    path, _, task = mutant.killer.partition(":")
    if mutant.kind == "proof":
        return rtl_inputs.key("proof", path, task)
    whole = rtl_inputs.key("test", path) if mutant.kind == "test" else ""
    if whole and kept.passed(whole):
        return whole
    return kept.key_of(mutant.files(), ["whole", mutant.killer, mutant.only, *rtl_inputs.words()])


def break_key(mutant: Mutant) -> str:
    """What a break that was caught is kept by: its text, its killer, and all that this one sees."""
    text = [mutant.title, mutant.file, mutant.before, mutant.after]
    text += [mutant.killer, mutant.only, *mutant.by]
    return kept.key_of([*mutant.files(), SELF], ["break", *text, *rtl_inputs.words()])


# ----- the whole run ------------------------------------------------------------------------------


def try_mutant(runner: Runner, mutant: Mutant) -> Verdict:
    begin = time.monotonic()
    key = break_key(mutant)
    stamp = kept.passed(key)
    if stamp:
        kept.record(GROUP, mutant.title, "kept", 0)
        return Verdict(mutant, "kept", stamp["by"], 0)

    def verdict(word: str, reason: str) -> Verdict:
        return Verdict(mutant, word, reason, time.monotonic() - begin)

    whole = runner.baseline(mutant)
    if whole.word != "passed":
        return verdict("error", f"the killer does not pass without the break: {whole.word}")
    begin = time.monotonic()
    outcome = runner.run(mutant, broken(mutant).encode())
    if outcome.word == "failed":
        if break_key(mutant) == key:  # Else somebody changed a file meanwhile.
            kept.keep(key, mutant.title, time.monotonic() - begin, by=outcome.by)
        return verdict("caught", outcome.by)
    if outcome.word == "error":
        return verdict("error", f"not by {' or '.join(mutant.by)}, but by {outcome.by}")
    if outcome.word == "timeout":
        return verdict("survived", f"undecided, or longer than {runner.limit_s:.0f} s")
    return verdict("survived", "the killer passes")


def run_all(mutants: list[Mutant], jobs: int, limit_s: float) -> list[Verdict]:
    """All verdicts, each told as soon as it is there."""
    runner = Runner(limit_s)
    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(try_mutant, runner, mutant) for mutant in mutants]
        try:
            for future in concurrent.futures.as_completed(futures):
                verdict = future.result()
                verdicts.append(verdict)
                if verdict.word != "kept":
                    good = verdict.word == "caught"
                    title, seconds = verdict.mutant.title, verdict.seconds
                    kept.record(GROUP, title, "run" if good else "failed", seconds)
                print(
                    f"mutants: {len(verdicts):3} of {len(mutants)}  {verdict.word:8} "
                    f"{verdict.seconds:4.0f} s  {verdict.mutant.title}: {verdict.mutant.killer}, "
                    f"{verdict.reason}",
                    flush=True,
                )
        except BaseException:
            runner.stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return sorted(verdicts, key=lambda verdict: verdict.mutant.title)


def report(verdicts: list[Verdict], errors: list[str], path: Path, selection: str) -> None:
    """The result as JSON; a mutant that the list has wrong is one that was not caught."""
    rows = [
        {
            "name": verdict.mutant.title,
            "why": verdict.mutant.why,
            "file": verdict.mutant.file,
            "killer": verdict.mutant.killer,
            "command": shlex.join(verdict.mutant.command()),
            "by": verdict.reason if verdict.caught else list(verdict.mutant.by),
            "outcome": verdict.word,
            "reason": verdict.reason,
            "caught": verdict.caught,
            "seconds": round(verdict.seconds, 1),
        }
        for verdict in verdicts
    ]
    result = {
        "caught": sum(row["caught"] for row in rows),
        "total": len(rows) + len(errors),
        "selection": selection,
        "list": rows,
        "errors": errors,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/rtl mutate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit code: 0 all caught, 1 one survives or the list is wrong, 130 interrupted.",
    )
    parser.add_argument("names", nargs="*", metavar="BLOCK", help="blocks, or BLOCK/NAME; else all")
    parser.add_argument("--quick", action="store_true", help="only the quick subset")
    parser.add_argument(
        "--jobs", type=int, default=int(os.environ.get("RTL_JOBS", "2")), help="runs side by side"
    )
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE", help="the result")
    parser.add_argument(
        "--limit", type=float, default=600, metavar="SECONDS", help="of one run of a killer"
    )
    parser.add_argument("--list", action="store_true", help="show the list and end")
    parser.add_argument(
        "--check", action="store_true", help="see that the list fits the sources, and end"
    )
    return parser.parse_args(argv)


def select(mutants: list[Mutant], names: list[str], quick: bool) -> list[Mutant]:
    known = {mutant.block for mutant in mutants} | {mutant.title for mutant in mutants}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"mutants: there is no {', '.join(unknown)}")
    return [
        mutant
        for mutant in mutants
        if (not names or mutant.block in names or mutant.title in names)
        and (not quick or mutant.quick)
    ]


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    mutants, errors = read_list()
    for error in errors:
        print(f"mutants: {error}", file=sys.stderr)
    if args.check:
        return 1 if errors else 0
    mutants = select(mutants, args.names, args.quick)
    if not mutants:
        sys.exit(f"mutants: none is of {' or '.join(args.names)} and quick")
    if args.list:
        for mutant in mutants:
            print(f"{mutant.title}: {mutant.why} [{mutant.killer}, {' or '.join(mutant.by)}]")
        return 1 if errors else 0
    # Also where a shell has the interrupt ignored, as it does for what it runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        verdicts = run_all(mutants, max(1, args.jobs), args.limit)
    except (KeyboardInterrupt, StoppedError):
        print("mutants: interrupted", file=sys.stderr)
        return 130
    selection = " ".join(["quick"] * args.quick + args.names) or "all"
    report(verdicts, errors, args.json, selection)
    caught = sum(verdict.caught for verdict in verdicts)
    for verdict in verdicts:
        if not verdict.caught:
            print(
                f"mutants: {verdict.word.upper()}: {verdict.mutant.title}: {verdict.reason}; "
                f"{verdict.mutant.why}",
                file=sys.stderr,
            )
    total = len(verdicts) + len(errors)
    print(f"{caught} of {total} caught")
    return 0 if caught == total else 1


if __name__ == "__main__":
    sys.exit(main())
