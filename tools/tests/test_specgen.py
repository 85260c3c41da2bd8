# SPDX-License-Identifier: Apache-2.0
"""The spec generator: its output is right in C, and a contradictory spec is refused."""

import re
import subprocess
from pathlib import Path

import pytest

from generators import specgen

ROOT = Path(__file__).resolve().parents[2]
SPEC = (ROOT / "spec" / "velo.toml").read_text(encoding="utf-8")

SMALL = """
[version]
abi = 7
[address]
n_bits = 20
t_bits = 16
page_bits = 12
[[address.field]]
name = "offset"
lsb = 0
bits = 6
doc = "Offset."
[[address.field]]
name = "vpid"
lsb = 12
bits = 4
doc = "Context."
[[address.field]]
name = "node"
lsb = 16
bits = 4
doc = "Node."
[line]
bytes = 64
header_bytes = 8
[[header.field]]
name = "valid"
lsb = 0
bits = 1
doc = "One."
[[header.field]]
name = "reserved"
lsb = 1
bits = 15
doc = "Zero."
[[header.field]]
name = "wide"
lsb = 16
bits = 48
doc = "The rest."
"""


# What only some specs have, and what hardware sees; each word of a layout is packed on its own.
EXTRA = """
[[constant]]
name = "depth_max"
value = 512
doc = "Depth."
[[enum]]
name = "two_words"
bits = 2
doc = "Kinds."
values = [
    { name = "first", value = 1, doc = "One." },
    { name = "and_last", value = 2, doc = "Two." },
]
[[layout]]
name = "pair"
words = 2
doc = "Two words."
field = [
    { name = "mark", lsb = 0, bits = 1, value = 1, doc = "One." },
    { name = "low", lsb = 8, bits = 4, doc = "Low." },
    { name = "high", word = 1, lsb = 60, bits = 4, doc = "High." },
]
"""


def changed(old: str, new: str) -> str:
    """SMALL with one place changed; fails if that place is gone, so that no case tests nothing."""
    assert SMALL.count(old) == 1, old
    return SMALL.replace(old, new)


def test_the_small_spec_is_accepted():
    spec = specgen.parse(SMALL)
    assert (spec.base.abi, spec.base.nodes, spec.base.vpids) == (7, 16, 16)
    assert [field.name for field in spec.base.header] == ["valid", "reserved", "wide"]
    assert spec.base.header[2].mask == 0xFFFF_FFFF_FFFF_0000


