# SPDX-License-Identifier: Apache-2.0
"""Turn spec/velo.toml into the C header <velo/spec.h> or a Markdown reference page.

A spec that contradicts itself is refused with the name of the table at fault: a layout mistake must
never reach a compiler.
"""

import argparse
import hashlib
import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

WORD_BITS = 64

# Fields that every packed word holds with the same value, so pack() does not take them.
FIXED_VALUES = {"valid": 1, "reserved": 0}


class SpecError(ValueError):
    """The spec contradicts itself; the message names the table and what to change."""


@dataclass(frozen=True)
class Field:
    """A run of bits in a 64-bit word, bit 0 being the least significant."""

    name: str
    lsb: int
    bits: int
    doc: str

    @property
    def msb(self) -> int:
        return self.lsb + self.bits - 1

    @property
    def mask(self) -> int:
        return ((1 << self.bits) - 1) << self.lsb

    @property
    def c_type(self) -> str:
        """The narrowest unsigned type that holds the field."""
        return next(f"uint{width}_t" for width in (8, 16, 32, 64) if self.bits <= width)


@dataclass(frozen=True)
class Spec:
    """The checked contents of velo.toml."""

    abi: int
    n_bits: int
    t_bits: int
    page_bits: int
    address: tuple[Field, ...]
    line_bytes: int
    header_bytes: int
    header: tuple[Field, ...]
    hash: int

    @property
    def nodes(self) -> int:
        return 1 << (self.n_bits - self.t_bits)

    @property
    def vpids(self) -> int:
        return 1 << (self.t_bits - self.page_bits)


# --- reading and checking ---------------------------------------------------------------------


def _check(condition: bool, where: str, message: str) -> None:
    if not condition:
        raise SpecError(f"{where}: {message}")


def _table(parent: Mapping[str, Any], where: str, keys: set[str]) -> Mapping[str, Any]:
    """The table called `where`, with exactly the given keys."""
    table = parent.get(where.rpartition(".")[2])
    _check(isinstance(table, Mapping), where, "this table is missing")
    _exact_keys(table, where, keys)
    return table


def _exact_keys(table: Mapping[str, Any], where: str, keys: set[str]) -> None:
    missing = sorted(keys - table.keys())
    unknown = sorted(table.keys() - keys)
    _check(not missing, where, f"add the missing key {', '.join(missing)}")
    _check(not unknown, where, f"remove the unknown key {', '.join(unknown)}")


def _integer(table: Mapping[str, Any], where: str, key: str, low: int, high: int) -> int:
    value = table[key]
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    _check(is_integer and low <= value <= high, where, f"{key} must be {low} to {high}: {value!r}")
    return value


def _fields(table: Mapping[str, Any], where: str, limit_bits: int) -> tuple[Field, ...]:
    """The fields of a word in bit order, each inside `limit_bits` and none over another."""
    rows = table["field"]
    _check(isinstance(rows, list) and bool(rows), f"{where}.field", "give at least one field")
    fields = sorted((_field(row, where, limit_bits) for row in rows), key=lambda field: field.lsb)
    for field in fields:
        same_name = [other for other in fields if other.name == field.name]
        _check(len(same_name) == 1, f'{where}.field "{field.name}"', "the name is used twice")
    for below, above in pairwise(fields):
        _check(
            below.msb < above.lsb,
            f'{where}.field "{above.name}"',
            f'starts at bit {above.lsb}, inside "{below.name}" (bits {below.lsb} to {below.msb})',
        )
    return tuple(fields)


def _field(row: Mapping[str, Any], where: str, limit_bits: int) -> Field:
    name = row.get("name")
    here = f'{where}.field "{name}"'
    _exact_keys(row, here, {"name", "lsb", "bits", "doc"})
    named = isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None
    _check(named, here, "a name is a lower-case C identifier")
    lsb = _integer(row, here, "lsb", 0, limit_bits - 1)
    bits = _integer(row, here, "bits", 1, WORD_BITS)
    _check(lsb + bits <= limit_bits, here, f"ends at bit {lsb + bits - 1}, above {limit_bits - 1}")
    doc = row["doc"]
    _check(isinstance(doc, str) and doc.endswith("."), here, "doc must be a sentence")
    _check("*/" not in doc, here, "doc must not end a C comment")
    if name in FIXED_VALUES:
        _check(FIXED_VALUES[name] < 1 << bits, here, "is too narrow for its fixed value")
    return Field(name, lsb, bits, doc)


def _check_address(spec: Spec) -> None:
    """The map that a grant relies on: user bits below the page, then the context, then the node."""
    expected = {
        "vpid": (spec.page_bits, spec.t_bits - spec.page_bits),
        "node": (spec.t_bits, spec.n_bits - spec.t_bits),
    }
    names = {field.name for field in spec.address}
    for name in expected:
        _check(name in names, "address", f'the field "{name}" is missing')
    for field in spec.address:
        here = f'address.field "{field.name}"'
        if field.name in expected:
            lsb, bits = expected[field.name]
            _check(
                (field.lsb, field.bits) == (lsb, bits),
                here,
                f"n_bits, t_bits and page_bits ask for lsb = {lsb}, bits = {bits}",
            )
        else:
            _check(field.msb < spec.page_bits, here, "user bits must lie below page_bits")


