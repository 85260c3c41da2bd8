# SPDX-License-Identifier: Apache-2.0
"""Turn spec/velo_regs.rdl into a C header: places of registers and memories, masks of fields.

It has numbers only, so that a kernel's driver can include it.
"""

import argparse
import os
import sys
from pathlib import Path

# Cost: none here; the module is a tool of its own, which nothing imports.
from systemrdl.compiler import RDLCompiler
from systemrdl.messages import RDLCompileError
from systemrdl.node import AddrmapNode, MemNode, RegNode

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


def header(top: AddrmapNode, source: str) -> str:
    """The text of <velo/regs.h>."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* Generated from {source} by {GENERATOR}; change the spec, not this file. */",
        "#ifndef VELO_REGS_H",
        "#define VELO_REGS_H",
        "",
    ]
    for node in top.children(unroll=False):
        if isinstance(node, MemNode):
            lines += [*_memory(node), ""]
        elif isinstance(node, RegNode):
            lines += [*_register(node), ""]
        else:
            raise TypeError(f"{node.inst_name} is neither a register nor a memory")
    return "\n".join([*lines, "#endif", ""])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="regsgen", description=__doc__.splitlines()[0])
    parser.add_argument("spec", type=Path, help="a SystemRDL file")
    parser.add_argument("-o", "--output", type=Path, required=True, help="file to write")
    args = parser.parse_args(argv)
    compiler = RDLCompiler()
    try:
        compiler.compile_file(os.fspath(args.spec))
        top = compiler.elaborate().top
    except RDLCompileError as error:
        print(f"{args.spec}: {error}", file=sys.stderr)
        return 1
    text = header(top, f"{args.spec.parent.name}/{args.spec.name}")
    if not args.output.is_file() or args.output.read_text(encoding="utf-8") != text:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
