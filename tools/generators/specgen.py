# SPDX-License-Identifier: Apache-2.0
"""Turn a file of spec/ into a C header, a SystemVerilog package, a Markdown page or a Lua table.

spec/velo.toml is the contract of the interconnect, <velo/spec.h>. A file with a table "package" has
layouts, enumerations and constants only, for a part of its own: <velo/PACKAGE_spec.h>, PACKAGE_pkg.

A spec that contradicts itself is refused with the name of the table at fault: a layout mistake must
never reach a compiler.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

GENERATOR = "tools/generators/specgen.py"
WORD_BITS = 64
# Of a control word between two link ports; a wider path leaves the bits above zero.
LINK_BITS = 32
# Keys that fix no layout.
PAGE_ONLY = {"doc", "notes", "payload", "link"}

# Fields that every packed word holds with the same value, so pack() does not take them.
FIXED_VALUES = {"valid": 1, "reserved": 0}

# Names that a generated struct or parameter could not have; those a layout is likely to ask for.
KEYWORDS = frozenset(
    """
    always and assert assign assume auto begin bit break buf byte case char checker class clocking
    config const constraint context continue cover cross default design do double edge else end enum
    event expect export extern final first_match float for force forever fork function generate
    global goto if import initial inline inout input inside int integer interface join let library
    local logic long longint macromodule matches module nand negedge new nor not null or output
    package packed parameter posedge priority program property protected pull0 pure rand real
    realtime reg register release repeat return scalared sequence short shortint signed sizeof solve
    specify static strong struct super switch table tagged task this time timeunit type typedef
    union unique unsigned until use var vectored virtual void volatile wait while wildcard wire with
    within wor xnor xor
    """.split()  # noqa: SIM905 - a list of this length is no easier to read.
)


class SpecError(ValueError):
    """The spec contradicts itself; the message names the table and what to change."""


@dataclass(frozen=True)
class Field:
    """A run of bits in a 64-bit word, bit 0 being the least significant."""

    name: str
    lsb: int
    bits: int
    doc: str
    word: int = 0
    fixed: int | None = None  # The value it always has; pack() does not take it.

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
class Constant:
    """A number with a name; also one value of an enumeration."""

    name: str
    value: int
    doc: str
    payload: str = ""  # Of a kind of packet: what its payload is.


@dataclass(frozen=True)
class Enum:
    """Named values of a field."""

    name: str
    bits: int
    doc: str
    values: tuple[Constant, ...]


@dataclass(frozen=True)
class Layout:
    """One or more 64-bit words with fields; bits in no field are zero."""

    name: str
    words: int
    doc: str
    fields: tuple[Field, ...]
    notes: str = ""  # Markdown, which stands below its table on the page.

    def word(self, index: int) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.word == index)


@dataclass(frozen=True)
class Base:
    """What only velo.toml has: version, address map, line and header word."""

    abi: int
    n_bits: int
    t_bits: int
    page_bits: int
    address: tuple[Field, ...]
    line_bytes: int
    header_bytes: int
    header: tuple[Field, ...]

    @property
    def nodes(self) -> int:
        return 1 << (self.n_bits - self.t_bits)

    @property
    def vpids(self) -> int:
        return 1 << (self.t_bits - self.page_bits)


@dataclass(frozen=True)
class Link:
    """Words of a cable. Hardware alone reads them, so only the page has them."""

    doc: str
    notes: str
    words: tuple[Layout, ...]


@dataclass(frozen=True)
class Spec:
    """The checked contents of a file."""

    package: str
    doc: str
    base: Base | None
    constants: tuple[Constant, ...]
    enums: tuple[Enum, ...]
    layouts: tuple[Layout, ...]
    link: Link | None
    hash: int


# --- reading and checking ---------------------------------------------------------------------


def _check(condition: bool, where: str, message: str) -> None:
    if not condition:
        raise SpecError(f"{where}: {message}")


def _table(parent: Mapping[str, Any], where: str, keys: set[str]) -> Mapping[str, Any]:
    """The table called `where`, with exactly the given keys."""
    table = parent.get(where.rpartition(".")[2])
    if not isinstance(table, Mapping):
        raise SpecError(f"{where}: this table is missing")
    _exact_keys(table, where, keys)
    return table


def _exact_keys(
    table: Mapping[str, Any], where: str, keys: set[str], optional: Set[str] = frozenset()
) -> None:
    missing = sorted(keys - table.keys())
    unknown = sorted(table.keys() - keys - optional)
    _check(not missing, where, f"add the missing key {', '.join(missing)}")
    _check(not unknown, where, f"remove the unknown key {', '.join(unknown)}")


def _integer(table: Mapping[str, Any], where: str, key: str, low: int, high: int) -> int:
    value = table[key]
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise SpecError(f"{where}: {key} must be {low} to {high}: {value!r}")
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
    _check_name(name, here)
    assert isinstance(name, str)
    _check(name not in KEYWORDS, here, "the name is a keyword of C or SystemVerilog")
    lsb = _integer(row, here, "lsb", 0, limit_bits - 1)
    bits = _integer(row, here, "bits", 1, WORD_BITS)
    _check(lsb + bits <= limit_bits, here, f"ends at bit {lsb + bits - 1}, above {limit_bits - 1}")
    fixed = FIXED_VALUES.get(name)
    _check(fixed is None or fixed < 1 << bits, here, "is too narrow for its fixed value")
    return Field(name, lsb, bits, _doc(row, here), fixed=fixed)


def _check_name(name: object, here: str) -> None:
    named = isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None
    _check(named, here, "a name is a lower-case C identifier")


def _doc(row: Mapping[str, Any], here: str, key: str = "doc") -> str:
    doc = row[key]
    if not isinstance(doc, str) or not doc.endswith("."):
        raise SpecError(f"{here}: {key} must be a sentence")
    _check("*/" not in doc, here, f"{key} must not end a C comment")
    return doc


def _rows(
    parent: Mapping[str, Any],
    key: str,
    where: str,
    keys: set[str],
    optional: Set[str] = frozenset(),
) -> list[tuple[str, Mapping[str, Any]]]:
    """The tables of an array, each with where it is; names are C identifiers, none twice."""
    rows = parent.get(key, [])
    _check(isinstance(rows, list), where, "must be an array of tables")
    found = []
    for row in rows:
        here = f'{where} "{row.get("name")}"'
        _exact_keys(row, here, keys, optional)
        _check_name(row["name"], here)
        same_name = [other for other in rows if other.get("name") == row["name"]]
        _check(len(same_name) == 1, here, "the name is used twice")
        found.append((here, row))
    return found


def _constants(
    parent: Mapping[str, Any], key: str, where: str, high: int, optional: Set[str] = frozenset()
) -> tuple[Constant, ...]:
    return tuple(
        Constant(
            row["name"],
            _integer(row, here, "value", 0, high),
            _doc(row, here),
            _doc(row, here, "payload") if "payload" in row else "",
        )
        for here, row in _rows(parent, key, where, {"name", "value", "doc"}, optional)
    )


def _enums(tables: Mapping[str, Any]) -> tuple[Enum, ...]:
    enums = []
    for here, row in _rows(tables, "enum", "enum", {"name", "bits", "doc", "values"}):
        bits = _integer(row, here, "bits", 1, 32)
        values = _constants(row, "values", f"{here}.values", (1 << bits) - 1, {"payload"})
        _check(bool(values), here, "give at least one value")
        numbers = [constant.value for constant in values]
        _check(len(set(numbers)) == len(numbers), here, "two names have the same value")
        told = {bool(constant.payload) for constant in values}
        _check(len(told) == 1, here, "either each value has a payload, or none")
        enums.append(Enum(row["name"], bits, _doc(row, here), values))
    return tuple(enums)


def _layouts(tables: Mapping[str, Any]) -> tuple[Layout, ...]:
    layouts = []
    keys = {"name", "words", "doc", "field"}
    for here, row in _rows(tables, "layout", "layout", keys, {"notes"}):
        _check(row["name"] not in {"address", "header"}, here, "the name is taken")
        words = _integer(row, here, "words", 1, 8)
        fields = _layout_fields(row, here, words)
        layouts.append(Layout(row["name"], words, _doc(row, here), fields, _notes(row, here)))
    return tuple(layouts)


def _notes(row: Mapping[str, Any], here: str) -> str:
    notes = row.get("notes", "")
    if not isinstance(notes, str):
        raise SpecError(f"{here}: notes must be a text")
    return notes.strip()


def _link(tables: Mapping[str, Any]) -> Link:
    link = _table(tables, "link", {"doc", "notes", "word"})
    words = [
        Layout(row["name"], 1, _doc(row, here), _fields(row, here, LINK_BITS))
        for here, row in _rows(link, "word", "link.word", {"name", "doc", "field"})
    ]
    return Link(_doc(link, "link"), _notes(link, "link"), tuple(words))


def _layout_fields(layout: Mapping[str, Any], where: str, words: int) -> tuple[Field, ...]:
    """The fields of all words; `word` and `value` are keys that only a layout's fields have."""
    by_word: list[list[Mapping[str, Any]]] = [[] for _ in range(words)]
    fixed: dict[str, int] = {}
    names: list[str] = []
    _check(isinstance(layout["field"], list), f"{where}.field", "must be an array of tables")
    for row in layout["field"]:
        here = f'{where}.field "{row.get("name")}"'
        word = _integer({"word": 0, **row}, here, "word", 0, words - 1)
        by_word[word].append({k: v for k, v in row.items() if k not in {"word", "value"}})
        _check(row.get("name") not in names, here, "the name is used twice")
        names.append(row.get("name", ""))
        if "value" in row:
            bits = _integer(row, here, "bits", 1, WORD_BITS)
            fixed[row["name"]] = _integer(row, here, "value", 0, (1 << bits) - 1)
    fields: list[Field] = []
    for word, rows in enumerate(by_word):
        for field in _fields({"field": rows}, f"{where} word {word}", WORD_BITS):
            fields.append(replace(field, word=word, fixed=fixed.get(field.name, field.fixed)))
    return tuple(fields)


