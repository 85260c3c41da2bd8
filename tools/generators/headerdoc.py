# SPDX-License-Identifier: Apache-2.0
"""Read the documentation comments of the public C headers, and refuse an incomplete one.

It understands the subset of C that velo's headers use: functions marked VELO_API, enums, structs of
plain members, typedefs, and constants. What it cannot read it refuses, with the file and the line.

A call that returns a status names each with @retval. "@return As velo_rma_put()." takes over the
@retval lines of velo_rma_put(); a @retval of its own replaces the one of the same name.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Tags that a comment may hold, and whether their first word is a name.
TAGS = {
    "file": False,
    "brief": False,
    "param": True,
    "retval": True,
    "return": False,
    "thread": False,
    "path": False,
    "source": False,
    "see": False,
    "example": False,
}
# Those of a file, which stand above its text.
ONE_LINE = ("brief", "example")
# The enums of results, and the types of calls that return one.
STATUS_ENUMS = ("velo_status", "velo2_ret", "RMA2_Error_Code")
APART_FOLDER = "extoll"
STATUS_TYPES = ("int", "velo2_ret_t", "RMA2_ERROR")


class DocError(ValueError):
    """The header is not documented as it must be; the message starts with file:line."""


@dataclass(frozen=True)
class Tag:
    """One @tag of a comment; `name` is empty where the tag takes none."""

    kind: str
    name: str
    text: str
    line: int


@dataclass(frozen=True)
class Comment:
    """A documentation comment: its text without the tags, and its tags."""

    text: str
    tags: tuple[Tag, ...]
    line: int

    def all(self, kind: str) -> list[Tag]:
        return [tag for tag in self.tags if tag.kind == kind]

    def one(self, kind: str) -> str:
        return next((tag.text for tag in self.all(kind)), "")


@dataclass(frozen=True)
class Member:
    """An enumerator, a struct member or a constant, with what it means."""

    name: str
    declaration: str
    text: str


@dataclass(frozen=True)
class Function:
    """One call of the API."""

    name: str
    returns: str
    parameters: tuple[tuple[str, str], ...]  # (declaration, name)
    comment: Comment

    @property
    def summary(self) -> str:
        """The first sentence."""
        return re.split(r"(?<=\.)\s", self.comment.text, maxsplit=1)[0]

    @property
    def model(self) -> str:
        """The call whose statuses it returns too (@return As velo_rma_put().), or empty."""
        model = re.match(r"As (\w+)\(\)", self.comment.one("return"))
        return model[1] if model else ""


@dataclass(frozen=True)
class Type:
    """An enum, a struct or a typedef; an opaque struct has no members."""

    kind: str
    name: str
    text: str
    members: tuple[Member, ...]


@dataclass
class Header:
    """Everything that a header documents."""

    path: Path
    comment: Comment
    functions: list[Function] = field(default_factory=list)
    types: list[Type] = field(default_factory=list)
    constants: list[Member] = field(default_factory=list)

    @property
    def include(self) -> str:
        """How a program includes it."""
        return self.path.name if self.is_apart else f"{self.path.parent.name}/{self.path.name}"

    @property
    def is_apart(self) -> bool:
        """It belongs to no folder of headers, and has a library of its own name."""
        return self.path.parent.name == APART_FOLDER

    @property
    def library(self) -> str:
        """What a program is linked with: velo for -lvelo."""
        return self.path.stem if self.is_apart else "velo"

    @property
    def page(self) -> str:
        """Its page in section 7: velo of velo/velo.h, velo-rma of velo/rma.h."""
        folder, stem = self.path.parent.name, self.path.stem
        return stem if self.is_apart or stem == folder else f"{folder}-{stem}"


class _Reader:
    """A header's text, with line numbers for messages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")

    def line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    def error(self, line: int, message: str) -> DocError:
        return DocError(f"{self.path}:{line}: {message}")

    def comment(self, match: re.Match[str]) -> Comment:
        """Split a comment into text and tags."""
        first_line = self.line(match.start())
        rows = [re.sub(r"^ ?\* ?", "", row.lstrip()) for row in match[1].split("\n")]
        text: list[str] = []
        tags: list[tuple[str, int, list[str]]] = []
        for number, row in enumerate(rows, first_line):
            tag = re.match(r"@(\w+)\s*(.*)", row)
            if tag:
                if tag[1] not in TAGS:
                    raise self.error(number, f"unknown tag @{tag[1]}")
                tags.append((tag[1], number, [tag[2]]))
            elif tags and row.strip() and tags[-1][0] not in ONE_LINE:
                tags[-1][2].append(row.strip())
            else:
                text.append(row.rstrip())
        return Comment(
            "\n".join(text).strip(),
            tuple(self._tag(kind, number, lines) for kind, number, lines in tags),
            first_line,
        )

    def _tag(self, kind: str, line: int, lines: list[str]) -> Tag:
        text = " ".join(lines).strip()
        name = ""
        if TAGS[kind]:
            name, _, text = text.partition(" ")
        if not text.strip():
            raise self.error(line, f"@{kind} {name}".rstrip() + " says nothing; add a sentence")
        return Tag(kind, name, text.strip(), line)


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _function(reader: _Reader, match: re.Match[str], comment: Comment) -> Function:
    line = reader.line(match.start())
    declaration = re.fullmatch(r"\w+_API\s+(.+?)\b(\w+)\s*\(([^()]*)\)\s*;", match[0], re.DOTALL)
    if not declaration:
        raise reader.error(line, "cannot read this declaration; write 'VELO_API type name(...);'")
    returns, name, inside = (_squeeze(part) for part in declaration.groups())
    parameters = []
    for parameter in [] if inside == "void" else inside.split(","):
        words = re.findall(r"\w+", parameter)
        if len(words) < 2:
            raise reader.error(line, f"{name}: the parameter '{parameter.strip()}' has no name")
        parameters.append((parameter.strip(), words[-1]))
    return Function(name, returns, tuple(parameters), comment)


