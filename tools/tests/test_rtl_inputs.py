# SPDX-License-Identifier: Apache-2.0
"""What a check of the hardware depends on (scripts/rtl_inputs.py), in a small tree of blocks."""

import io
from pathlib import Path

import kept
import pytest
import rtl_inputs

FILES = {
    "pyproject.toml": "",
    "rtl/conftest.py": "",
    "scripts/rtl": "",
    "spec/a.toml": "",
    "rtl/fifo/files.f": "rtl/fifo/rtl/fifo.sv\n",
    "rtl/fifo/rtl/fifo.sv": "module fifo;\n",
    "rtl/fifo/README.md": "A FIFO.\n",
    "rtl/fifo/mutants.toml": "",
    "rtl/fifo/test/test_fifo.py": "",
    "rtl/fifo/formal/fifo.sby": "[tasks]\nprove\n[files]\nrtl/fifo/rtl/fifo.sv\n[engines]\nabc\n",
    "rtl/link/files.f": "# tests: rtl/fifo/test bench\n-f rtl/fifo/files.f // a\n",
    "rtl/link/rtl/link.sv": "module link;\n",
    "rtl/link/test/test_link.py": "",
    "rtl/atu/files.f": "rtl/atu/rtl/atu.sv # not rtl/link/\n",
    "rtl/atu/rtl/atu.sv": "module atu;\n",
    "rtl/atu/test/test_atu.py": "",
    "bench/run.cc": "",
}
TESTS = {name: f"rtl/{name}/test/test_{name}.py" for name in ("fifo", "link", "atu")}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FRESH", raising=False)  # The night sets it.
    monkeypatch.setattr(kept, "ROOT", tmp_path)
    monkeypatch.setattr(rtl_inputs, "ROOT", tmp_path)
    monkeypatch.setattr(rtl_inputs, "SHARED", ("pyproject.toml", "rtl/conftest.py", "spec"))
    monkeypatch.setattr(rtl_inputs, "PROVERS", ("scripts/rtl",))
    monkeypatch.setattr(rtl_inputs, "LINTERS", ("scripts/rtl",))
    monkeypatch.setattr(rtl_inputs, "words", lambda: ["tool 1"])
    monkeypatch.setattr(kept, "folder", lambda: tmp_path / "kept")
    monkeypatch.setattr(kept, "RECORDS", tmp_path / "records.jsonl")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def keys(kind: str = "test") -> dict[str, str]:
    what = TESTS if kind == "test" else {name: f"rtl/{name}" for name in TESTS}
    return {name: rtl_inputs.key(kind, path) for name, path in what.items()}


def changed(tree: Path, name: str, kind: str = "test") -> set[str]:
    """The blocks whose tests run again when a byte is added to a file."""
    before = keys(kind)
    path = tree / name
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    return {block for block, key in keys(kind).items() if key != before[block]}


@pytest.mark.parametrize(
    ("file", "blocks"),
    [
        ("rtl/fifo/rtl/fifo.sv", {"fifo", "link"}),
        ("rtl/fifo/test/test_fifo.py", {"fifo", "link"}),
        ("rtl/link/rtl/link.sv", {"link"}),
        ("rtl/link/files.f", {"link"}),
        ("bench/run.cc", {"link"}),
        ("rtl/conftest.py", {"fifo", "link", "atu"}),
        ("spec/a.toml", {"fifo", "link", "atu"}),
        ("rtl/fifo/formal/fifo.sby", set()),
        ("rtl/fifo/README.md", set()),
        ("rtl/fifo/mutants.toml", set()),
        ("scripts/rtl", set()),
    ],
)
def test_tests_run_again_for_what_their_block_is_made_of(tree, file, blocks) -> None:
    assert changed(tree, file) == blocks


def test_lint_runs_again_for_all_that_is_in_the_blocks_folder(tree) -> None:
    assert changed(tree, "rtl/fifo/formal/fifo.sby", "lint") == {"fifo"}
    assert changed(tree, "rtl/fifo/rtl/fifo.sv", "lint") == {"fifo", "link"}
    assert changed(tree, "rtl/fifo/mutants.toml", "lint") == set()


def test_a_proof_runs_again_for_the_files_that_it_lists(tree) -> None:
    proof = "rtl/fifo/formal/fifo.sby"
    key = rtl_inputs.key("proof", proof, "prove")
    assert rtl_inputs.key("proof", proof, "cover") != key
    changed(tree, "rtl/link/rtl/link.sv")
    assert rtl_inputs.key("proof", proof, "prove") == key
    changed(tree, "rtl/fifo/rtl/fifo.sv")
    assert rtl_inputs.key("proof", proof, "prove") != key