def test_the_shipped_spec_keeps_the_papers_address_map():
    spec = specgen.parse(SPEC)
    assert (spec.base.n_bits, spec.base.t_bits, spec.base.page_bits) == (28, 20, 12)
    assert spec.base.nodes * spec.base.vpids == 65536


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed("lsb = 1\nbits = 15", "lsb = 1\nbits = 16"), r'"wide": starts at bit 16, inside'),
        (changed("lsb = 1\nbits = 15", "lsb = 1\nbits = 14"), r"header: bit 15 is in no field"),
        (changed("bits = 48", "bits = 49"), r'"wide": ends at bit 64, above 63'),
        (changed("lsb = 16\nbits = 48", "lsb = 64\nbits = 48"), r"lsb must be 0 to 63: 64"),
        (changed("bits = 48", "bits = 0"), r"bits must be 1 to 64: 0"),
        (changed("bits = 48", "bits = true"), r"bits must be 1 to 64: True"),
        (
            changed('"node"\nlsb = 16\nbits = 4', '"node"\nlsb = 16\nbits = 5'),
            r'"node": ends at bit 20',
        ),
        (changed("lsb = 12\nbits = 4", "lsb = 12\nbits = 3"), r'"vpid": .* lsb = 12, bits = 4'),
        (changed("lsb = 0\nbits = 6", "lsb = 0\nbits = 13"), r'"vpid": starts at bit 12, inside'),
        (changed('name = "vpid"', 'name = "target"'), r"\"vpid\" is missing"),
        (changed('"offset"\nlsb = 0\nbits = 6', '"x"\nlsb = 7\nbits = 6'), r'inside "x"'),
        (changed('name = "valid"', 'name = "ready"'), r"\"valid\", .* is missing"),
        (changed('name = "wide"', 'name = "reserved"'), r"the name is used twice"),
        (changed('name = "wide"', 'name = "Wide"'), r"lower-case C identifier"),
        (changed('doc = "The rest."', 'doc = "The rest"'), r"doc must be a sentence"),
        (changed('doc = "The rest."', 'doc = "No */ here."'), r"must not end a C comment"),
        (changed('doc = "The rest."', ""), r'"wide": add the missing key doc'),
        (changed("abi = 7", "abi = 0"), r"version: abi must be 1 to"),
        (changed("abi = 7", "abi = 7\nminor = 1"), r"version: remove the unknown key minor"),
        (changed("[line]\nbytes = 64", "[line]\nbytes = 96"), r"bytes must be a power of two"),
        (changed("header_bytes = 8", "header_bytes = 16"), r"header_bytes must be 8 to 8"),
        (changed("t_bits = 16", "t_bits = 20"), r"t_bits must be 2 to 19"),
        (changed("page_bits = 12", "page_bits = 16"), r"page_bits must be 1 to 15"),
        (changed("[version]\nabi = 7", ""), r"add the missing key version"),
        (changed("[version]", "[versions]"), r"add the missing key version"),
        (changed("abi = 7", "abi = "), r"not TOML"),
    ],
)
def test_a_spec_that_contradicts_itself_is_refused(text: str, message: str):
    with pytest.raises(specgen.SpecError, match=message):
        specgen.parse(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"low", lsb = 8', '"low", lsb = 0', r'"pair" word 0.field "(low|mark)": starts at bit 0'),
        ('"high", word = 1', '"high", word = 2', r'"high": word must be 0 to 1: 2'),
        ('"high", word = 1, lsb = 60', '"high", word = 1, lsb = 61', r'"high": ends at bit 64'),
        ('name = "high"', 'name = "low"', r'"low": the name is used twice'),
        ("bits = 1, value = 1", "bits = 1, value = 2", r'"mark": value must be 0 to 1: 2'),
        ('word = 1, lsb = 60, bits = 4, doc = "High."', 'lsb = 60, bits = 4, doc = "High."',
         r'"pair" word 1.field: give at least one field'),
        ("words = 2", "words = 9", r'"pair": words must be 1 to 8: 9'),
        ('name = "pair"', 'name = "header"', r'"header": the name is taken'),
        ("bits = 2\ndoc", "bits = 1\ndoc", r'"and_last": value must be 0 to 1: 2'),
        ('"and_last", value = 2', '"and_last", value = 1', r"two names have the same value"),
        ('"and_last"', '"first"', r'"first": the name is used twice'),
        ("value = 512", "value = -1", r'constant "depth_max": value must be'),
        ('doc = "Depth."', 'unit = "slots"', r'"depth_max": add the missing key doc'),
        ('name = "depth_max"', 'name = "DEPTH"', r'"DEPTH": a name is a lower-case'),
        ('name = "low"', 'name = "local"', r'"local": the name is a keyword'),
    ],
)  # fmt: skip
def test_a_layout_that_contradicts_itself_is_refused(old: str, new: str, message: str):
    assert EXTRA.count(old) == 1, old
    with pytest.raises(specgen.SpecError, match=message):
        specgen.parse(SMALL + EXTRA.replace(old, new))


def sv_places(text: str, struct: str) -> dict[str, tuple[int, int]]:
    """(lowest bit, bits) of each member of a packed struct, as a SystemVerilog compiler counts."""
    body = re.search(rf"typedef struct packed \{{([^}}]*)\}} {struct};", text)
    assert body, struct
    members = re.findall(r"^ +logic (?:\[(\d+):0\] )?(\w+);", body[1], re.MULTILINE)
    places, lsb = {}, 0
    for msb, name in reversed(members):
        bits = int(msb or 0) + 1
        places[name] = (lsb, bits)
        lsb += bits
    return places