class _Checker:
    """What must hold for a call, given what all the headers together declare."""

    def __init__(self, headers: Sequence[Header]) -> None:
        self.functions = {f.name: f for header in headers for f in header.functions}
        self.statuses = {
            member.name
            for header in headers
            for kind in header.types
            if kind.name in STATUS_ENUMS
            for member in kind.members
        }

    def check(self, path: Path, function: Function) -> None:
        comment = function.comment

        statuses = " or ".join(STATUS_ENUMS)

        def require(condition: bool, message: str, line: int = comment.line) -> None:
            if not condition:
                raise DocError(f"{path}:{line}: {function.name}: {message}")

        require(bool(comment.text), "the comment has no first sentence")
        documented = [tag.name for tag in comment.all("param")]
        declared = [name for _, name in function.parameters]
        for name in declared:
            require(name in documented, f"document the parameter with '@param {name} ...'")
        for tag in comment.all("param"):
            require(tag.name in declared, f"there is no parameter '{tag.name}'", tag.line)
        require(documented == declared, "@param lines must follow the order of the parameters")
        for tag in comment.all("retval"):
            require(tag.name in self.statuses, f"{tag.name} is not in enum {statuses}", tag.line)
        for tag in comment.all("see"):
            for name in re.split(r",\s*", tag.text):
                require(name in self.functions, f"@see {name}: there is no such call", tag.line)
        if function.model:
            line = comment.all("return")[0].line
            model = self.functions.get(function.model)
            require(model is not None, f"As {function.model}(): there is no such call", line)
            require(
                model is not None and not model.model and bool(model.comment.all("retval")),
                f"As {function.model}(): name a call that has all its @retval lines itself",
                line,
            )
        elif function.returns in STATUS_TYPES:
            require(
                bool(comment.all("retval")),
                "name every status that it returns with @retval, or write '@return As call().'",
            )
        elif function.returns != "void":
            require(bool(comment.one("return")), "say what it returns with @return")
        require(bool(comment.one("thread")), "say which threads may call it with @thread")
        require(comment.one("path") in ("hot", "cold"), "add '@path hot' or '@path cold'")


def _blank(match: re.Match[str]) -> str:
    """As much white space, so that every line keeps its number."""
    return re.sub(r"\S", " ", match[0])


def _members(reader: _Reader, body: str, offset: int, end: str) -> Iterator[Member]:
    """The documented members of an enum or a struct; `end` is what closes each of them."""
    before, position = "", 0
    body = re.sub(r"/\*(?!\*).*?\*/", _blank, body, flags=re.DOTALL)  # Remarks are not for pages.
    token = re.compile(rf"/\*\*(<?)(.*?)\*/|([^{end}/]+){end}\s*(?:/\*\*<(.*?)\*/)?", re.DOTALL)
    for match in token.finditer(body):
        between = body[position : match.start()].strip()
        line = reader.line(offset + match.start())
        if between:
            raise reader.error(line, f"cannot read '{_squeeze(between)}'")
        position = match.end()
        if match[3] is None:
            before = match[2]
            continue
        declaration = _squeeze(match[3])
        text = _squeeze(re.sub(r"^\s*\*", "", before + (match[4] or ""), flags=re.MULTILINE))
        before = ""
        name = re.search(r"(\w+)(?:\[.*\])?$", declaration.partition("=")[0].strip())
        if name is None:
            raise reader.error(line, f"cannot read '{declaration}'")
        if not text:
            line += match[0][: match[0].index(name[1])].count("\n")
            raise reader.error(line, f"document {name[1]} with '/**< ... */'")
        yield Member(name[1], declaration, text)


