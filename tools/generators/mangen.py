# SPDX-License-Identifier: Apache-2.0
"""Write the man pages: sections 3 and 7 from the public headers, 1 from the velo command.

The pages use the classic man(7) macros, which man and mandoc both render.
"""

import argparse
import importlib
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from generators import headerdoc
from velo.runtime.environment import GROUPS, VARIABLES, Variable

LIBRARY = "velo Library Manual"
# Outcomes that a caller meets in normal operation; the rest of the statuses are errors.
OUTCOMES = (
    "VELO_OK", "VELO_AGAIN", "VELO_TIMEOUT",
    "VELO2_RET_SUCCESS", "VELO2_RET_NO_MSG", "RMA2_SUCCESS", "RMA2_NO_NOTI",
)  # fmt: skip
COST = {
    "hot": "Hot: made for the inner loop of a program. It allocates nothing, takes no lock, and "
    "makes no system call, unless it has to wait or to wake a peer that sleeps.",
    "cold": "Cold: it may allocate memory, call the system and take its time. Keep it out of "
    "loops that matter.",
}


@dataclass(frozen=True)
class Edition:
    """What every page carries in its margins."""

    version: str
    date: str

    def title(self, name: str, section: int, manual: str) -> str:
        return f'.TH {name.upper()} {section} "{self.date}" "velo {self.version}" "{manual}"'


# --- roff -------------------------------------------------------------------------------------


def escape(text: str) -> str:
    """Text that roff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def prose(text: str, italics: frozenset[str] = frozenset()) -> str:
    """A comment's text as roff: `code`, **terms**, calls and constants bold, names italic."""
    token = re.compile(
        r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*|@p (?P<name>\w+)"
        r"|(?P<call>\b\w+)\(\)"
        r"|(?P<constant>\$?\b(?:(?:VELO|VELO2|RMA2)_\w+|NULL|enum \w+)\b)|(?P<word>\b\w+\b)"
    )

    def replace(match: re.Match[str]) -> str:
        if match["call"]:
            section = "(3)" if match["call"].startswith(("velo_", "velo2_", "rma2_")) else "()"
            return f"\\fB{match['call']}\\fP{section}"
        bold = match["code"] or match["strong"] or match["constant"]
        if bold:
            return f"\\fB{bold}\\fP"
        name = match["name"] or match["word"]
        return f"\\fI{name}\\fP" if match["name"] or name in italics else name

    return token.sub(replace, escape(text))


def paragraphs(text: str, italics: frozenset[str] = frozenset()) -> list[str]:
    """Paragraphs, ' - ' lists and code, which is indented by four, as roff lines."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith("    "):
            code = [escape(row) for row in textwrap.dedent(block).splitlines()]
            lines += [".PP", ".RS 4", ".nf", ".ft CW", *code, ".ft R", ".fi", ".RE"]
            continue
        head, *items = re.split(r"^ *- ", block, flags=re.MULTILINE)
        if head.strip():
            lines += [".PP", prose(" ".join(head.split()), italics)]
        for item in items:
            lines += ['.IP "\\(bu" 2', prose(" ".join(item.split()), italics)]
    return lines


def _section(name: str, body: list[str], macro: str = "SH") -> list[str]:
    if body and body[0] == ".PP":
        body = body[1:]  # The heading starts a paragraph itself.
    return [f".{macro} {name}", *body] if body else []


def _entry(term: str, text: str) -> list[str]:
    return [".TP", term, text]


def _bold(text: str) -> str:
    return f"\\fB{escape(text)}\\fP"


def _page_name(name: str, section: int) -> str:
    return f"{_bold(name)}({section})"


def _page(lines: list[str]) -> str:
    """A page's text, with prose filled to lines that a terminal shows; requests stay whole."""
    filled: list[str] = []
    is_code = False
    for line in lines:
        is_code = line == ".nf" or (is_code and line != ".fi")
        if is_code or line.startswith((".", "\\fB")) or len(line) < 80:
            filled.append(line)
            continue
        rows = textwrap.wrap(line, 79, break_long_words=False, break_on_hyphens=False)
        filled += rows[:1] + [re.sub(r"^([.'])", r"\\&\1", row) for row in rows[1:]]
    return "\n".join(filled) + "\n"


