# SPDX-License-Identifier: Apache-2.0
"""The shape of the package behind the `velo` command: folders, imports, and what a start costs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[1]
PACKAGE = TOOLS / "velo"
MODULES_DIRECTLY_MAX = 10
HEAVY = {"dataclasses", "jinja2", "markupsafe", "matplotlib", "numpy", "subprocess"}
FILES = sorted(PACKAGE.rglob("*.py"))

Import = ast.Import | ast.ImportFrom


def module(path: Path) -> str:
    """A file as its importers name it."""
    return ".".join(path.relative_to(TOOLS).with_suffix("").parts).removesuffix(".__init__")


def targets(node: Import) -> Iterator[str]:
    """The modules of this package that an import names."""
    known = {module(path) for path in FILES}
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        whole = [f"{node.module}.{alias.name}" for alias in node.names]
        names = [name if name in known else str(node.module) for name in whole]
    yield from (name for name in names if name in known)


def imports(path: Path) -> list[Import]:
    """Every import in a file, those inside functions too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, Import)]


def without_a_cost(source: str) -> list[int]:
    """Lines of imports inside functions with no comment above them that gives a cost as reason."""
    lines = source.splitlines()
    found = {
        node.lineno: node.end_lineno or node.lineno
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, Import)
    }
    covered = {line for begin, end in found.items() for line in range(begin, end + 1)}
    out = []
    for begin in sorted(found):
        above = begin - 1
        while above in covered or not lines[above - 1].strip():
            above -= 1
        comment = []
        while lines[above - 1].strip().startswith("#"):
            comment.append(lines[above - 1].strip())
            above -= 1
        if not comment or not comment[-1].startswith("# Cost: "):
            out.append(begin)
    return out


def test_few_modules_lie_directly_in_the_package() -> None:
    names = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(names) <= MODULES_DIRECTLY_MAX, names


@pytest.mark.parametrize("path", FILES, ids=module)
def test_an_import_inside_a_function_gives_a_cost_as_its_reason(path: Path) -> None:
    assert not without_a_cost(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("    # Cost: slow, and\n    # rare.\n    import a\n\n    from b import c\n", []),
        ("    import a\n", [2]),
        ("    # To break a circle.\n    import a\n", [3]),
        ("    # Cost: slow.\n    import a\n    g()\n    import b\n", [5]),
        ("    pass\nimport a\n", []),
    ],
)
def test_what_counts_as_a_reason(body: str, lines: list[int]) -> None:
    assert without_a_cost(f"def f():\n{body}") == lines


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph = {
        module(path): {name for node in imports(path) for name in targets(node)} for path in FILES
    }
    TopologicalSorter(graph).prepare()


def test_packages_do_not_import_each_other_in_a_circle() -> None:
    def package(name: str) -> str:
        """Each module directly in velo is a package of its own here."""
        return ".".join(name.split(".")[:2])

    graph: dict[str, set[str]] = {}
    for path in FILES:
        named = {package(name) for node in imports(path) for name in targets(node)}
        own = package(module(path))
        graph.setdefault(own, set()).update(named - {own})
    TopologicalSorter(graph).prepare()


def test_a_start_imports_nothing_heavy() -> None:
    program = "import sys, velo.cli; velo.cli.build_parser(); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=TOOLS, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "velo.cli" in loaded
    assert not HEAVY.intersection(loaded)


def test_a_start_leaves_out_the_folders_of_packages_until_a_page_needs_one() -> None:
    launcher = (TOOLS.parent / "scripts" / "cmake" / "velo.in").read_text(encoding="utf-8")
    assert 'exec "$python" -P -S -c' in launcher
    program = (
        "import sys, velo.__main__; before = 'site' in sys.modules; import jinja2, numpy; "
        "print(before, sys.modules['site'].__name__)"
    )
    said = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=TOOLS, capture_output=True, text=True, check=True
    ).stdout
    assert said.split() == ["False", "site"]


SCRIPTS = [
    path
    for path in sorted((TOOLS.parent / "scripts").iterdir())
    if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env bash")
]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_says_what_it_does(path: Path) -> None:
    called = subprocess.run([path, "--help"], capture_output=True, text=True, check=True)
    assert f"scripts/{path.name}" in called.stdout
    assert not called.stderr
