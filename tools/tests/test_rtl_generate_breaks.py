# SPDX-License-Identifier: Apache-2.0
"""Breaks that scripts/rtl_generate_breaks.py finds in a source, and how their ends are counted."""

from collections import Counter
from pathlib import Path

import pytest
import rtl_generate_breaks as breaks
from rtl_mutate import NOT_ELABORATED, Mutant, Outcome

SOURCE = """`define KEEP(x) assign kept = x && y;
module fifo #(parameter int Depth = 4) (input logic [3:0] a);
  localparam int Last = Depth - 1;
  assign full = a < 4'd9 && !b;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_q <= '0;
    else if (push_i) count_q <= count_q + 1'b1;
  end
  `KEEP(a)
endmodule
"""
EXPECTED = """
operator assign full = (a < 4'd9) || (!b);
operand assign full = a < 4'd9;
operand assign full = !b;
operator assign full = (a) <= (4'd9) && !b;
swapped assign full = (4'd9) < (a) && !b;
number assign full = a < 4'd10 && !b;
number assign full = a < 4'd8 && !b;
operand assign full = a < 4'd9 && b;
reset if (!rst_ni) ;
number if (!rst_ni) count_q <= '1;
condition else if (!(push_i)) count_q <= count_q + 1'b1;
condition else if (1'b1) count_q <= count_q + 1'b1;
condition else if (1'b0) count_q <= count_q + 1'b1;
assignment else if (push_i) ;
operator else if (push_i) count_q <= (count_q) - (1'b1);
number else if (push_i) count_q <= count_q + 1'd0;
"""
FILE = "rtl/fifo/rtl/fifo.sv"
WHOLE = [line for line in EXPECTED.splitlines() if line]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(breaks, "ROOT", tmp_path)
    (tmp_path / "rtl/common/rtl").mkdir(parents=True)
    (tmp_path / FILE).parent.mkdir(parents=True)
    (tmp_path / FILE).write_text(SOURCE, encoding="utf-8")
    return tmp_path


def told(one: breaks.Break) -> str:
    return f"{one.operator} {one.lines()[1]}"


def test_behaviour_is_broken_and_properties_parameters_and_widths_are_not(tree: Path) -> None:
    assert Counter(map(told, breaks.Finder(FILE).breaks())) == Counter(WHOLE)


def test_a_break_changes_its_place_alone(tree: Path) -> None:
    for one in breaks.Finder(FILE).breaks():
        before, after = SOURCE.encode(), one.source()
        assert after[: one.start] == before[: one.start]
        assert after[one.start + len(one.text) :] == before[one.end :]
        assert SOURCE.splitlines()[one.line - 1].strip() == one.lines()[0]


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("4'hf", ["4'd0", "4'd14"]),
        ("2'b00", ["2'd1", "2'd3"]),
        ("0", ["1"]),
        ("7", ["8", "6"]),
        ("4'bxx", []),
    ],
)
def test_a_number_keeps_its_bits(literal: str, expected: list[str]) -> None:
    assert breaks.neighbours(literal) == expected


class FakeRunner:
    """Says of each check what a table says; notes the checks that it ran."""

    def __init__(self, outcomes: dict[str, Outcome]):
        self.outcomes, self.ran = outcomes, []

    def run(self, mutant: Mutant, source: bytes | None) -> Outcome:
        self.ran.append(mutant.killer)
        return self.outcomes[mutant.killer]


@pytest.mark.parametrize(
    ("outcomes", "word", "runs"),
    [
        ([Outcome("error", "failed assertion Full"), Outcome("passed", "")], "caught", 1),
        ([Outcome("passed", ""), Outcome("error", "** fills FAIL")], "caught", 2),
        ([Outcome("passed", ""), Outcome("passed", "")], "survived", 2),
        ([Outcome("timeout", ""), Outcome("passed", "")], "undecided", 2),
        ([Outcome("error", NOT_ELABORATED), Outcome("passed", "")], "stillborn", 1),
    ],
)
def test_a_break_ends_with_the_first_check_that_fails(
    tree: Path, outcomes: list[Outcome], word: str, runs: int
) -> None:
    checks = [("proof", "rtl/fifo/formal/a.sby:prove"), ("test", "rtl/fifo/test/test_a.py")]
    runner = FakeRunner({name: end for (_, name), end in zip(checks, outcomes, strict=True)})
    trial = breaks.Trial(runner, proofs_only=False)  # type: ignore[arg-type]
    trial.order[FILE] = checks
    row = trial.run(breaks.Finder(FILE).breaks()[0])
    assert (row["outcome"], len(runner.ran)) == (word, runs)


def test_what_was_judged_is_not_run_and_counts_for_nobody(tree: Path) -> None:
    line = "assign full = a < 4'd9 && !b;"
    listing = tree / "rtl/fifo/equivalent.toml"
    table = "[[equivalent]]\nfile = '{}'\nbefore = '''{}'''\nafter = '''{}'''\nwhy = 'Same.'\n"
    listing.write_text(table.format(FILE, line, line.replace("!b", "b")))
    trial = breaks.Trial(FakeRunner({}), proofs_only=False)  # type: ignore[arg-type]
    trial.order[FILE] = []
    rows = [trial.run(one) for one in breaks.Finder(FILE).breaks()]
    counts = breaks.score(rows)
    assert (counts["equivalent"], counts["survived"]) == (1, len(WHOLE) - 1)
    assert counts["score"] == 0
    listing.write_text(table.format(FILE, "assign", "x"))
    with pytest.raises(SystemExit, match="stands 2 times"):
        breaks.judged("fifo")