_COMMENT = re.compile(r"/\*\*(?!<)(.*?)\*/", re.DOTALL)
_DECLARATION = re.compile(
    r"\s*(?:(?P<function>(?:VELO|VELO2|RMA2)_API\b[^;]*;)"
    r"|(?P<kind>enum|struct)\s+(?P<name>\w+)\s*"
    r"(?:\{(?P<body>.*?)\n\}\s*(?:__attribute__\(\(.*?\)\)\)\s*)?)?;"
    r"|\#define\s+(?P<constant>\w+(?:\([^)]*\))?)[ \t]+(?P<value>[^\n]*)"
    r"|typedef\s+[^;]*?(?:\(\*(?P<callback>\w+)\)\s*\([^;]*\)|\b(?P<typedef>\w+))\s*;"
    r"|extern\s+\w+_API\s+(?P<variable>[^;]*);"
    r"|(?P<inline>static\s+inline)\b)",
    re.DOTALL,
)
# The value of a constant that says something to people: a number, or a name for one.
_VALUE = re.compile(r"\(?(-?\d+|-?\w+?)u?\)?")
_TRAILING_CONSTANT = re.compile(
    r"^(?:#define\s+(\w+)\s+(\S.*?)|extern\s+\w+_API\s+([^;]*);)\s*/\*\*<(.*?)\*/", re.MULTILINE
)


def _constant(declaration: str, value: str) -> str:
    """A constant as pages show it, with its value if people can read that."""
    found = _VALUE.fullmatch(value.strip())
    return f"{declaration} = {found[1]}" if found else declaration


def _variable(declaration: str, text: str) -> Member:
    """A constant whose value the library has."""
    return Member(declaration.split()[-1], _squeeze(declaration), text)


def _read_types_and_functions(reader: _Reader, header: Header) -> None:
    for match in _COMMENT.finditer(reader.text):
        declaration = _DECLARATION.match(reader.text, match.end())
        # An indented comment documents a member; _members() reads it with its struct or enum.
        is_member = match.start() and reader.text[match.start() - 1] != "\n"
        if "@file" in match[1] or is_member:
            continue
        if not declaration:
            raise reader.error(reader.line(match.end()), "cannot read what this comment is of")
        comment = reader.comment(match)
        text = _squeeze(comment.text)
        if declaration["function"]:
            function = re.compile(r"\w+_API\b[^;]*;").search(reader.text, match.end())
            assert function
            header.functions.append(_function(reader, function, comment))
        elif declaration["kind"]:
            end = "," if declaration["kind"] == "enum" else ";"
            body = declaration["body"] or ""
            members = tuple(_members(reader, body, declaration.start("body"), end))
            header.types.append(Type(declaration["kind"], declaration["name"], text, members))
        elif declaration["constant"]:
            constant = declaration["constant"]
            shown = _constant(constant, declaration["value"])
            header.constants.append(Member(constant.partition("(")[0], shown, text))
        elif declaration["variable"]:
            header.constants.append(_variable(declaration["variable"], text))
        elif not declaration["inline"]:
            name = declaration["callback"] or declaration["typedef"]
            header.types.append(Type("typedef", name, text, ()))
    for constant in _TRAILING_CONSTANT.finditer(reader.text):
        text = _squeeze(constant[4])
        if constant[3]:
            header.constants.append(_variable(constant[3], text))
        else:
            header.constants.append(Member(constant[1], _constant(constant[1], constant[2]), text))


def _read_one(path: Path) -> Header:
    reader = _Reader(path)
    first = next((m for m in _COMMENT.finditer(reader.text) if "@file" in m[1]), None)
    if first is None:
        raise reader.error(1, "the header has no '/** @file ... */' comment")
    header = Header(path, reader.comment(first))
    if not header.comment.one("brief"):
        raise reader.error(header.comment.line, "the file comment has no @brief")
    _read_types_and_functions(reader, header)

    documented = {function.name for function in header.functions}
    for match in re.finditer(r"^\w+_API\b[^;(]*?(\w+)\s*\(", reader.text, re.MULTILINE):
        if match[1] not in documented:
            raise reader.error(reader.line(match.start()), f"{match[1]} has no comment before it")
    return header


def results(headers: Sequence[Header], function: Function) -> list[Tag]:
    """The @retval lines of a call, with those of the call that it returns as."""
    model = [f for header in headers for f in header.functions if f.name == function.model]
    by_name = {tag.name: tag for call in [*model, function] for tag in call.comment.all("retval")}
    return list(by_name.values())


def read(paths: Sequence[Path]) -> list[Header]:
    """Read and check headers that belong together. Raises DocError."""
    headers = [_read_one(path) for path in paths]
    checker = _Checker(headers)
    for header in headers:
        for function in header.functions:
            checker.check(header.path, function)
    return headers