def _check_address(spec: Base) -> None:
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


def _check_header(spec: Base) -> None:
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
        return {key: _without_docs(item) for key, item in value.items() if key not in PAGE_ONLY}
    if isinstance(value, list):
        return sorted((_without_docs(item) for item in value), key=lambda row: row["name"])
    return value


def _hash(tables: Mapping[str, Any]) -> int:
    canonical = json.dumps(_without_docs(tables), sort_keys=True, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(canonical.encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Window:
    """Other widths than the spec's for the address map and the node's window."""

    n_bits: int
    t_bits: int
    source_bits: int

    @classmethod
    def of(cls, text: str) -> "Window":
        """From `n,t,source`."""
        numbers = text.split(",")
        good = len(numbers) == 3 and all(number.strip().isdecimal() for number in numbers)
        _check(good, "--window", f"give n, t and the bits of a source, as in 28,20,8: {text}")
        return cls(*(int(number) for number in numbers))


# Registers take this part of a window, whatever the widths of what messages need.
UNIT_BITS_LEAST = 28


def _with_window(tables: dict[str, Any], window: Window) -> None:
    """Put other widths into a spec. The target's fields follow n and t; the source comes next, if
    there is one; then the unit."""
    address = tables["address"]
    page = address["page_bits"]
    vpid, node = window.t_bits - page, window.n_bits - window.t_bits
    widths = {"vpid": (page, vpid), "node": (window.t_bits, node)}
    for name, (_, bits) in widths.items():
        _check(1 <= bits <= 8, "--window", f"{name} would have {bits} bits; packets hold 1 to 8")
    _check(window.source_bits <= 8, "--window", "a source has at most 8 bits")
    address["n_bits"], address["t_bits"] = window.n_bits, window.t_bits
    for field in address["field"]:
        if field["name"] in widths:
            field["lsb"], field["bits"] = widths[field["name"]]
    for layout in tables.get("layout", []):
        if layout["name"] != "window":
            continue
        fields = {field["name"]: field for field in layout["field"]}
        fields["target"]["bits"] = window.n_bits
        fields["source"].update(lsb=window.n_bits, bits=window.source_bits)
        fields["unit"]["lsb"] = max(UNIT_BITS_LEAST, window.n_bits + window.source_bits)
        layout["field"] = [field for field in layout["field"] if field["bits"]]


def _base(tables: Mapping[str, Any]) -> Base:
    version = _table(tables, "version", {"abi"})
    address = _table(tables, "address", {"n_bits", "t_bits", "page_bits", "field"})
    line = _table(tables, "line", {"bytes", "header_bytes"})
    header = _table(tables, "header", {"field"})

    n_bits = _integer(address, "address", "n_bits", 3, WORD_BITS)
    t_bits = _integer(address, "address", "t_bits", 2, n_bits - 1)
    line_bytes = _integer(line, "line", "bytes", 16, 4096)
    _check(line_bytes.bit_count() == 1, "line", f"bytes must be a power of two: {line_bytes}")
    base = Base(
        abi=_integer(version, "version", "abi", 1, 0xFFFF_FFFF),
        n_bits=n_bits,
        t_bits=t_bits,
        page_bits=_integer(address, "address", "page_bits", 1, t_bits - 1),
        address=_fields(address, "address", n_bits),
        line_bytes=line_bytes,
        header_bytes=_integer(line, "line", "header_bytes", 8, 8),
        header=_fields(header, "header", WORD_BITS),
    )
    _check_address(base)
    _check_header(base)
    return base


def parse(text: str, window: Window | None = None) -> Spec:
    """Read and check a spec; raises SpecError."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"not TOML: {error}") from error
    lists = {"constant", "enum", "layout"}
    name, doc, base = "velo", "Layouts that hardware and software share.", None
    if "package" in tables:
        _check(window is None, "--window", "this file has no address map")
        _exact_keys(tables, "top level", {"package"}, lists)
        package = _table(tables, "package", {"name", "doc"})
        _check_name(package["name"], "package")
        name, doc = package["name"], _doc(package, "package")
    else:
        if window:
            _with_window(tables, window)
        keys = {"version", "address", "line", "header"}
        _exact_keys(tables, "top level", keys, {*lists, "link"})
        base = _base(tables)
    return Spec(
        package=name,
        doc=doc,
        base=base,
        constants=_constants(tables, "constant", "constant", 0xFFFF_FFFF),
        enums=_enums(tables),
        layouts=_layouts(tables),
        link=_link(tables) if "link" in tables else None,
        hash=_hash(tables),
    )


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


def _c_word(field: Field) -> str:
    """A field's value as a whole word."""
    return field.name if field.c_type == "uint64_t" else f"(uint64_t){field.name}"


def _pack_function(word: str, fields: tuple[Field, ...], stem: str = "") -> list[str]:
    """One word from its fields; a value too wide for its field is cut, never spilled."""
    arguments = [field for field in fields if field.fixed is None]
    fixed = [field for field in fields if field.fixed is not None]
    constant = sum((field.fixed or 0) << field.lsb for field in fixed)
    stems = [(field, f"VELO_{stem or word}_{field.name}".upper()) for field in arguments]
    terms = [f"(({_c_word(field)} << {macro}_LSB) & {macro}_MASK)" for field, macro in stems]
    if constant:
        terms.insert(0, f"UINT64_C(0x{constant:016x})")
    note = "".join(f", {field.name} = {field.fixed}" for field in fixed)
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


def _get_function(word: str, field: Field, argument: str = "") -> list[str]:
    stem = f"VELO_{word}_{field.name}".upper()
    whole = argument or word
    return [
        f"/** Field `{field.name}` of {'an' if word[0] in 'aeiou' else 'a'} {whole} word. */",
        f"static inline {field.c_type} velo_{word}_{field.name}(uint64_t {whole})",
        "{",
        f"    return ({field.c_type})(({whole} & {stem}_MASK) >> {stem}_LSB);",
        "}",
        "",
    ]


def _c_enum(enum: Enum) -> list[str]:
    stem = f"VELO_{enum.name}".upper()
    lines = [f"/* --- {enum.doc} --- */"]
    for value in enum.values:
        lines += _define(f"{stem}_{value.name}".upper(), f"{value.value}u", value.doc)
    return lines


def _c_layout(layout: Layout) -> list[str]:
    """Macros and functions of a layout: one pack function a word."""
    comment = textwrap.wrap(f"--- {layout.doc} ---", 94)
    lines = ["/* " + "\n * ".join(comment) + " */", ""]
    lines += _define(f"VELO_{layout.name}_WORDS".upper(), f"{layout.words}u")
    lines += ["", *_word_macros(layout.name, layout.fields)]
    for index in range(layout.words):
        word = layout.name if layout.words == 1 else f"{layout.name}_word{index}"
        for field in layout.word(index):
            lines += _get_function(layout.name, field, word)
        lines += _pack_function(word, layout.word(index), layout.name)
    lines.pop()
    return lines


def _c_base(base: Base, digest: int) -> list[str]:
    """Version, address map, line and header word."""
    constants = [
        # No suffix: it is also printed, as part of the version string.
        ("VELO_ABI_VERSION", f"{base.abi}", "Raised when a layout changes incompatibly."),
        (
            "VELO_SPEC_HASH",
            f"UINT64_C(0x{digest:016x})",
            "Hash of every layout below: two builds with the same hash agree on all of them.",
        ),
        ("VELO_LINE_BYTES", f"{base.line_bytes}u", "One line: what one transaction carries."),
        ("VELO_LINE_HEADER_BYTES", f"{base.header_bytes}u", "Header word at the start of a line."),
        ("VELO_ADDRESS_N_BITS", f"{base.n_bits}u", "n: bits of a target address."),
        ("VELO_ADDRESS_T_BITS", f"{base.t_bits}u", "t: bits below the node field."),
        ("VELO_ADDRESS_PAGE_BITS", f"{base.page_bits}u", "Bits below the page; the user's own."),
        ("VELO_NODES", f"{base.nodes}u", "Nodes that an address can name: 2^(n-t)."),
        ("VELO_VPIDS", f"{base.vpids}u", "Contexts on one node: 2^(t-page)."),
    ]
    lines = []
    for name, value, doc in constants:
        lines += _define(name, value, doc)
    for word, fields, title in (
        ("address", base.address, "The address that a sender writes to."),
        ("header", base.header, "The first word of a slot: published last, never zero when valid."),
    ):
        lines += ["", f"/* --- {title} --- */", ""]
        lines += _word_macros(word, fields)
        for field in fields:
            lines += _get_function(word, field)
        lines += _pack_function(word, fields)
        lines.pop()
    return lines


def c_header(spec: Spec, source: str) -> str:
    """The text of <velo/spec.h>, or of the header of a package."""
    name = "spec.h" if spec.base else f"{spec.package}_spec.h"
    guard = f"VELO_{name}".upper().replace(".", "_")
    brief = (
        "Layouts that hardware and software share: address map, line, header word."
        if spec.base
        else spec.doc
    )
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* Generated from {source} by {GENERATOR}; change the spec, not this file. */",
        "/**",
        f" * @file {name}",
        f" * @brief {brief}",
        " *",
        " * Bit 0 is the least significant. A _MASK covers its field in place.",
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
    ]
    if spec.base:
        lines += _c_base(spec.base, spec.hash)
    else:
        digest = "Hash of every layout below: two builds with the same hash agree on all of them."
        value = f"UINT64_C(0x{spec.hash:016x})"
        lines += _define(f"VELO_{spec.package.upper()}_SPEC_HASH", value, digest)
    for constant in spec.constants:
        lines += ["", *_define(f"VELO_{constant.name}".upper(), f"{constant.value}u", constant.doc)]
    for enum in spec.enums:
        lines += ["", *_c_enum(enum)]
    for layout in spec.layouts:
        lines += ["", *_c_layout(layout)]
    return "\n".join([*lines, "", "#endif", ""])


# --- writing the SystemVerilog package --------------------------------------------------------


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _sv_comment(doc: str, indent: str = "  ") -> list[str]:
    return [f"{indent}// {line}" for line in textwrap.wrap(doc, 96 - len(indent))]


def _sv_parameter(name: str, value: int, doc: str, bits: int = 0) -> list[str]:
    """A constant; `bits` gives it a vector's width, else it is an unsigned integer."""
    kind = f"logic [{bits - 1}:0]" if bits else "int unsigned"
    literal = f"{bits}'h{value:0{bits // 4}x}" if bits else f"{value}"
    return [*_sv_comment(doc), f"  parameter {kind} {name} = {literal};"]


def _sv_enum(enum: Enum) -> list[str]:
    prefix = _camel(enum.name)
    names = [f"{prefix}{_camel(value.name)} = {enum.bits}'d{value.value}" for value in enum.values]
    lines = [*_sv_comment(enum.doc), f"  typedef enum logic [{enum.bits - 1}:0] {{"]
    for value, name in zip(enum.values, names, strict=True):
        comma = "" if value is enum.values[-1] else ","
        lines += [*_sv_comment(value.doc, "    "), f"    {name}{comma}"]
    return [*lines, f"  }} {enum.name}_e;", ""]


def _sv_vector(name: str, bits: int) -> str:
    return f"    logic {f'[{bits - 1}:0] ' if bits > 1 else ''}{name};"


def _runs(fields: Iterable[Field], bits: int) -> Iterator[tuple[int, int, Field | None]]:
    """Every bit once, the highest first: the fields, and the runs of bits in none of them."""
    top = bits
    for field in sorted(fields, key=lambda field: (field.word, field.lsb), reverse=True):
        lsb = field.word * WORD_BITS + field.lsb
        if lsb + field.bits < top:
            yield top - 1, lsb + field.bits, None
        yield lsb + field.bits - 1, lsb, field
        top = lsb
    if top:
        yield top - 1, 0, None


def _sv_struct(name: str, doc: str, fields: tuple[Field, ...], bits: int) -> list[str]:
    """A packed struct of exactly `bits` bits, the highest first; gaps get a name of their own."""
    lines = [*_sv_comment(doc), "  typedef struct packed {"]
    for msb, lsb, field in _runs(fields, bits):
        lines += _sv_comment(field.doc, "    ") if field else []
        lines.append(_sv_vector(field.name if field else f"zero_{lsb}", msb - lsb + 1))
    return [*lines, f"  }} {name}_t;", ""]


def _sv_window(window: Layout) -> list[str]:
    """Where an address has its source and unit; a source may be of no bits."""
    fields = {field.name: field for field in window.fields}
    unit, source = fields["unit"], fields.get("source")
    lsb, bits = (source.lsb, source.bits) if source else (fields["target"].bits, 0)
    return [
        *_sv_parameter("WindowSourceLsb", lsb, "Where an address in the window has its source."),
        *_sv_parameter("WindowSourceBits", bits, "Bits of it; none: addresses do not tell."),
        *_sv_parameter("WindowUnitLsb", unit.lsb, "Where it has its unit."),
        *_sv_comment(
            "Context that the page of an address was granted to; 0 if addresses do not tell."
        ),
        "  function automatic logic [7:0] window_source(logic [63:0] address);",
        "    return 8'((address >> WindowSourceLsb) & ((64'd1 << WindowSourceBits) - 64'd1));",
        "  endfunction",
        "",
    ]


def sv_package(spec: Spec, source: str) -> str:
    """The text of PACKAGE_pkg.sv."""
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        f"// Generated from {source} by {GENERATOR}; change the spec, not this file.",
        "//",
        f"// {spec.doc} In a struct the highest bit comes first.",
        "",
        f"package {spec.package}_pkg;",
        "",
    ]
    numbers: list[tuple[str, int, str]] = []
    layouts = list(spec.layouts)
    base = spec.base
    if base:
        numbers += [
            ("AbiVersion", base.abi, "Raised when a layout changes incompatibly."),
            ("LineBytes", base.line_bytes, "One line: what one transaction carries."),
            ("LineHeaderBytes", base.header_bytes, "Header word at the start of a line."),
            ("AddressNBits", base.n_bits, "n: bits of a target address."),
            ("AddressTBits", base.t_bits, "t: bits below the node field."),
            ("AddressPageBits", base.page_bits, "Bits below the page; the user's own."),
        ]
        address, header = (
            "The address that a sender writes to.",
            "The first word of a line or slot.",
        )
        layouts[:0] = [
            Layout("address", 1, address, base.address),
            Layout("header", 1, header, base.header),
        ]
    numbers += [(_camel(c.name), c.value, c.doc) for c in spec.constants]
    for name, value, doc in numbers:
        lines += _sv_parameter(name, value, doc)
    hash_doc = "Hash of every layout: two builds with the same hash agree on all of them."
    lines += [*_sv_parameter("SpecHash", spec.hash, hash_doc, WORD_BITS), ""]
    for enum in spec.enums:
        lines += _sv_enum(enum)
    for layout in layouts:
        bits = base.n_bits if base and layout.name == "address" else layout.words * WORD_BITS
        lines += _sv_struct(layout.name, layout.doc, layout.fields, bits)
        if layout.name == "window":
            lines += _sv_window(layout)
    return "\n".join([*lines, "endpackage", ""])