def test_the_systemverilog_package_has_every_field_in_its_place(tmp_path: Path):
    package = tmp_path / "velo_pkg.sv"
    command = [str(ROOT / "spec/velo.toml"), "--format", "sv", "-o", str(package)]
    assert specgen.main(command) == 0
    text = package.read_text(encoding="utf-8")
    assert max(len(line) for line in text.splitlines()) <= 100
    spec = specgen.parse(SPEC)
    for name, words, fields in (
        ("header", 1, spec.base.header),
        *((layout.name, layout.words, layout.fields) for layout in spec.layouts),
    ):
        places = sv_places(text, f"{name}_t")
        for field in fields:
            assert places[field.name] == (field.word * 64 + field.lsb, field.bits), field.name
        assert max(lsb + bits for lsb, bits in places.values()) == words * 64, name
    assert sv_places(text, "address_t")["node"] == (20, 8)


def test_the_systemverilog_package_has_enums_and_constants():
    text = specgen.sv_package(specgen.parse(SMALL + EXTRA), "here")
    assert "parameter int unsigned DepthMax = 512;" in text
    assert "typedef enum logic [1:0] {" in text and "} two_words_e;" in text
    assert "TwoWordsFirst = 2'd1,\n" in text and "TwoWordsAndLast = 2'd2\n" in text


def test_layouts_of_several_words_pack_in_c(tmp_path: Path):
    build_and_run(
        tmp_path,
        SMALL + EXTRA,
        """
        assert(VELO_DEPTH_MAX == 512 && VELO_TWO_WORDS_AND_LAST == 2 && VELO_PAIR_WORDS == 2);
        assert(velo_pair_word0_pack(0xff) == 0xf01);
        assert(velo_pair_word1_pack(0xa) == UINT64_C(0xa000000000000000));
        assert(velo_pair_low(0x701) == 7);
        assert(velo_pair_high(UINT64_C(0x5000000000000000)) == 5);
        """,
    )


def test_the_packet_header_is_the_contracts(tmp_path: Path):
    build_and_run(
        tmp_path,
        SPEC,
        """
        assert(velo_packet_pack(2, 0, 8, 0x12, 0x34, 1, 0, 0x201, 0xab, 0xcd, 0xef) ==
               UINT64_C(0x0efcdab805341284));
        assert(velo_packet_pack(0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0) == 8);
        assert((velo_route_pack(1, 0, 0) & 15) == 3 && velo_route_hops(0xf10) == 0xf1);
        """,
    )


def test_the_hash_follows_the_layout_and_nothing_else():
    hash_of = lambda text: specgen.parse(text).hash  # noqa: E731
    first, second = SMALL.index("[[header.field]]"), SMALL.rindex("[[header.field]]")
    reordered = SMALL[:first] + SMALL[second:] + SMALL[first:second]
    assert hash_of(reordered) == hash_of(SMALL)
    assert hash_of(changed("The rest.", "What is left.")) == hash_of(SMALL)
    assert hash_of(changed('name = "wide"', 'name = "width"')) != hash_of(SMALL)
    assert hash_of(changed("abi = 7", "abi = 8")) != hash_of(SMALL)


def build_and_run(tmp_path: Path, spec: str, body: str, header: str = "spec.h") -> None:
    """Compile a program against the header of `spec`, all warnings on; its asserts must hold."""
    (tmp_path / "velo.toml").write_text(spec, encoding="utf-8")
    output = tmp_path / "velo" / header
    assert specgen.main([str(tmp_path / "velo.toml"), "-o", str(output)]) == 0
    source = tmp_path / "check.c"
    includes = f"#include <assert.h>\n#include <velo/{header}>\n"
    source.write_text(f"{includes}int main(void) {{ {body} return 0; }}\n", encoding="utf-8")
    program = tmp_path / "check"
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wpedantic", "-Werror"]
    subprocess.run(
        ["cc", "-std=c11", *warnings, f"-I{tmp_path}", "-o", program, source], check=True
    )
    subprocess.run([program], check=True)


