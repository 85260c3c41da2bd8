#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Break sources of the hardware in ways that nobody chose, and count what is noticed.

A break is one place of a source and one operator, found in slang's syntax tree:

    condition   of an `if` or a choice: inverted; of an `if` also always true, always false
    operand     of && or || dropped; a negation dropped
    operator    another of its kind: && and ||, == and !=, < and <=, + and -, & and |, << and >>
    swapped     the operands of -, < and the like, the two arms of a choice
    number      one more, one less; '0 and '1
    reset       of one register dropped
    assignment  in a clocked block dropped

Properties, parameters, types and widths stay whole. Each break is run against the proofs of its
block that read the file, then against the block's simulations, the quickest first, without those of
the night, until one fails. `scripts/rtl mutate` has breaks that were chosen, each with its killer;
this looks for what those do not speak of.

A break ends as `caught`, `survived`, `undecided` (over the time limit), `stillborn` (it does not
elaborate) or `equivalent`. The last ones have been judged by a person and are not run: a table
[[equivalent]] each in rtl/BLOCK/equivalent.toml, with `file`, the line `before` and `after`, and
`why` no check can see it. The score is caught / (caught + survived + undecided).
"""

import argparse
import functools
import json
import os
import random
import re
import signal
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import kept
import rtl_inputs
from pyslang import SourceManager
from pyslang.syntax import SyntaxNode, SyntaxTree
from rtl_mutate import (
    NOT_ELABORATED,
    NOTHING_SAID,
    ROOT,
    Mutant,
    Runner,
    StoppedError,
    proof_section,
    whole_key,
)

RESULT = ROOT / "build" / "rtl-breaks.json"
WORDS = ("caught", "survived", "undecided", "stillborn", "equivalent")

# What these say is settled when the hardware is elaborated, or is said about it.
WHOLE = {
    *("ParameterDeclaration", "ParameterPortList", "ParameterValueAssignment", "AnsiPortList"),
    *("TypedefDeclaration", "VariableDimension", "FunctionPrototype", "EventControlWithExpression"),
    *("ElabSystemTask", "AttributeInstance", "SimpleRangeSelect", "AscendingRangeSelect"),
    *("ImmediateAssertStatement", "ImmediateAssumeStatement", "ConcurrentAssertionMember"),
}
# Of these only some parts are behaviour.
PARTS = {
    "CastExpression": ("right",),
    "MultipleConcatenationExpression": ("concatenation",),
    "ForLoopStatement": ("statement",),
    "LoopGenerate": ("block",),
    "IfGenerate": ("block", "elseClause"),
    "StandardCaseItem": ("clause",),
    "DataDeclaration": ("declarators",),
}
OPERATORS = {
    "LogicalAndExpression": "||",
    "LogicalOrExpression": "&&",
    "EqualityExpression": "!=",
    "InequalityExpression": "==",
    "LessThanExpression": "<=",
    "LessThanEqualExpression": "<",
    "GreaterThanExpression": ">=",
    "GreaterThanEqualExpression": ">",
    "AddExpression": "-",
    "SubtractExpression": "+",
    "BinaryAndExpression": "|",
    "BinaryOrExpression": "&",
    "BinaryXorExpression": "|",
    "LogicalShiftLeftExpression": ">>",
    "LogicalShiftRightExpression": "<<",
}
ORDERED = {
    *("SubtractExpression", "LessThanExpression", "LessThanEqualExpression"),
    *("GreaterThanExpression", "GreaterThanEqualExpression"),
}
NEGATIONS = {"UnaryLogicalNotExpression", "UnaryBitwiseNotExpression"}
LITERAL = re.compile(r"(?:(\d+)'([bdh]))?([0-9a-fA-F_]+)")
BASES = {"b": 2, "d": 10, "h": 16, None: 10}
IN_RESET = re.compile(r"!\w*rst\w*")


class Break(NamedTuple):
    """Some bytes of a source, and what takes their place."""

    file: str
    line: int
    operator: str
    start: int
    end: int
    text: bytes

    def source(self) -> bytes:
        whole = (ROOT / self.file).read_bytes()
        return whole[: self.start] + self.text + whole[self.end :]

    def lines(self) -> tuple[str, str]:
        """The lines that it changes, before and after, without what is around them."""
        whole = (ROOT / self.file).read_bytes()
        begin, end = whole.rfind(b"\n", 0, self.start) + 1, whole.find(b"\n", self.end)
        after = whole[begin : self.start] + self.text + whole[self.end : end]
        return tuple(" ".join(part.decode().split()) for part in (whole[begin:end], after))

    @property
    def title(self) -> str:
        return f"{Path(self.file).stem}:{self.line}:{self.operator}:{self.start}"


# ----- the breaks of a source ---------------------------------------------------------------------


class Finder:
    """All breaks of one source, in its order."""

    def __init__(self, file: str):
        self.file, self.raw = file, (ROOT / file).read_bytes()
        self.manager = SourceManager()
        self.manager.addUserDirectories(str(ROOT / "rtl/common/rtl"))
        self.tree = SyntaxTree.fromFile(str(ROOT / file), self.manager)

    def breaks(self) -> list[Break]:
        seen, found = {self.raw}, []
        for node, operator, text in self._walk(self.tree.root, in_reset=False):
            start, end = self._span(node)
            line = self.raw.count(b"\n", 0, start) + 1
            one = Break(self.file, line, operator, start, end, text.encode())
            source = one.source()
            if source not in seen:
                seen.add(source)
                found.append(one)
        return sorted(found, key=lambda one: (one.start, one.end))

    def _span(self, node: Any) -> tuple[int, int]:
        return node.sourceRange.start.offset, node.sourceRange.end.offset

    def _text(self, node: Any) -> str:
        start, end = self._span(node)
        return self.raw[start:end].decode()

    def _walk(self, node: Any, in_reset: bool) -> Iterator[tuple[Any, str, str]]:
        kind = node.kind.name
        if kind in WHOLE or kind.startswith("VariableDimension"):
            return
        start = node.sourceRange.start
        # Text of a macro, as that of a property, is somewhere else; so is that of an included file.
        if self.manager.isMacroLoc(start) or self.manager.isIncludedFileLoc(start):
            return
        yield from ((node, *change) for change in self._changes(node, kind, in_reset))
        if kind == "ConditionalStatement":
            reset = bool(IN_RESET.fullmatch(self._text(node.predicate)))
            if reset:
                yield from self._walk(node.statement, in_reset=True)
                if node.elseClause:
                    yield from self._walk(node.elseClause, in_reset)
                return
            for change in self._conditions(node.predicate, statement=True):
                yield (node.predicate, *change)
        elif kind == "ConditionalExpression":
            for change in self._conditions(node.predicate, statement=False):
                yield (node.predicate, *change)
        if kind in PARTS:
            parts = [getattr(node, name) for name in PARTS[kind]]
        else:
            parts = [node[index] for index in range(len(node))]
        for part in parts:
            if isinstance(part, SyntaxNode):
                yield from self._walk(part, in_reset)

    def _conditions(self, predicate: Any, statement: bool) -> Iterator[tuple[str, str]]:
        yield "condition", f"!({self._text(predicate)})"
        if statement:
            yield "condition", "1'b1"
            yield "condition", "1'b0"

    def _changes(self, node: Any, kind: str, in_reset: bool) -> Iterator[tuple[str, str]]:
        if kind in OPERATORS:
            left, right = self._text(node.left), self._text(node.right)
            yield "operator", f"({left}) {OPERATORS[kind]} ({right})"
            if kind in ORDERED:
                yield "swapped", f"({right}) {node.operatorToken.valueText} ({left})"
            if kind.startswith("Logical") and "Shift" not in kind:
                yield "operand", left
                yield "operand", right
        elif kind == "ConditionalExpression":
            predicate, left, right = map(self._text, (node.predicate, node.left, node.right))
            yield "swapped", f"{predicate} ? ({right}) : ({left})"
        elif kind in NEGATIONS:
            yield "operand", self._text(node.operand)
        elif kind == "UnbasedUnsizedLiteralExpression":
            other = {"'0": "'1", "'1": "'0"}.get(self._text(node))
            if other:
                yield "number", other
        elif kind in ("IntegerVectorExpression", "IntegerLiteralExpression"):
            yield from (("number", text) for text in neighbours(self._text(node)))
        elif kind == "ExpressionStatement" and (
            node.expr.kind.name == "NonblockingAssignmentExpression"
        ):
            yield "reset" if in_reset else "assignment", ";"


def neighbours(literal: str) -> list[str]:
    """One more and one less than a number, within its bits."""
    match = LITERAL.fullmatch(literal)
    if not match:
        return []
    bits, base, digits = match.groups()
    value = int(digits, BASES[base])
    some = [value + 1, value - 1]
    if bits:
        return [f"{bits}'d{one % (1 << int(bits))}" for one in some]
    return [str(one) for one in some if one >= 0]


# ----- what has been judged -----------------------------------------------------------------------


def judged(block: str) -> set[tuple[str, str, str]]:
    """The breaks of a block that change nothing: file, lines before and after."""
    path = ROOT / "rtl" / block / "equivalent.toml"
    if not path.is_file():
        return set()
    title = path.relative_to(ROOT)
    found = set()
    for table in tomllib.loads(path.read_text(encoding="utf-8"))["equivalent"]:
        if set(table) != {"file", "before", "after", "why"} or not all(table.values()):
            sys.exit(f"breaks: {title}: a table has other things than file, before, after, why")
        whole = " ".join((ROOT / table["file"]).read_text(encoding="utf-8").split())
        if (count := whole.count(table["before"])) != 1:
            sys.exit(f"breaks: {title}: {table['before']!r} stands {count} times in its file")
        found.add((table["file"], table["before"], table["after"]))
    return found


# ----- running ------------------------------------------------------------------------------------


def block_of(file: str) -> str:
    return Path(file).parts[1]


def killers(file: str, proofs_only: bool) -> list[tuple[str, str]]:
    """Kind and name of each check of the file's block that reads it."""
    block = block_of(file)
    found = []
    for path in sorted((ROOT / "rtl" / block / "formal").glob("*.sby")):
        proof = str(path.relative_to(ROOT))
        if file not in rtl_inputs.proof_files(proof):
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        nightly = {line.split()[0] for line in lines if line.rstrip().endswith(" nightly")}
        tasks = proof_section(path, "tasks")
        found += [("proof", f"{proof}:{task}") for task in tasks if task not in nightly]
    if proofs_only or file not in rtl_inputs.files_of(block):
        return found
    folder = ROOT / "rtl" / block / "test"
    found += [("test", str(path.relative_to(ROOT))) for path in sorted(folder.glob("test_*.py"))]
    if os.access(folder / "run", os.X_OK):
        found.append(("run", f"rtl/{block}/test/run"))
    return found