# --- writing the reference page ---------------------------------------------------------------


def _field_table(fields: tuple[Field, ...], bits: int = WORD_BITS) -> list[str]:
    rows = [
        f"| {msb}:{lsb} | {f'`{field.name}`' if field else '–'} | {msb - lsb + 1} "
        f"| {field.doc if field else 'Zero.'} |"
        for msb, lsb, field in _runs((replace(field, word=0) for field in fields), bits)
    ]
    return ["| bits | field | width | meaning |", "| --- | --- | --- | --- |", *rows, ""]


def _layout_section(layout: Layout) -> list[str]:
    lines = [f"## {layout.name.replace('_', ' ').capitalize()}", "", layout.doc, ""]
    for index in range(layout.words):
        if layout.words > 1:
            lines += [f"Word {index}:", ""]
        lines += _field_table(layout.word(index))
    return [*lines, layout.notes, ""] if layout.notes else lines


def _link_section(link: Link) -> list[str]:
    lines = ["## Words of a link", "", link.doc, "", link.notes, ""]
    for word in link.words:
        lines += [f"### {word.name.capitalize()} word", "", word.doc, ""]
        lines += _field_table(word.fields, LINK_BITS)
    return lines


def _value_table(values: tuple[Constant, ...]) -> list[str]:
    if values and values[0].payload:
        rows = [f"| {v.value} | `{v.name}` | {v.doc} | {v.payload} |" for v in values]
        return ["| value | name | meaning | payload |", "| --- | --- | --- | --- |", *rows, ""]
    rows = [f"| {v.value} | `{v.name}` | {v.doc} |" for v in values]
    return ["| value | name | meaning |", "| --- | --- | --- |", *rows, ""]


