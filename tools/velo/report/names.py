# SPDX-License-Identifier: Apache-2.0
"""What the stacks of records are called on a page, and what the words of a page mean."""

import re
from collections.abc import Iterable

from velo.results.figures import BTL, MTL, PROVIDER

_OURS = {MTL: "velo (mtl)", BTL: "velo (btl)", PROVIDER: "velo (provider)"}
_OWN = re.compile(r"ompi-(?P<version>[\d.]+) (?P<way>vader|sm)$")
_OTHERS = {"ompi": "Open MPI", "impi": "Intel MPI", "mpich": "MPICH", "ucx": "UCX"}

# A word of a page, and what it means; shown where the word occurs.
WORDS = {
    "mtl": "velo as Open MPI's matching layer, the fastest way for MPI",
    "btl": "velo as Open MPI's byte transfer layer, which works beside other networks",
    "provider": "velo below libfabric, for MPICH, Intel MPI and others",
    "vader": "the shared memory of Open MPI 4, what every job on one machine uses without velo",
    "sm": "the shared memory of Open MPI 5, what every job on one machine uses without velo",
    "ucx": "UCX, another library that MPIs send messages by",
}


def plain(stack: str) -> str:
    """A stack in words that a reader knows who has never seen velo."""
    own = _OWN.match(stack)
    if own:
        return f"Open MPI {own['version']}'s own ({own['way']})"
    name, _, rest = stack.partition("-")
    if name in _OTHERS:
        version, _, way = rest.partition(" ")
        return f"{_OTHERS[name]} {version}" + (f" ({way})" if way else "")
    return _OURS.get(stack, stack)


def explained(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Those of WORDS that occur in some texts, with their meaning."""
    there = {word for text in texts for word in re.findall(r"\w+", text)}
    return [(word, meaning) for word, meaning in WORDS.items() if word in there]
