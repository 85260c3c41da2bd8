# SPDX-License-Identifier: Apache-2.0
"""The man pages: they say what the header says, and an incomplete header is refused."""

import re
import subprocess
from pathlib import Path

import pytest

from velo import cli, headerdoc, mangen

ROOT = Path(__file__).resolve().parents[2]
EDITION = mangen.Edition("1.2.3", "2001-02-03")

SMALL = """\
/**
 * @file small.h
 * @brief A small API.
 *
 * What it is.
 */

/** Outcomes. */
enum velo_status {
    VELO_OK = 0,       /**< Done. */
    VELO_ERR_ARG = -3, /**< Bad argument. */
};

/** Opaque. */
struct small;

/** A size. */
struct size {
    int width_px; /**< Width. */
    /** Height. */
    int height_px;
};

#define SMALL_MAX 4 /**< Most of them. */

/**
 * Make it small. It gets smaller.
 *
 * Read $VELO_SMALL first:
 *  - one thing;
 *  - `another`.
 *
 * @param it       What to shrink.
 * @param size_px  How small, up to
 *                 a limit.
 * @retval VELO_OK       Smaller.
 * @retval VELO_ERR_ARG  size_px is negative.
 * @thread Any.
 * @path hot
 * @source A paper, section 3
 * @see small_name
 */
VELO_API int small_shrink(struct small *it,
                          int size_px);

/**
 * Its name.
 *
 * @return The name.
 * @thread Any.
 * @path cold
 */
VELO_API const char *small_name(void);
"""


def read(tmp_path: Path, text: str) -> headerdoc.Header:
    path = tmp_path / "small.h"
    path.write_text(text, encoding="utf-8")
    return headerdoc.read(path, "small.h")


def rendered(tmp_path: Path, page: str) -> str:
    """The page as a reader sees it; mandoc must have nothing to object to."""
    path = tmp_path / "page.man"
    path.write_text(page, encoding="utf-8")
    subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], check=True)
    shown = subprocess.run(
        ["mandoc", "-T", "utf8", path], check=True, capture_output=True, text=True
    )
    return re.sub(".\b", "", shown.stdout)


def test_a_page_says_what_the_comment_says(tmp_path: Path):
    header = read(tmp_path, SMALL)
    page = rendered(tmp_path, mangen.function_page(header, header.functions[0], EDITION))
    shown = " ".join(page.split())
    for expected in (
        "NAME small_shrink - make it small LIBRARY",
        "#include <small.h> int small_shrink(struct small *it, int size_px); DESCRIPTION",
        "Make it small. It gets smaller. Read $VELO_SMALL first: • one thing; • another. PARA",
        "it What to shrink. size_px How small, up to a limit. RETURN",
        "VELO_OK Smaller. On failure, one of the negative values under ERRORS. ERRORS",
        "VELO_ERR_ARG size_px is negative. THREADS Any. COST Hot",
        "SOURCE A paper, section 3 SEE ALSO small_name(3), velo(7) velo 1.2.3 2001-02-03",
    ):
        assert expected in shown


def test_a_call_without_statuses_says_what_it_returns(tmp_path: Path):
    header = read(tmp_path, SMALL)
    page = rendered(tmp_path, mangen.function_page(header, header.functions[1], EDITION))
    shown = " ".join(page.split())
    assert "const char *small_name(void);" in shown
    assert "RETURN VALUE The name. THREADS" in shown
    assert "ERRORS" not in shown and "PARAMETERS" not in shown


def test_the_overview_has_types_constants_and_variables(tmp_path: Path):
    shown = " ".join(
        rendered(tmp_path, mangen.overview_page(read(tmp_path, SMALL), EDITION)).split()
    )
    for expected in (
        "NAME velo - a small API",
        "VELO_ERR_ARG = -3 Bad argument.",
        "int width_px Width. int height_px Height.",
        "SMALL_MAX = 4 Most of them.",
        "VELO_SMALL See small_shrink(3).",
    ):
        assert expected in shown


def line_of(text: str) -> int:
    return SMALL[: SMALL.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (" * @param it       What to shrink.\n", "", "/**\n * Make", "document .* '@param it"),
        ("@param it ", "@param that ", "/**\n * Make", "document .* '@param it"),
        ("@param it       What to shrink.", "@param it", "* @param it", "@param it says nothing"),
        (
            " * @retval VELO_OK ",
            " * @param other  None.\n * @retval VELO_OK ",
            "* @retval VELO_OK",
            "there is no parameter 'other'",
        ),
        ("@retval VELO_OK ", "@retval VELO_FINE ", "* @retval VELO_OK", "VELO_FINE is not in enum"),
        (
            " * @thread Any.\n * @path hot\n",
            " * @path hot\n",
            "/**\n * Make",
            "which threads may call it",
        ),
        (" * @path hot\n", "", "/**\n * Make", "add '@path hot' or '@path cold'"),
        ("@path hot", "@path warm", "/**\n * Make", "add '@path hot' or '@path cold'"),
        ("@path hot", "@speed hot", "* @path hot", "unknown tag @speed"),
        ("@see small_name", "@see small_nam", "* @see", "small_nam: there is no such call"),
        (" * @return The name.\n", "", "/**\n * Its name.", "say what it returns"),
        (", /**< Bad argument. */", ",", "    VELO_ERR_ARG", "document VELO_ERR_ARG"),
        ("    /** Height. */\n", "", "    /** Height", "document height_px"),
        (
            "/**\n * Its name.\n *\n * @return The name.\n * @thread Any.\n * @path cold\n */\n",
            "\n",
            None,
            "small_name has no comment before it",
        ),
        (" * @brief A small API.\n", "", "/**", "the file comment has no @brief"),
    ],
)
def test_an_incomplete_header_is_refused(tmp_path: Path, old, new, line, message):
    assert SMALL.count(old) == 1, old
    text = SMALL.replace(old, new)
    number = line_of(line) if line else text[: text.index("VELO_API const")].count("\n") + 1
    with pytest.raises(headerdoc.DocError, match=rf"small\.h:{number}: .*{message}"):
        read(tmp_path, text)


def test_the_program_reports_the_place_of_a_mistake(tmp_path: Path, capsys):
    path = tmp_path / "small.h"
    path.write_text(SMALL.replace("@path hot", "@path warm"), encoding="utf-8")
    arguments = ["--version", "1", "--date", "2001-02-03", "-o", str(tmp_path / "man")]
    assert mangen.main(["--header", str(path), *arguments]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:{line_of('/**' + chr(10) + ' * Make')}: ")
    assert not (tmp_path / "man").exists()


def test_the_public_header_gives_a_page_for_every_call(tmp_path: Path):
    header = ROOT / "include" / "velo" / "velo.h"
    arguments = ["--version", "1", "--date", "2001-02-03", "-o", str(tmp_path)]
    assert mangen.main(["--header", str(header), *arguments]) == 0
    calls = set(re.findall(r"^VELO_API[^;(]*?(\w+)\(", header.read_text(), re.MULTILINE))
    assert len(calls) > 10
    assert {path.stem for path in (tmp_path / "man3").iterdir()} == calls


def test_the_command_page_has_every_command_and_option(tmp_path: Path):
    shown = rendered(tmp_path, mangen.command_page(cli.build_parser(), EDITION))
    for command in ("perf latency", "info", "top", "report", "bench"):
        assert re.search(rf"^   velo {command}", shown, re.MULTILINE)
    assert "--sizes LIST" in shown and "%" not in shown.replace("%)", "")