def test_packing_and_unpacking_in_c_agree(tmp_path: Path):
    build_and_run(
        tmp_path,
        SPEC,
        """
        uint64_t h = velo_header_pack(1, 0xab, 0xcdef, 0x1234, 0x5678);
        assert(h == UINT64_C(0x56781234cdefab03));
        assert(velo_header_valid(h) == 1 && velo_header_external(h) == 1);
        assert(velo_header_reserved(h) == 0 && velo_header_tag(h) == 0xab);
        assert(velo_header_len(h) == 0xcdef && velo_header_source(h) == 0x1234);
        assert(velo_header_seq(h) == 0x5678);
        assert(velo_header_pack(0, 0, 0, 0, 0) != 0);
        assert(velo_address_pack(0, 7, 3, 2) == 0x2031c0);
        assert(velo_address_vpid(0x2031c0) == 3 && velo_address_node(0x2031c0) == 2);
        """,
    )


def test_a_value_too_wide_for_its_field_does_not_spill(tmp_path: Path):
    build_and_run(
        tmp_path,
        SPEC,
        "assert(velo_header_pack(0xff, 0, 0, 0, 0) == 3); assert(velo_address_pack(0xff, 0, 0, 0)"
        " == 0x3f);",
    )


def test_every_width_gets_a_type_that_holds_it(tmp_path: Path):
    build_and_run(
        tmp_path,
        SMALL,
        "assert(velo_header_wide(velo_header_pack(UINT64_C(0xfedcba987654))) =="
        " UINT64_C(0xfedcba987654));",
    )


def test_an_unchanged_header_is_not_written_again(tmp_path: Path):
    spec, header = tmp_path / "velo.toml", tmp_path / "spec.h"
    spec.write_text(SMALL, encoding="utf-8")
    assert specgen.main([str(spec), "-o", str(header)]) == 0
    written_ns = header.stat().st_mtime_ns
    assert specgen.main([str(spec), "-o", str(header)]) == 0
    assert header.stat().st_mtime_ns == written_ns


