# SPDX-License-Identifier: Apache-2.0
"""Turn spec/velo_regs.rdl into a C header, or into a Markdown page.

The header has the places of registers and memories and the masks of fields: numbers only, so that a
kernel's driver can include it.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Cost: none here; the module is a tool of its own, which nothing imports.
from systemrdl.compiler import RDLCompiler
from systemrdl.messages import RDLCompileError
from systemrdl.node import AddrmapNode, MemNode, Node, RegNode

GENERATOR = "tools/generators/regsgen.py"
PREFIX = "VELO_REG"


def _define(name: str, value: int, suffix: str = "u") -> str:
    return f"#define {name} 0x{value:x}{suffix}"


def _register(node: RegNode) -> list[str]:
    stem = f"{PREFIX}_{node.inst_name}".upper()
    lines = [f"/* {node.get_property('name')}. */"]
    lines.append(_define(stem, node.raw_absolute_address))
    if node.array_dimensions and node.array_stride is not None:
        lines.append(_define(f"{stem}_COUNT", node.array_dimensions[0]))
        lines.append(_define(f"{stem}_STRIDE", node.array_stride))
    for field in node.fields():
        mask = ((1 << field.width) - 1) << field.low
        lines.append(_define(f"{stem}_{field.inst_name}_MASK".upper(), mask, "ull"))
    return lines


def _memory(node: MemNode) -> list[str]:
    stem = f"{PREFIX}_{node.inst_name}".upper()
    title = f"/* {node.get_property('name')}. */"
    words = node.get_property("mementries")
    return [title, _define(stem, node.raw_absolute_address), _define(f"{stem}_WORDS", words)]


def _places(top: AddrmapNode) -> Iterator[MemNode | RegNode]:
    for node in top.children(unroll=False):
        if not isinstance(node, MemNode | RegNode):
            raise TypeError(f"{node.inst_name} is neither a register nor a memory")
        yield node


def header(top: AddrmapNode, source: str) -> str:
    """The text of <velo/regs.h>."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* Generated from {source} by {GENERATOR}; change the spec, not this file. */",
        "#ifndef VELO_REGS_H",
        "#define VELO_REGS_H",
        "",
    ]
    for node in _places(top):
        lines += [*(_memory(node) if isinstance(node, MemNode) else _register(node)), ""]
    return "\n".join([*lines, "#endif", ""])


def page(top: AddrmapNode, source: str) -> str:
    """The reference page: a list of all, and a table of the fields of each register."""
    lines = [
        f"Generated from `{source}`. A register is one 64-bit word; bits in no field read as zero.",
        "",
        "| offset | name | what |",
        "| --- | --- | --- |",
    ]
    for node in _places(top):
        name = f"{node.inst_name}{_count(node)}"
        anchor = node.inst_name.replace("_", "-")
        link = f"[{name}](#{anchor})" if isinstance(node, RegNode) else name
        lines.append(f"| 0x{node.raw_absolute_address:x} | {link} | {_what(node)} |")
    for node in _places(top):
        if isinstance(node, RegNode):
            lines += _section(node)
    return "\n".join([*lines, ""])


def _count(node: Node) -> str:
    if isinstance(node, MemNode):
        return f", {node.get_property('mementries')} words"
    if isinstance(node, RegNode) and node.array_dimensions:
        return f"[0 to {node.array_dimensions[0] - 1}]"
    return ""


def _what(node: Node) -> str:
    """Its name in words, and what more is said of it. Counters have neither."""
    said = [_text(node, key) for key in ("name", "desc")]
    words = ". ".join(text.rstrip(".") for text in said if text not in ("", node.inst_name))
    return f"{words or 'A counter'}."


def _text(node: Node, key: str) -> str:
    """A text of the specification, as one line."""
    return " ".join((node.get_property(key) or "").split())


def _section(node: RegNode) -> list[str]:
    offset = f"0x{node.raw_absolute_address:x}"
    if node.array_dimensions:
        offset += f", one every {node.array_stride} bytes{_count(node)}"
    lines = [f"({node.inst_name.replace('_', '-')})=", f"## `{node.inst_name}`", ""]
    lines += [f"{_what(node)} At {offset}.", ""]
    lines += ["| bits | field | access | reset | meaning |", "| --- | --- | --- | --- | --- |"]
    for field in sorted(node.fields(), key=lambda field: -field.low):
        reset = field.get_property("reset")
        value = "–" if reset is None else f"0x{reset:x}"
        lines.append(
            f"| {field.high}:{field.low} | `{field.inst_name}` | {field.get_property('sw').name} "
            f"| {value} | {_text(field, 'desc')} |"
        )
    return ["", *lines]


WRITERS = {"c": header, "md": page}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="regsgen", description=__doc__.splitlines()[0])
    parser.add_argument("spec", type=Path, help="a SystemRDL file")
    parser.add_argument("--format", choices=WRITERS, default="c", help="what to write")
    parser.add_argument("-o", "--output", type=Path, required=True, help="file to write")
    args = parser.parse_args(argv)
    compiler = RDLCompiler()
    try:
        compiler.compile_file(os.fspath(args.spec))
        top = compiler.elaborate().top
    except RDLCompileError as error:
        print(f"{args.spec}: {error}", file=sys.stderr)
        return 1
    text = WRITERS[args.format](top, f"{args.spec.parent.name}/{args.spec.name}")
    if not args.output.is_file() or args.output.read_text(encoding="utf-8") != text:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