def test_another_tool_is_another_key(tree, monkeypatch) -> None:
    before = keys()
    monkeypatch.setattr(rtl_inputs, "words", lambda: ["tool 2"])
    assert all(keys()[name] != before[name] for name in before)


def test_a_copy_has_what_the_block_sees_and_nothing_else(tree) -> None:
    target = tree / "copy"
    rtl_inputs.copy_tree(rtl_inputs.files_of("link"), target)
    found = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert "rtl/fifo/rtl/fifo.sv" in found
    assert "rtl/fifo/test/test_fifo.py" in found  # "# tests:" names it.
    assert not [name for name in found if name.startswith(("rtl/atu", "rtl/fifo/formal"))]


def test_only_tasks_that_have_not_passed_are_wanted(tree) -> None:
    proof = "rtl/fifo/formal/fifo.sby"
    first, second = rtl_inputs.wanted("proofs", "fifo", "proof", proof, ["prove", "cover"])
    assert second.split()[1] == "cover"
    kept.keep(first.split()[0], "fifo prove", 1)
    assert rtl_inputs.wanted("proofs", "fifo", "proof", proof, ["prove", "cover"]) == [second]


def test_a_name_in_a_list_that_there_is_not_is_an_error(tree) -> None:
    (tree / "rtl/link/files.f").write_text("# tests: rtl/nowhere\n", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="rtl/nowhere"):
        rtl_inputs.key("test", TESTS["link"])


@pytest.mark.parametrize(
    ("kind", "name", "group", "file"),
    [
        ("lint", "rtl/fifo", "lint", "rtl/fifo/rtl/fifo.sv"),
        ("test", TESTS["fifo"], "simulations", "rtl/fifo/rtl/fifo.sv"),
        ("proof", "rtl/fifo/formal/fifo.sby", "proofs", "rtl/fifo/rtl/fifo.sv"),
    ],
)
def test_what_changed_while_it_ran_is_kept_under_neither_content(
    tree, monkeypatch, kind, name, group, file
) -> None:
    check = [group, "fifo: check", kind, name]

    def run(while_it_runs) -> bool:
        """Run the check; would it run again?"""
        lines = rtl_inputs.wanted(*check, [])
        while_it_runs()
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
        rtl_inputs.main(["done", *check, "passed", "3"])
        return bool(rtl_inputs.wanted(*check, []))

    before = (tree / file).read_text(encoding="utf-8")
    assert run(lambda: (tree / file).write_text(before + "// more", encoding="utf-8"))
    (tree / file).write_text(before, encoding="utf-8")
    assert rtl_inputs.wanted(*check, [])
    assert run(lambda: (tree / file).unlink())
    (tree / file).write_text(before, encoding="utf-8")
    assert not run(lambda: None)


def test_a_task_that_failed_is_not_kept(tree) -> None:
    check = ("proofs", "fifo: fifo", "proof", "rtl/fifo/formal/fifo.sby")
    lines = rtl_inputs.wanted(*check, ["prove", "cover"])
    rtl_inputs.done(*check, "failed", 3, lines[:1])
    rtl_inputs.done(*check, "passed", 3, lines[1:])
    assert rtl_inputs.wanted(*check, ["prove", "cover"]) == lines[:1]


def test_the_longest_proofs_come_first_and_new_ones_before_them(tree) -> None:
    proofs = {}
    for block, name, text in (
        ("fifo", "fifo", "prove: depth 8\n"),
        ("link", "short", "depth 4\n"),
        ("link", "long", "prove: depth 4\n"),
        ("atu", "new", "prove: depth 8\n"),
        ("atu", "deep", "bmc: depth 30\nprove: depth 4\n"),
    ):
        proofs[name] = f"rtl/{block}/formal/{name}.sby"
        (tree / proofs[name]).parent.mkdir(exist_ok=True)
        (tree / proofs[name]).write_text(f"[options]\n{text}", encoding="utf-8")
    kept.record("proofs", "link: long prove", "run", 50)
    kept.record("proofs", "link: long cover", "run", 2)
    kept.record("proofs", "link: short prove", "run", 90)
    kept.record("proofs", "link: short prove", "run", 3)
    kept.record("proofs", "link: short prove", "kept", 0)
    kept.record("proofs", "fifo: fifo prove", "failed", 20)
    kept.record("another group", "atu: new prove", "run", 1)
    found = rtl_inputs.order(sorted(proofs.values()))
    assert found == [proofs[name] for name in ("deep", "new", "long", "fifo", "short")]