def test_the_reference_page_lists_every_field(tmp_path: Path):
    page = tmp_path / "docs" / "layout.md"
    assert specgen.main([str(ROOT / "spec/velo.toml"), "--format", "md", "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    spec = specgen.parse(SPEC)
    layout_fields = (field for layout in spec.layouts for field in layout.fields)
    for field in (*spec.base.address, *spec.base.header, *layout_fields):
        assert re.search(rf"^\| {field.msb}:{field.lsb} \| `{field.name}` \|", text, re.MULTILINE)


def test_each_table_of_the_reference_page_has_every_bit_of_its_word_once():
    spec = specgen.parse(SPEC)
    page = specgen.markdown(spec, "spec/velo.toml")
    tables = page.split("| bits | field | width | meaning |")[1:]
    assert spec.link
    first_of_link = len(tables) - len(spec.link.words)
    for number, table in enumerate(tables):
        rows = re.findall(r"^\| (\d+):(\d+) \| .* \| (\d+) \|", table, re.MULTILINE)
        bits = [bit for msb, lsb, _ in rows for bit in range(int(msb), int(lsb) - 1, -1)]
        # The first is the address; the last ones are the words of a link.
        top = 31 if number >= first_of_link else 63 if number else 27
        assert bits == list(range(top, -1, -1))
        assert all(int(msb) - int(lsb) + 1 == int(width) for msb, lsb, width in rows)


def struct_fields(source: str, name: str) -> list[tuple[str, int]]:
    """Name and width of each field of a packed struct and of the structs in it, highest first."""
    numbers = {n: int(v) for n, v in re.findall(r"int unsigned (\w+) = (\d+);", source)}

    def width(text: str) -> int:
        high = re.match(r"logic \[(.+):0\]", text)
        if not high:
            return 1
        terms = re.split(r" ?- ?", high[1])
        first, *rest = (numbers[t] if t in numbers else int(t) for t in terms)
        return first - sum(rest) + 1

    vectors = dict(re.findall(r"typedef (logic \[.+\]) +(\w+_t);", source))
    vectors = {alias: text for text, alias in vectors.items()}
    body = re.search(rf"typedef struct packed \{{([^}}]*)\}} {name};", source)
    assert body, name
    fields = []
    for kind, field in re.findall(r"^ +(logic(?: \[.+?\])?|\w+_t) +(\w+);", body[1], re.MULTILINE):
        if f"}} {kind};" in source:
            inner = struct_fields(source, kind)
            fields += [(f"half_{f}" if field == "half" else f, bits) for f, bits in inner]
        else:
            fields.append((field, width(vectors.get(kind, kind))))
    return fields


def test_the_words_of_a_link_are_those_of_the_hardware():
    source = (ROOT / "rtl/link/rtl/velo_link_pkg.sv").read_text(encoding="utf-8")
    source = re.sub(r"//.*", "", source)
    link = specgen.parse(SPEC).link
    assert link
    for word in link.words:
        told = [(field.name, field.bits) for field in reversed(word.fields)]
        assert told == struct_fields(source, f"{word.name}_t")
    kinds = re.findall(r"Kind(Data|Ctl|End|Start) += 2'd(\d)", source)
    names = {"Data": "data", "Ctl": "control", "End": "end", "Start": "start"}
    assert len(kinds) == 4
    for kind, value in kinds:
        assert f"| {value} | {names[kind]} |" in link.notes
    assert "CtlCrcPoly = 12'h80F" in source and "0x80F" in link.notes


def test_what_only_the_page_shows_changes_neither_hash_nor_package():
    without = re.sub(r"^\[link\].*?(?=^# Later)", "", SPEC, flags=re.DOTALL | re.MULTILINE)
    without = re.sub(r', payload = ".*?"', "", without)
    without = re.sub(r'^notes = """.*?"""\n', "", without, flags=re.DOTALL | re.MULTILINE)
    plain, spec = specgen.parse(without), specgen.parse(SPEC)
    assert spec.link and not plain.link
    for writer in (specgen.c_header, specgen.sv_package):
        assert writer(plain, "spec/velo.toml") == writer(spec, "spec/velo.toml")
    page, short = (specgen.markdown(each, "spec/velo.toml") for each in (spec, plain))
    assert "rma_command, then rma_operands." in page and "What follows the header" in page
    assert len(page) > len(short) + 4000


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (', payload = "None."', "", "either each value has a payload, or none"),
        (', payload = "None."', ', payload = "None"', "payload must be a sentence"),
        ('notes = """\n### What', 'notes = 5\n# """\n### What', "notes must be a text|not TOML"),
        ("lsb = 20, bits = 12", "lsb = 21, bits = 12", "ends at bit 32, above 31"),
        ('[link]\ndoc = "What', '[link]\nmore = 1\ndoc = "What', "remove the unknown key more"),
    ],
)
def test_a_mistake_in_what_only_the_page_shows_is_refused(old: str, new: str, message: str):
    assert old in SPEC
    with pytest.raises(specgen.SpecError, match=message):
        specgen.parse(SPEC.replace(old, new, 1))


def test_mistakes_are_reported_without_a_traceback(tmp_path: Path, capsys):
    output = ["-o", str(tmp_path / "spec.h")]
    assert specgen.main([str(tmp_path / "absent.toml"), *output]) == 1
    assert "cannot read" in capsys.readouterr().err
    bad = tmp_path / "bad.toml"
    bad.write_text("[version]\nabi = 1\n", encoding="utf-8")
    assert specgen.main([str(bad), *output]) == 1
    assert capsys.readouterr().err.startswith(f"{bad}: top level: add the missing key")
    assert not (tmp_path / "spec.h").exists()


PACKAGE = """
[package]
name = "part"
doc = "Layouts of a part."

[[constant]]
name = "part_words"
value = 64
doc = "Words."
"""