# --- section 3 --------------------------------------------------------------------------------


def _include(header: headerdoc.Header) -> list[str]:
    return [".nf", f"\\fB#include <{header.include}>\\fP", ".fi"]


def _library(header: headerdoc.Header) -> str:
    return f"{header.library} (\\fIlib{header.library}\\fP, \\fB\\-l{header.library}\\fP)"


def _prototype(function: headerdoc.Function) -> list[str]:
    """The declaration, wrapped under its parenthesis."""
    space = "" if function.returns.endswith("*") else " "
    head = f"{function.returns}{space}{function.name}("
    parameters = [declaration for declaration, _ in function.parameters] or ["void"]
    # "~" keeps a parameter's words on one line.
    joined = ", ".join(parameter.replace(" ", "~") for parameter in parameters) + ");"
    rows = textwrap.wrap(joined, 72 - len(head), break_long_words=False)
    lines = [head + rows[0], *(" " * len(head) + row for row in rows[1:])]
    names = {name for _, name in function.parameters}

    def name_in_italics(match: re.Match[str]) -> str:
        return f"\\fI{match[1]}\\fB" if match[1] in names else match[1]

    def style(line: str) -> str:
        escaped = escape(line.replace("~", " "))
        return "\\fB" + re.sub(r"\b(\w+)(?=,|\);)", name_in_italics, escaped) + "\\fP"

    return [".nf", *(style(line) for line in lines), ".fi"]


def _results(
    headers: Sequence[headerdoc.Header], function: headerdoc.Function, italics: frozenset[str]
) -> list[str]:
    comment = function.comment
    retvals = headerdoc.results(headers, function)
    outcomes = [tag for tag in retvals if tag.name in OUTCOMES]
    errors = [tag for tag in retvals if tag.name not in OUTCOMES]
    returned = paragraphs(comment.one("return"), italics) if comment.one("return") else []
    for tag in outcomes:
        returned += _entry(_bold(tag.name), prose(tag.text, italics))
    if errors:
        sign = "negative " if function.returns == "int" else ""
        returned += [".PP", f"On failure, one of the {sign}values under ERRORS."]
    lines = _section("RETURN VALUE", returned)
    failures: list[str] = []
    for tag in errors:
        failures += _entry(_bold(tag.name), prose(tag.text, italics))
    if errors and function.returns == "int" and comment.one("path") == "cold":
        failures += [".PP", "\\fBvelo_last_error\\fP(3) then says what happened and what to do."]
    return lines + _section("ERRORS", failures)


def _pointer(
    header: headerdoc.Header, function: headerdoc.Function, examples: Path | None
) -> list[str]:
    """Where a whole program is that makes a call."""
    program = header.comment.one("example")
    if not program or not examples:
        return []
    text = (examples / program).read_text(encoding="utf-8")
    if not re.search(rf"\b{function.name}\(", text):
        return []
    return [f"{_page_name(header.page, 7)} has a whole program that calls it."]


def function_page(
    headers: Sequence[headerdoc.Header],
    header: headerdoc.Header,
    function: headerdoc.Function,
    edition: Edition,
    examples: Path | None = None,
) -> str:
    """The section 3 page of one call; `header` is the one of `headers` that declares it."""
    comment = function.comment
    # Only names that cannot be plain words stand out in the text: "a port" is not the parameter.
    italics = frozenset(name for _, name in function.parameters if "_" in name)
    summary = function.summary.rstrip(".")
    parameters: list[str] = []
    for tag in comment.all("param"):
        parameters += _entry(f"\\fI{tag.name}\\fP", prose(tag.text, italics))
    see = {name for tag in comment.all("see") for name in re.split(r",\s*", tag.text)}
    see = (see | {function.model}) - {function.name, ""}
    references = [*(_page_name(name, 3) for name in sorted(see)), _page_name(header.page, 7)]
    return _page(
        [
            edition.title(function.name, 3, LIBRARY),
            *_section("NAME", [f"{function.name} \\- {escape(summary[0].lower() + summary[1:])}"]),
            *_section("LIBRARY", [_library(header)]),
            *_section("SYNOPSIS", [*_include(header), ".PP", *_prototype(function)]),
            *_section("DESCRIPTION", paragraphs(comment.text, italics)),
            *_section("PARAMETERS", parameters),
            *_results(headers, function, italics),
            *_section("THREADS", paragraphs(comment.one("thread"), italics)),
            *_section("COST", paragraphs(COST[comment.one("path")])),
            *_section("EXAMPLES", _pointer(header, function, examples)),
            *_section("SOURCE", paragraphs(comment.one("source"))),
            *_section("SEE ALSO", [",\n".join(references)]),
        ]
    )


