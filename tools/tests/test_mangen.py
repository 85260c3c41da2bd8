# SPDX-License-Identifier: Apache-2.0
"""The man pages: they say what the header says, and an incomplete header is refused."""

import re
import subprocess
from pathlib import Path

import pytest

from generators import headerdoc, mangen
from velo import cli

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
 * Read $VELO_DOMAIN first:
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


MORE = """\
/**
 * @file more.h
 * @brief More of it.
 *
 * Off where $VELO_COPY is 0.
 */

/** Called when it is done. */
typedef void (*more_done_fn)(struct small *it);

/** What to do. */
struct more {
    /* The caller's. */
    more_done_fn done; /**< Told. */
} __attribute__((aligned(16)));

extern VELO_API const int MORE_ANY; /**< Any of it. */
/** None of it. */
extern VELO_API const int MORE_NONE;

/** Helps. */
static inline int more_helps(void)
{
    return MORE_NONE;
}

/**
 * Make it smaller.
 *
 * A loop:
 *
 *     while (more_shrink(it) != VELO_OK)
 *         puts("\\n -- again");
 *
 * So it gets small.
 *
 * @param it  What to shrink.
 * @return As small_shrink().
 * @retval VELO_ERR_ARG  it is NULL.
 * @thread Any.
 * @path hot
 * @see small_name
 */
VELO_API int more_shrink(struct small *it);
"""


def write(tmp_path: Path, small: str, more: str = MORE) -> list[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    paths = [folder / "more.h", folder / "small.h"]
    for path, text in zip(paths, (more, small), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def read(tmp_path: Path, text: str, more: str = MORE) -> headerdoc.Header:
    """The small header, read together with the other one."""
    return headerdoc.read(write(tmp_path, text, more))[1]


def read_both(tmp_path: Path) -> list[headerdoc.Header]:
    return headerdoc.read(write(tmp_path, SMALL))


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
    page = rendered(tmp_path, mangen.function_page([header], header, header.functions[0], EDITION))
    shown = " ".join(page.split())
    for expected in (
        "NAME small_shrink - make it small LIBRARY",
        "#include <small/small.h> int small_shrink(struct small *it, int size_px); DESCRIPTION",
        "Make it small. It gets smaller. Read $VELO_DOMAIN first: • one thing; • another. PARA",
        "it What to shrink. size_px How small, up to a limit. RETURN",
        "VELO_OK Smaller. On failure, one of the negative values under ERRORS. ERRORS",
        "VELO_ERR_ARG size_px is negative. THREADS Any. COST Hot",
        "SOURCE A paper, section 3 SEE ALSO small_name(3), small(7) velo 1.2.3 2001-02-03",
    ):
        assert expected in shown


def test_a_call_without_statuses_says_what_it_returns(tmp_path: Path):
    header = read(tmp_path, SMALL)
    page = rendered(tmp_path, mangen.function_page([header], header, header.functions[1], EDITION))
    shown = " ".join(page.split())
    assert "const char *small_name(void);" in shown
    assert "RETURN VALUE The name. THREADS" in shown
    assert "ERRORS" not in shown and "PARAMETERS" not in shown


def test_a_call_that_returns_as_another_shows_the_statuses_of_both(tmp_path: Path):
    headers = read_both(tmp_path)
    function = headers[0].functions[0]
    page = rendered(tmp_path, mangen.function_page(headers, headers[0], function, EDITION))
    shown = " ".join(page.split())
    for expected in (
        "RETURN VALUE As small_shrink(). VELO_OK Smaller. On failure",
        "ERRORS VELO_ERR_ARG it is NULL. THREADS",
        "SEE ALSO small_name(3), small_shrink(3), small-more(7)",
    ):
        assert expected in shown
    assert "size_px is negative" not in shown


def test_code_in_a_comment_keeps_its_lines(tmp_path: Path):
    headers = read_both(tmp_path)
    function = headers[0].functions[0]
    page = rendered(tmp_path, mangen.function_page(headers, headers[0], function, EDITION))
    assert (
        """
       A loop:

           while (more_shrink(it) != VELO_OK)
               puts("\\n -- again");

       So it gets small.
"""
        in page
    )


def test_the_overview_of_each_header_names_the_others(tmp_path: Path):
    headers = read_both(tmp_path)
    more, small = (
        " ".join(rendered(tmp_path, mangen.overview_page(headers, header, EDITION)).split())
        for header in headers
    )
    for expected in (
        "NAME small-more - more of it SYNOPSIS #include <small/more.h>",
        "more_done_fn Called when it is done.",
        "struct more What to do. more_done_fn done Told.",
        "const int MORE_NONE None of it.",
        "const int MORE_ANY Any of it.",
        "VELO_COPY How long payloads are copied",
        "See DESCRIPTION. SEE ALSO velo(1)",
        "SEE ALSO velo(1), small(7) velo 1.2.3",
    ):
        assert expected in more
    assert "SEE ALSO velo(1), small-more(7) velo 1.2.3" in small


def test_the_overview_has_types_constants_and_variables(tmp_path: Path):
    header = read(tmp_path, SMALL)
    shown = " ".join(rendered(tmp_path, mangen.overview_page([header], header, EDITION)).split())
    for expected in (
        "NAME small - a small API",
        "VELO_ERR_ARG = -3 Bad argument.",
        "int width_px Width. int height_px Height.",
        "SMALL_MAX = 4 Most of them.",
        "VELO_DOMAIN Domain of ports",
        "u<uid>. See small_shrink(3).",
    ):
        assert expected in shown


def test_the_overview_ends_with_the_example(tmp_path: Path):
    (tmp_path / "small.c").write_text(
        "/* SPDX-License-Identifier: x */\nint main(void)\n{\n    return small_shrink(0, 1);\n"
        + "    // " + "long " * 30 + "\n\n    puts(\"\\n\");\n}\n"
    )  # fmt: skip
    header = read(tmp_path, SMALL.replace("API.\n", "API.\n * @example small.c\n", 1))
    page = mangen.overview_page([header], header, EDITION, tmp_path)
    shown = rendered(tmp_path, page)
    assert "SPDX" not in shown
    assert "int main(void)\n" in shown
    assert 'puts("\\n");' in shown
    assert page.count("long " * 20) == 1  # A line of a program is not filled.
    call = mangen.function_page([header], header, header.functions[0], EDITION, tmp_path)
    assert "has a whole program that calls it" in rendered(tmp_path, call)
    assert "EXAMPLES" not in mangen.overview_page([header], header, EDITION)


def line_of(text: str, source: str = SMALL) -> int:
    return source[: source.index(text)].count("\n") + 1


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


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (
            "As small_shrink().\n * @retval VELO_ERR_ARG  it is NULL.",
            "A number.",
            "/**\n * Make",
            "name every status",
        ),
        ("As small_shrink", "As small_grow", "* @return", "small_grow.*: there is no such call"),
        ("As small_shrink", "As small_name", "* @return", "small_name.*: name a call that has all"),
        ("As small_shrink", "As more_shrink", "* @return", "more_shrink.*: name a call that has"),
        ("VELO_ERR_ARG ", "VELO_ERR_ODD ", "* @retval", "VELO_ERR_ODD is not in enum"),
        ("@see small_name", "@see small_nam", "* @see", "small_nam: there is no such call"),
        ("done; /**< Told. */", "done;", "    more_done_fn", "document done"),
        ("static inline int more", "int more", "/** Helps", "cannot read what this comment is of"),
    ],
)
def test_what_one_header_says_is_checked_against_the_others(tmp_path, old, new, line, message):
    assert MORE.count(old) == 1, old
    place = rf"more\.h:{line_of(line, MORE)}: "
    with pytest.raises(headerdoc.DocError, match=rf"{place}.*{message}"):
        read(tmp_path, SMALL, MORE.replace(old, new))