def _value_section(enum: Enum) -> list[str]:
    title = f"## Values of {enum.name.replace('_', ' ')}"
    return [title, "", enum.doc, "", *_value_table(enum.values)]


def _base_sections(base: Base, digest: int) -> list[str]:
    return [
        f"Layout version (ABI) {base.abi}, hash `{digest:016x}`.",
        "",
        "## Address",
        "",
        f"n = {base.n_bits}, t = {base.t_bits}, pages of {1 << base.page_bits} bytes: "
        f"{base.nodes} nodes of {base.vpids} contexts. A grant maps whole pages; the bits "
        f"below bit {base.page_bits} belong to the user.",
        "",
        *_field_table(base.address, base.n_bits),
        "## Line",
        "",
        f"{base.line_bytes} bytes: a header word of {base.header_bytes} bytes and up to "
        f"{base.line_bytes - base.header_bytes} bytes of payload.",
        "",
        "## Header word",
        "",
        *_field_table(base.header),
    ]


def markdown(spec: Spec, source: str) -> str:
    """The reference page of all layouts."""
    return "\n".join(
        [
            "# Layouts" if spec.base else f"# Layouts of {spec.package}",
            "",
            f"Generated from `{source}`. Bit 0 is the least significant; words are little-endian.",
            "",
            *(_base_sections(spec.base, spec.hash) if spec.base else [spec.doc, ""]),
            *(line for layout in spec.layouts for line in _layout_section(layout)),
            *(_link_section(spec.link) if spec.link else []),
            *(line for enum in spec.enums for line in _value_section(enum)),
            "## Constants",
            "",
            *_value_table(spec.constants),
        ]
    )


