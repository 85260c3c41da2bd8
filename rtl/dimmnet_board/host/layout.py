# SPDX-License-Identifier: Apache-2.0
"""The layouts of spec/dimmnet.toml as a host has them: words, and addresses in the slot."""

from dimmnet.test import layout
from dimmnet.test.layout import CONSTANTS, LAYOUTS, WORD
from dimmnet.test.layout import ENUMS as NAMES

__all__ = ["CONSTANTS", "NAMES", "pack", "privileged", "register", "slot", "unpack"]


def pack(name: str, **values: int) -> list[int]:
    """Words; fields that are not named have their fixed value, or 0."""
    number = layout.pack(name, **values)
    count = 1 + max(field.get("word", 0) for field in LAYOUTS[name])
    return [number >> 64 * word & WORD for word in range(count)]


def unpack(name: str, words: list[int]) -> dict[str, int]:
    """The fields of words."""
    return layout.unpack(name, sum(word << 64 * place for place, word in enumerate(words)))


def slot(page: str, wid: int, offset: int) -> int:
    """Byte address of a process's page; offsets behind it go on in the next page."""
    first = NAMES["page"][page] + (offset >> 12)
    return layout.pack("slot", page=first, wid=wid, offset=offset & 0xFFF)


def register(name: str, wid: int) -> int:
    return slot("register", wid, 8 * NAMES["register"][name])


def privileged(name: str, more: int = 0) -> int:
    word = NAMES["privileged"][name] + more
    return layout.pack("slot", privileged=1, offset=8 * word)