# --- section 7 --------------------------------------------------------------------------------


def _type_lines(kind: headerdoc.Type) -> list[str]:
    title = kind.name if kind.kind == "typedef" else f"{kind.kind} {kind.name}"
    lines = _section(escape(title), [prose(kind.text)], "SS")
    for member in kind.members:
        lines += _entry(_bold(member.declaration), prose(member.text))
    return lines


def example(path: Path) -> list[str]:
    """A whole program, without the line of its licence."""
    lines = path.read_text(encoding="utf-8").splitlines()
    code = [escape(line) for line in lines if "SPDX-License-Identifier" not in line]
    # Before a line that is empty in a filled page, mandoc wants a paragraph.
    return [".nf", ".ft CW", *(line or ".sp" for line in code), ".ft R", ".fi"]


def _environment(header: headerdoc.Header) -> list[str]:
    """Every variable that the documentation mentions, what it means, and where."""
    texts = [("DESCRIPTION", header.comment.text)]
    texts += [(_page_name(call.name, 3), call.comment.text) for call in header.functions]
    for kind in header.types:
        members = " ".join(member.text for member in kind.members)
        texts.append((_bold(f"{kind.kind} {kind.name}"), members))
    places: dict[str, list[str]] = {}
    for place, text in texts:
        for name in dict.fromkeys(re.findall(r"\$(VELO2?_\w+)", text)):
            places.setdefault(name, []).append(place)
    lines: list[str] = []
    for name, where in sorted(places.items()):
        if name not in VARIABLES:
            raise headerdoc.DocError(f"{header.path}: ${name} is not in runtime/environment.py")
        lines += _entry(_bold(name), f"{_meaning(VARIABLES[name])} See {', '.join(where)}.")
    return lines


def _meaning(variable: Variable) -> str:
    default = f" Default: {escape(variable.default)}." if variable.default else ""
    return f"{escape(variable.meaning[0].upper() + variable.meaning[1:])}.{default}"


def overview_page(
    headers: Sequence[headerdoc.Header],
    header: headerdoc.Header,
    edition: Edition,
    examples: Path | None = None,
) -> str:
    """The section 7 page of one of the headers: what it is for, its types, a list of its calls."""
    constants: list[str] = []
    for constant in header.constants:
        constants += _entry(_bold(constant.declaration), prose(constant.text))
    calls: list[str] = []
    for function in header.functions:
        calls += _entry(_page_name(function.name, 3), prose(function.summary))
    brief = header.comment.one("brief").rstrip(".")
    program = header.comment.one("example")
    shown = example(examples / program) if program and examples else []
    others = sorted(other.page for other in headers if other is not header)
    references = [_page_name("velo", 1), *(_page_name(page, 7) for page in others)]
    return _page(
        [
            edition.title(header.page, 7, LIBRARY),
            *_section(
                "NAME", [f"{escape(header.page)} \\- {escape(brief[0].lower() + brief[1:])}"]
            ),
            *_section("SYNOPSIS", _include(header)),
            *_section("DESCRIPTION", paragraphs(header.comment.text)),
            *_section("CALLS", calls),
            *_section("TYPES", [line for kind in header.types for line in _type_lines(kind)]),
            *_section("CONSTANTS", constants),
            *_section("ENVIRONMENT", _environment(header)),
            *_section("EXAMPLES", shown),
            *_section("SEE ALSO", [",\n".join(references)]),
        ]
    )