def as_mutant(one: Break, kind: str, killer: str) -> Mutant:
    """The break and one check, as scripts/rtl_mutate.py runs them."""
    return Mutant(
        block=block_of(one.file),
        name=f"{one.title}-{Path(killer).stem}",
        why=one.operator,
        file=one.file,
        before="",
        after="",
        kind=kind,
        killer=killer,
        by=(),
        only="",
        quick=False,
    )


class Trial:
    """Runs breaks against their block's checks."""

    def __init__(self, runner: Runner, proofs_only: bool):
        self.runner, self.proofs_only = runner, proofs_only
        self.judged = functools.cache(judged)
        self.order: dict[str, list[tuple[str, str]]] = {}

    def checks(self, one: Break) -> list[tuple[str, str]]:
        """The checks that pass without a break, the quickest first."""
        if one.file not in self.order:
            timed = []
            for kind, killer in killers(one.file, self.proofs_only):
                mutant = as_mutant(one, kind, killer)
                outcome = self.runner.baseline(mutant)
                if outcome.word != "passed":
                    sys.exit(f"breaks: {killer} does not pass without a break: {outcome.word}")
                stamp = kept.passed(whole_key(mutant)) or {"seconds": 0}
                timed.append((kind != "proof", stamp["seconds"], kind, killer))
            if not timed:
                sys.exit(f"breaks: {one.file}: nothing of its block reads it")
            self.order[one.file] = [check[2:] for check in sorted(timed)]
        return self.order[one.file]

    def run(self, one: Break) -> dict[str, Any]:
        before, after = one.lines()
        row: dict[str, Any] = {"name": one.title, "file": one.file, "line": one.line}
        row |= {"operator": one.operator, "before": before, "after": after, "by": ""}
        if (one.file, before, after) in self.judged(block_of(one.file)):
            return row | {"outcome": "equivalent"}
        outcome = "survived"
        for kind, killer in self.checks(one):
            found = self.runner.run(as_mutant(one, kind, killer), one.source())
            if found.word == "timeout":
                outcome = "undecided"
            elif found.word != "passed":
                word = "stillborn" if found.by == NOT_ELABORATED else "caught"
                unreached = kind == "proof" and found.by == NOTHING_SAID
                by = "a cover is not reached" if unreached else found.by
                return row | {"outcome": word, "by": f"{killer}: {by}"}
        return row | {"outcome": outcome}