def test_the_program_reports_the_place_of_a_mistake(tmp_path: Path, capsys):
    path = tmp_path / "small.h"
    path.write_text(SMALL.replace("@path hot", "@path warm"), encoding="utf-8")
    arguments = ["--version", "1", "--date", "2001-02-03", "-o", str(tmp_path / "man")]
    assert mangen.main(["--header", str(path), *arguments]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:{line_of('/**' + chr(10) + ' * Make')}: ")
    assert not (tmp_path / "man").exists()


def test_the_public_headers_give_a_page_for_every_call(tmp_path: Path):
    arguments = ["--version", "1", "--date", "2001-02-03", "-o", str(tmp_path)]
    headers = sorted((ROOT / "include" / "velo").glob("*.h"))
    headers += [ROOT / "adapters" / "extoll" / name for name in ("velo2.h", "rma2.h")]
    assert mangen.main([*(f"--header={header}" for header in headers), *arguments]) == 0
    pages = {path.stem for path in (tmp_path / "man3").iterdir()}
    calls: set[str] = set()
    for header in headers:
        found = re.findall(r"^\w+_API[^;(]*?(\w+)\(", header.read_text(), re.MULTILINE)
        assert len(found) > 8, header
        calls |= set(found)
    assert pages == calls
    overviews = {path.stem: path.read_text() for path in (tmp_path / "man7").iterdir()}
    assert set(overviews) == {
        "velo",
        "velo-bcast",
        "velo-dimmnet",
        "velo-rma",
        "velo-mq",
        "velo2",
        "rma2",
    }
    # Every page that a page refers to is there.
    texts = [path.read_text() for path in tmp_path.glob("man[37]/*")]
    named = {name for text in texts for name in re.findall(r"\\fB([\w\\-]+)\\fP\([37]\)", text)}
    assert {name.replace("\\-", "-") for name in named} <= calls | set(overviews)


def test_the_command_page_has_every_command_and_option(tmp_path: Path):
    shown = rendered(tmp_path, mangen.command_page(cli.build_parser(), EDITION))
    for command in ("perf latency", "info", "top", "report", "bench"):
        assert re.search(rf"^   velo {command}", shown, re.MULTILINE)
    assert "--sizes LIST" in shown and "%" not in shown.replace("%)", "")