# --- section 1 --------------------------------------------------------------------------------


def _option_term(action: argparse.Action) -> str:
    names = ", ".join(_bold(option) for option in action.option_strings)
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return f"\\fI{escape(metavar)}\\fP"
    if action.nargs == 0:
        return names
    if action.choices and not action.metavar:
        return f"{names} {escape('{' + ','.join(map(str, action.choices)) + '}')}"
    return f"{names} \\fI{escape(metavar)}\\fP"


def _options(parser: argparse.ArgumentParser) -> list[str]:
    lines: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            continue
        if action.help == argparse.SUPPRESS:
            continue
        values = {**vars(action), "prog": parser.prog}
        lines += _entry(_option_term(action), escape((action.help or "") % values))
    return lines


def _commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Every parser below this one, in order, each once."""
    found: list[argparse.ArgumentParser] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                found += [child, *_commands(child)]
    return found


def _all_variables() -> list[str]:
    lines: list[str] = []
    for group in GROUPS:
        lines += [f".SS {escape(group.title)}"]
        for variable in group.variables:
            lines += _entry(_bold(variable.name), _meaning(variable))
    return lines


def command_page(
    parser: argparse.ArgumentParser, edition: Edition, examples: Sequence[tuple[str, str]] = ()
) -> str:
    """velo(1), from the parser of the velo command; an example is a command line and its use."""
    shown: list[str] = []
    for line, text in examples:
        shown += _entry(_bold(line), escape(text))
    lines: list[str] = []
    for command in _commands(parser):
        body = [*paragraphs(command.description or ""), *_options(command)]
        lines += _section(escape(command.prog), body, "SS")
    description = parser.description or ""
    name = description.split("\n")[0].rstrip(".")
    return _page(
        [
            edition.title("velo", 1, "User Commands"),
            *_section("NAME", [f"velo \\- {escape(name[0].lower() + name[1:])}"]),
            *_section("SYNOPSIS", ["\\fBvelo\\fP \\fIcommand\\fP [\\fIoptions\\fP]"]),
            *_section("DESCRIPTION", paragraphs(description)),
            *_section("OPTIONS", _options(parser)),
            *_section("COMMANDS", lines),
            *_section("EXIT STATUS", paragraphs(parser.epilog or "")),
            *_section("ENVIRONMENT", _all_variables()),
            *_section("EXAMPLES", shown),
            *_section("SEE ALSO", ["\\fBvelo\\fP(7)"]),
        ]
    )


# --- the program ------------------------------------------------------------------------------


def _write(folder: Path, name: str, section: int, text: str) -> None:
    path = folder / f"man{section}" / f"{name}.{section}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _write_library_pages(
    paths: Sequence[Path], folder: Path, edition: Edition, examples: Path | None
) -> None:
    headers = headerdoc.read(paths)
    for header in headers:
        for function in header.functions:
            _write(
                folder,
                function.name,
                3,
                function_page(headers, header, function, edition, examples),
            )
        _write(folder, header.page, 7, overview_page(headers, header, edition, examples))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mangen", description="Write the man pages.")
    parser.add_argument(
        "--header",
        type=Path,
        action="append",
        default=[],
        help="write sections 3 and 7 from this header; give each header that the others refer to",
    )
    parser.add_argument(
        "--command", metavar="MODULE", help="write section 1 from the build_parser() of this module"
    )
    parser.add_argument("--examples", type=Path, help="folder of the programs that @example names")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to write to")
    parser.add_argument("--version", required=True, help="release, for the page footer")
    parser.add_argument("--date", required=True, help="date, for the page footer")
    args = parser.parse_args(argv)
    edition = Edition(args.version, args.date)
    try:
        if args.header:
            _write_library_pages(args.header, args.output, edition, args.examples)
        if args.command:
            command = importlib.import_module(args.command)
            page = command_page(command.build_parser(), edition, command.EXAMPLES)
            _write(args.output, "velo", 1, page)
    except headerdoc.DocError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"mangen: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