def test_a_package_has_a_header_and_an_sv_package_of_its_own():
    spec = specgen.parse(PACKAGE)
    header = specgen.c_header(spec, "spec/part.toml")
    assert "#ifndef VELO_PART_SPEC_H" in header
    assert "#define VELO_PART_WORDS 64u" in header
    assert "VELO_LINE_BYTES" not in header
    assert "package part_pkg;" in specgen.sv_package(spec, "spec/part.toml")
    assert specgen.markdown(spec, "spec/part.toml").startswith("# Layouts of part\n")


@pytest.mark.parametrize(
    ("text", "window", "message"),
    [
        (PACKAGE + "[version]\nabi = 1\n", None, "version"),
        (PACKAGE.replace('"part"', '"Part"'), None, "lower-case"),
        (PACKAGE, specgen.Window(28, 20, 8), "no address map"),
    ],
)
def test_a_package_with_what_only_the_contract_has_is_refused(text: str, window, message: str):
    with pytest.raises(specgen.SpecError, match=message):
        specgen.parse(text, window)


def test_the_package_of_dimmnet_packs_in_c(tmp_path: Path):
    build_and_run(
        tmp_path,
        (ROOT / "spec" / "dimmnet.toml").read_text(encoding="utf-8"),
        """
        uint64_t word = velo_dimmnet_botf_pack(1, 2, 18);
        assert(word == (0x1u | 1u << 4 | 2u << 8 | 18u << 16));
        assert(velo_dimmnet_botf_op(word) == VELO_DIMMNET_OP_BOTF);
        """,
        header="dimmnet_spec.h",
    )


@pytest.mark.parametrize(
    ("window", "vpid", "node", "target", "source", "unit"),
    [
        ("28,20,8", (12, 8), (20, 8), 28, (28, 8), 36),  # the spec's own
        ("28,20,0", (12, 8), (20, 8), 28, None, 28),  # the paper's
        ("24,16,4", (12, 4), (16, 8), 24, (24, 4), 28),  # 256 MB, with sources
        ("20,16,3", (12, 4), (16, 4), 20, (20, 3), 28),
    ],
)
def test_a_window_of_other_widths_keeps_its_order(
    window: str,
    vpid: tuple[int, int],
    node: tuple[int, int],
    target: int,
    source: tuple[int, int] | None,
    unit: int,
):
    spec = specgen.parse(SPEC, specgen.Window.of(window))
    address = {field.name: (field.lsb, field.bits) for field in spec.base.address}
    assert (address["vpid"], address["node"]) == (vpid, node)
    text = specgen.sv_package(spec, "here")
    places = sv_places(text, "window_t")
    assert places["target"] == (0, target)
    assert places.get("source") == source
    assert places["unit"] == (unit, 2)
    assert f"WindowSourceBits = {source[1] if source else 0};" in text
    assert f"WindowUnitLsb = {unit};" in text
    if window == "28,20,8":
        assert text == specgen.sv_package(specgen.parse(SPEC), "here")


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("28,20", "as in 28,20,8"),
        ("28,20,x", "as in 28,20,8"),
        ("28,12,8", "vpid would have 0 bits"),
        ("30,20,8", "node would have 10 bits"),
        ("29,21,8", "vpid would have 9 bits"),
        ("28,20,9", "at most 8 bits"),
    ],
)
def test_a_window_that_packets_cannot_hold_is_refused(window: str, message: str):
    with pytest.raises(specgen.SpecError, match=message):
        specgen.parse(SPEC, specgen.Window.of(window))


def test_the_dissector_gets_each_field_where_it_is() -> None:
    text = (ROOT / "spec" / "capture.toml").read_text(encoding="utf-8")
    table = specgen.lua_table(specgen.parse(text), "spec/capture.toml")
    assert "local capture_spec = {\n" in table
    assert "capture_link_type = 147," in table
    assert (
        '{ name = "to_link", word = 0, lsb = 40, bits = 8, doc = "That node\'s link." },' in table
    )
    contract = specgen.parse((ROOT / "spec" / "velo.toml").read_text(encoding="utf-8"))
    table = specgen.lua_table(contract, "spec/velo.toml")
    assert '[1] = "put", [2] = "get_request"' in table
    assert '    link_start = {\n      { name = "vc", word = 0, lsb = 0, bits = 3,' in table
