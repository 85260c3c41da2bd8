# SPDX-License-Identifier: Apache-2.0
"""The lists of deliberate breaks (rtl/BLOCK/mutants.toml) as scripts/rtl_mutate.py reads them."""

from pathlib import Path

import kept
import pytest
import rtl_inputs
import rtl_mutate

SOURCE = "module fifo;\n  assign full = a && b;\n  assign empty = !a;\nendmodule\n"
PROOF = "[tasks]\nprove\n[files]\nrtl/fifo/rtl/fifo.sv\n"
BREAK = """
[[break]]
name = "{name}"
why = "Full too early."
file = "rtl/fifo/rtl/fifo.sv"
before = '''
  assign full = a && b;
'''
after = '''  assign full = a;'''
proof = "rtl/fifo/formal/fifo.sby:prove"
by = ["NotFull", "Count"]
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (kept, rtl_inputs, rtl_mutate):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(rtl_inputs, "words", lambda: ["tool 1"])
    monkeypatch.setattr(kept, "folder", lambda: tmp_path / "kept")
    for name, text in (("rtl/fifo.sv", SOURCE), ("formal/fifo.sby", PROOF)):
        (tmp_path / "rtl/fifo" / name).parent.mkdir(parents=True)
        (tmp_path / "rtl/fifo" / name).write_text(text, encoding="utf-8")
    return tmp_path


def read(tree: Path, text: str) -> tuple[list[rtl_mutate.Mutant], list[str]]:
    (tree / "rtl/fifo/mutants.toml").write_text(text, encoding="utf-8")
    return rtl_mutate.read_list()


def test_a_block_has_its_breaks_in_one_file(tree: Path) -> None:
    mutants, errors = read(tree, BREAK.format(name="full") + BREAK.format(name="full-again"))
    assert not errors
    assert [mutant.title for mutant in mutants] == ["fifo/full", "fifo/full-again"]
    assert mutants[0].by == ("NotFull", "Count")
    assert rtl_mutate.broken(mutants[0]) == SOURCE.replace("a && b", "a")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("assign full = a && b;", "assign full = a || b;", "stands 0 times"),
        ("  assign full = a && b;", "assign", "stands 2 times"),
        ("assign full = a;", "assign full = a && b;", "changes nothing"),
        ("rtl/fifo.sv", "rtl/gone.sv", "there is no rtl/fifo/rtl/gone.sv"),
        (":prove", ":cover", "there is no proof"),
        ('why = "Full too early."', 'why = " "', "says nothing"),
        ('why = "Full too early."', "why = 1", "why: not of the right type"),
        ("by =", "from =", "fifo/full: unknown fields, missing ones"),
        ('name = "full"', "", "fifo/a break without a name"),
        ("[[break]]", "[break]", "tables [[break]]"),
        ("by = [", "by = ", "rtl/fifo/mutants.toml: "),
    ],
)
def test_a_break_that_does_not_fit_is_an_error(tree: Path, old: str, new: str, said: str) -> None:
    text = BREAK.format(name="full")
    assert old in text
    mutants, errors = read(tree, text.replace(old, new))
    assert not mutants
    assert len(errors) == 1
    assert said in errors[0]


def test_one_wrong_break_does_not_hide_the_others(tree: Path) -> None:
    wrong = BREAK.format(name="b").replace("a && b", "a || b")
    mutants, errors = read(tree, BREAK.format(name="a") + wrong + BREAK.format(name="c"))
    assert [mutant.name for mutant in mutants] == ["a", "c"]
    assert [error.split(":")[0] for error in errors] == ["fifo/b"]


@pytest.mark.parametrize(
    ("names", "said"), [("ba", "a stands behind b"), ("aa", "a is there twice")]
)
def test_names_are_unique_and_in_order(tree: Path, names: str, said: str) -> None:
    mutants, errors = read(tree, "".join(BREAK.format(name=name) for name in names))
    assert not mutants
    assert said in errors[0]


def test_a_breaks_key_does_not_depend_on_the_others_of_its_file(tree: Path) -> None:
    def keys(text: str) -> dict[str, tuple[str, str]]:
        mutants, errors = read(tree, text)
        assert not errors
        return {m.name: (rtl_mutate.break_key(m), rtl_mutate.whole_key(m)) for m in mutants}

    alone = keys(BREAK.format(name="b"))
    among = keys(BREAK.format(name="a") + BREAK.format(name="b") + BREAK.format(name="c"))
    assert among["b"] == alone["b"]
    changed = keys(BREAK.format(name="b").replace("full = a;", "full = b;"))
    assert changed["b"][0] != alone["b"][0]


@pytest.mark.parametrize("edited", [True, False])
def test_a_break_whose_source_is_edited_meanwhile_is_not_kept(
    tree: Path, monkeypatch: pytest.MonkeyPatch, edited: bool
) -> None:
    mutant = read(tree, BREAK.format(name="full"))[0][0]

    def run(_: object, mutant: rtl_mutate.Mutant, with_break: bool) -> rtl_mutate.Outcome:
        if edited:
            source = tree / mutant.file
            source.write_text(source.read_text(encoding="utf-8") + "//\n", encoding="utf-8")
        return (
            rtl_mutate.Outcome("failed", "Count")
            if with_break
            else rtl_mutate.Outcome("passed", "")
        )

    monkeypatch.setattr(rtl_mutate.Runner, "run", run)
    assert rtl_mutate.try_mutant(rtl_mutate.Runner(1), mutant).word == "caught"
    assert bool(list((tree / "kept").glob("*"))) is not edited