def _check_header(spec: Spec) -> None:
    gaps = (1 << WORD_BITS) - 1
    for field in spec.header:
        gaps &= ~field.mask
    lowest = (gaps & -gaps).bit_length() - 1
    _check(not gaps, "header", f'bit {lowest} is in no field; name spare bits "reserved"')
    valid = [field for field in spec.header if field.name == "valid"]
    _check(bool(valid), "header", 'the field "valid", which makes the word non-zero, is missing')


def _without_docs(value: Any) -> Any:
    """The spec as far as it fixes a layout; wording and the order of fields do not."""
    if isinstance(value, Mapping):
        return {key: _without_docs(item) for key, item in value.items() if key != "doc"}
    if isinstance(value, list):
        return sorted((_without_docs(item) for item in value), key=lambda row: row["lsb"])
    return value


def _hash(tables: Mapping[str, Any]) -> int:
    canonical = json.dumps(_without_docs(tables), sort_keys=True, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(canonical.encode()).digest()[:8], "big")


def parse(text: str) -> Spec:
    """Read and check a spec; raises SpecError."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"not TOML: {error}") from error
    _exact_keys(tables, "top level", {"version", "address", "line", "header"})
    version = _table(tables, "version", {"abi"})
    address = _table(tables, "address", {"n_bits", "t_bits", "page_bits", "field"})
    line = _table(tables, "line", {"bytes", "header_bytes"})
    header = _table(tables, "header", {"field"})

    abi = _integer(version, "version", "abi", 1, 0xFFFF_FFFF)
    n_bits = _integer(address, "address", "n_bits", 3, WORD_BITS)
    t_bits = _integer(address, "address", "t_bits", 2, n_bits - 1)
    page_bits = _integer(address, "address", "page_bits", 1, t_bits - 1)
    line_bytes = _integer(line, "line", "bytes", 16, 4096)
    _check(line_bytes.bit_count() == 1, "line", f"bytes must be a power of two: {line_bytes}")
    header_bytes = _integer(line, "line", "header_bytes", 8, 8)

    spec = Spec(
        abi=abi,
        n_bits=n_bits,
        t_bits=t_bits,
        page_bits=page_bits,
        address=_fields(address, "address", n_bits),
        line_bytes=line_bytes,
        header_bytes=header_bytes,
        header=_fields(header, "header", WORD_BITS),
        hash=_hash(tables),
    )
    _check_address(spec)
    _check_header(spec)
    return spec


# --- writing the C header ---------------------------------------------------------------------


def _define(name: str, value: str, doc: str = "") -> list[str]:
    comment = textwrap.wrap(doc, 92)
    if len(comment) > 1:
        lines = ["/**", *(f" * {line}" for line in comment), " */"]
    else:
        lines = [f"/** {line} */" for line in comment]
    return [*lines, f"#define {name} {value}"]


def _word_macros(word: str, fields: tuple[Field, ...]) -> list[str]:
    lines: list[str] = []
    for field in fields:
        stem = f"VELO_{word}_{field.name}".upper()
        lines += _define(f"{stem}_LSB", f"{field.lsb}u", field.doc)
        lines += _define(f"{stem}_BITS", f"{field.bits}u")
        lines += _define(f"{stem}_MASK", f"UINT64_C(0x{field.mask:016x})")
        lines.append("")
    return lines


def _pack_function(word: str, fields: tuple[Field, ...]) -> list[str]:
    """One word from its fields; a value too wide for its field is cut, never spilled."""
    arguments = [field for field in fields if field.name not in FIXED_VALUES]
    fixed = [field for field in fields if field.name in FIXED_VALUES]
    constant = sum(FIXED_VALUES[field.name] << field.lsb for field in fixed)
    stems = [(field, f"VELO_{word}_{field.name}".upper()) for field in arguments]
    terms = [f"(((uint64_t){field.name} << {stem}_LSB) & {stem}_MASK)" for field, stem in stems]
    if constant:
        terms.insert(0, f"UINT64_C(0x{constant:016x})")
    note = "".join(f", {field.name} = {FIXED_VALUES[field.name]}" for field in fixed)
    head = f"static inline uint64_t velo_{word}_pack("
    # A parameter's type and name stay on one line: the joining "~" keeps textwrap from splitting.
    parameters = ", ".join(f"{field.c_type}~{field.name}" for field in arguments)
    wrapped = textwrap.wrap(parameters, 99 - len(head))
    signature = f",\n{' ' * len(head)}".join(line.rstrip(",") for line in wrapped)
    joint = " |\n" + " " * 11
    return [
        f"/** {word.capitalize()} word from its fields{note}; bits that do not fit are dropped. */",
        f"{head}{signature.replace('~', ' ')})",
        "{",
        f"    return {joint.join(terms)};",
        "}",
        "",
    ]


def _get_function(word: str, field: Field) -> list[str]:
    stem = f"VELO_{word}_{field.name}".upper()
    return [
        f"/** Field `{field.name}` of {'an' if word[0] in 'aeiou' else 'a'} {word} word. */",
        f"static inline {field.c_type} velo_{word}_{field.name}(uint64_t {word})",
        "{",
        f"    return ({field.c_type})(({word} & {stem}_MASK) >> {stem}_LSB);",
        "}",
        "",
    ]


def c_header(spec: Spec, source: str) -> str:
    """The text of <velo/spec.h>."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* Generated from {source} by tools/velo/specgen.py; change the spec, not this file. */",
        "/**",
        " * @file spec.h",
        " * @brief Layouts that hardware and software share: address map, line, header word.",
        " *",
        " * Bit 0 is the least significant. A _MASK covers its field in place.",
        " */",
        "#ifndef VELO_SPEC_H",
        "#define VELO_SPEC_H",
        "",
        "#include <stdint.h>",
        "",
    ]
    constants = [
        # No suffix: it is also printed, as part of the version string.
        ("VELO_ABI_VERSION", f"{spec.abi}", "Raised when a layout changes incompatibly."),
        (
            "VELO_SPEC_HASH",
            f"UINT64_C(0x{spec.hash:016x})",
            "Hash of every layout below: two builds with the same hash agree on all of them.",
        ),
        ("VELO_LINE_BYTES", f"{spec.line_bytes}u", "One line: what one transaction carries."),
        ("VELO_LINE_HEADER_BYTES", f"{spec.header_bytes}u", "Header word at the start of a line."),
        ("VELO_ADDRESS_N_BITS", f"{spec.n_bits}u", "n: bits of a target address."),
        ("VELO_ADDRESS_T_BITS", f"{spec.t_bits}u", "t: bits below the node field."),
        ("VELO_ADDRESS_PAGE_BITS", f"{spec.page_bits}u", "Bits below the page; the user's own."),
        ("VELO_NODES", f"{spec.nodes}u", "Nodes that an address can name: 2^(n-t)."),
        ("VELO_VPIDS", f"{spec.vpids}u", "Contexts on one node: 2^(t-page)."),
    ]
    for name, value, doc in constants:
        lines += _define(name, value, doc)
    for word, fields, title in (
        ("address", spec.address, "The address that a sender writes to."),
        ("header", spec.header, "The first word of a slot: published last, never zero when valid."),
    ):
        lines += ["", f"/* --- {title} --- */", ""]
        lines += _word_macros(word, fields)
        for field in fields:
            lines += _get_function(word, field)
        lines += _pack_function(word, fields)
        lines.pop()
    return "\n".join([*lines, "", "#endif", ""])