# --- writing the table of the dissector -------------------------------------------------------


def _lua_fields(fields: tuple[Field, ...]) -> list[str]:
    return [
        f"      {{ name = {json.dumps(f.name)}, word = {f.word}, lsb = {f.lsb}, bits = {f.bits}, "
        f"doc = {json.dumps(f.doc, ensure_ascii=False)} }},"
        for f in fields
    ]


def lua_table(spec: Spec, source: str) -> str:
    """A Lua table of enumerations, layouts and link words, PACKAGE_spec."""
    lines = [
        "-- SPDX-License-Identifier: Apache-2.0",
        f"-- Generated from {source} by {GENERATOR}; change the spec, not this file.",
        f"local {spec.package}_spec = {{",
        "  constants = {",
        *(f"    {constant.name} = {constant.value}," for constant in spec.constants),
        "  },",
        "  enums = {",
    ]
    for enum in spec.enums:
        names = ", ".join(f"[{value.value}] = {json.dumps(value.name)}" for value in enum.values)
        lines.append(f"    {enum.name} = {{ {names} }},")
    lines += ["  },", "  layouts = {"]
    words = spec.link.words if spec.link else ()
    for name, layout in (
        *((layout.name, layout) for layout in spec.layouts),
        *((f"link_{word.name}", word) for word in words),
    ):
        lines += [f"    {name} = {{", *_lua_fields(layout.fields), "    },"]
    return "\n".join([*lines, "  },", "}", ""])


