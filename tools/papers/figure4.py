# SPDX-License-Identifier: Apache-2.0
"""Figure 4 of the VELO paper: where the cycles of one message go.

The modules, how many of the paper's 64 cycles each takes, and which of our stages (node_pair.sv,
`stage_o`) are the same. What the paper does not name is the rest of its sum; here it is the time in
which the message's other words follow the first.
"""

MODULES: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("host port and crossbar", 21, ("htax_out", "htax_in")),
    ("VELO requester", 3, ("requester",)),
    (
        "network, node to node",
        28,
        ("netport_out", "switch_out", "link_out", "link_in", "switch_in", "netport_in"),
    ),
    ("VELO completer", 5, ("completer",)),
    ("other words; not named", 7, ("rest_of_message",)),
)
# What both have: without the paper's HyperTransport core, for which we have a parallel port, and
# without what the paper does not name.
ALIKE = "units and network alone"


def alike() -> list[tuple[str, int, tuple[str, ...]]]:
    """The modules that can be compared."""
    return list(MODULES[1:-1])