# --- writing the reference page ---------------------------------------------------------------


def _field_table(fields: tuple[Field, ...]) -> list[str]:
    rows = [f"| {f.msb}:{f.lsb} | `{f.name}` | {f.bits} | {f.doc} |" for f in reversed(fields)]
    return ["| bits | field | width | meaning |", "| --- | --- | --- | --- |", *rows, ""]


def markdown(spec: Spec, source: str) -> str:
    """The reference page of all layouts."""
    return "\n".join(
        [
            "# Layouts",
            "",
            f"Generated from `{source}`. Bit 0 is the least significant; words are little-endian.",
            "",
            f"Layout version (ABI) {spec.abi}, hash `{spec.hash:016x}`.",
            "",
            "## Address",
            "",
            f"n = {spec.n_bits}, t = {spec.t_bits}, pages of {1 << spec.page_bits} bytes: "
            f"{spec.nodes} nodes of {spec.vpids} contexts. A grant maps whole pages; the bits "
            f"below bit {spec.page_bits} belong to the user.",
            "",
            *_field_table(spec.address),
            "## Line",
            "",
            f"{spec.line_bytes} bytes: a header word of {spec.header_bytes} bytes and up to "
            f"{spec.line_bytes - spec.header_bytes} bytes of payload.",
            "",
            "## Header word",
            "",
            *_field_table(spec.header),
        ]
    )


def _write_if_changed(path: Path, text: str) -> None:
    """Leave an unchanged file alone, so that nothing that includes it is built again."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="specgen", description=__doc__.splitlines()[0])
    parser.add_argument("spec", type=Path, help="the spec, spec/velo.toml")
    parser.add_argument("-o", "--output", type=Path, required=True, help="file to write")
    parser.add_argument("--format", choices=("c", "md"), default="c", help="what to write")
    args = parser.parse_args(argv)
    try:
        spec = parse(args.spec.read_text(encoding="utf-8"))
    except OSError as error:
        print(f"specgen: cannot read {args.spec}: {error.strerror}", file=sys.stderr)
        return 1
    except SpecError as error:
        print(f"{args.spec}: {error}", file=sys.stderr)
        return 1
    source = f"{args.spec.parent.name}/{args.spec.name}"
    text = c_header(spec, source) if args.format == "c" else markdown(spec, source)
    _write_if_changed(args.output, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