WRITERS = {"c": c_header, "md": markdown, "sv": sv_package, "lua": lua_table}


def _write_if_changed(path: Path, text: str) -> None:
    """Leave an unchanged file alone, so that nothing that includes it is built again.

    A changed one is replaced at once, since a compiler beside this may be reading it.
    """
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="specgen", description=__doc__.splitlines()[0])
    parser.add_argument("spec", type=Path, help="a file of spec/")
    parser.add_argument("-o", "--output", type=Path, required=True, help="file to write")
    parser.add_argument("--format", choices=tuple(WRITERS), default="c", help="what to write")
    parser.add_argument(
        "--window",
        help="n,t,s: widths of target addresses and of the source, in place of the spec's",
    )
    args = parser.parse_args(argv)
    try:
        window = Window.of(args.window) if args.window else None
        spec = parse(args.spec.read_text(encoding="utf-8"), window)
    except OSError as error:
        print(f"specgen: cannot read {args.spec}: {error.strerror}", file=sys.stderr)
        return 1
    except SpecError as error:
        print(f"{args.spec}: {error}", file=sys.stderr)
        return 1
    source = f"{args.spec.parent.name}/{args.spec.name}"
    _write_if_changed(args.output, WRITERS[args.format](spec, source))
    return 0


if __name__ == "__main__":
    sys.exit(main())