def sources(names: list[str]) -> list[str]:
    """The files of blocks and files that are named, or of all blocks; packages are left out."""
    files = []
    blocks = sorted(path.parent.name for path in (ROOT / "rtl").glob("*/files.f"))
    for name in names or blocks:
        path = ROOT / name
        if path.is_file():
            files.append(str(path.relative_to(ROOT)))
            continue
        found = sorted((ROOT / "rtl" / name / "rtl").glob("*.sv"))
        if not found and names:
            sys.exit(f"breaks: there is no block and no file {name}")
        files += [str(each.relative_to(ROOT)) for each in found if not each.stem.endswith("_pkg")]
    return files


def score(rows: list[dict[str, Any]]) -> dict[str, Any]:
    counts = Counter(row["outcome"] for row in rows)
    judged_by_checks = sum(counts[word] for word in WORDS[:3])
    share = round(counts["caught"] / judged_by_checks, 4) if judged_by_checks else None
    return {**{word: counts[word] for word in WORDS}, "score": share}


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/rtl breaks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit code: 0 none survived, 1 some did, 130 interrupted.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="BLOCK|FILE", help="rtl/BLOCK, or one source; else all"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="so many, drawn; else all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--proofs", action="store_true", help="without simulations")
    parser.add_argument(
        "--limit", type=float, default=600, metavar="SECONDS", help="of one run of a check"
    )
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE", help="the result")
    parser.add_argument("--list", action="store_true", help="show the breaks and end")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    breaks = [one for file in sources(args.names) for one in Finder(file).breaks()]
    found = len(breaks)
    if args.sample is not None and args.sample < found:
        chosen = random.Random(args.seed).sample(range(found), args.sample)
        breaks = [breaks[index] for index in sorted(chosen)]
    if args.list:
        for one in breaks:
            print(f"{one.title}: {' => '.join(one.lines())}")
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    trial = Trial(Runner(args.limit), args.proofs)
    rows: list[dict[str, Any]] = []
    try:
        for one in breaks:
            row = trial.run(one)
            rows.append(row)
            said = row["by"] or f"{row['before']} => {row['after']}"
            print(
                f"breaks: {len(rows):4} of {len(breaks)}  {row['outcome']:10} {one.title}: {said}"
            )
            sys.stdout.flush()
    except (KeyboardInterrupt, StoppedError):
        print("breaks: interrupted", file=sys.stderr)
        return 130
    finally:
        counts = score(rows)
        result = {"sources": args.names, "found": found, "seed": args.seed, **counts, "list": rows}
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(", ".join(f"{count} {word}" for word, count in counts.items() if word != "score"))
    return 1 if counts["survived"] or counts["undecided"] else 0


if __name__ == "__main__":
    sys.exit(main())
