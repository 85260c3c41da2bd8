# SPDX-License-Identifier: Apache-2.0
"""The options that describe a simulated cluster and the job on it."""

import argparse
from typing import Any

from velo import units
from velo.arguments import checked, positive
from velo.cluster.host import host_constants


def add_options(parser: argparse.ArgumentParser) -> Any:
    """The cluster, and which ranks are where; returns the group of ways to start a program."""
    parser.add_argument(
        "--topology",
        metavar="KIND:SIZE",
        help="pair (two nodes, one cable), or ring:4, torus:2x2x2, mesh:4x4, hypercube:3, full:5 "
        "(default: pair); up to 256 nodes",
    )
    parser.add_argument(
        "-n", "-np", dest="ranks", metavar="N", type=checked(units.parse_count),
        help="number of ranks (default: one for each place on the nodes)",
    )  # fmt: skip
    parser.add_argument(
        "--ranks-a-node",
        metavar="N",
        type=checked(units.parse_count),
        default=1,
        help="ranks with neighbouring numbers that share a node (default: 1)",
    )
    layer = parser.add_mutually_exclusive_group()
    for name, text in (
        ("mtl", "the matching layer (the default)"),
        ("btl", "the byte transfer layer"),
    ):
        layer.add_argument(
            f"--{name}", dest="layer", action="store_const", const=name, help=f"through {text}"
        )
    parser.add_argument(
        "--cluster",
        metavar="FILE.toml",
        help="a file that describes cables, routes, clock and hosts; options given besides it come "
        "first. Its keys: the options from here to --host-ns, without dashes, then topology, "
        "cables, routes (see docs/guides/simulate.md)",
    )
    parser.add_argument(
        "--clock-mhz",
        metavar="MHZ",
        type=positive,
        help="clock of the hardware (default: 100)",
    )
    parser.add_argument(
        "--width-bits",
        metavar="BITS",
        type=int,
        choices=(32, 64, 128),
        help="data path of the hardware: 32, or 64 or 128 with up to three links (default: 32)",
    )
    parser.add_argument(
        "--cable-cycles",
        metavar="N",
        type=checked(units.parse_count),
        help="delay of each cable with its PHYs, in cycles of the hardware (default: 0)",
    )
    parser.add_argument(
        "--error-rate", metavar="P", type=positive, help="of each bit on a cable (default: 0)"
    )
    parser.add_argument(
        "--compute",
        metavar="HOW",
        help="what a program computes between two calls of velo costs: free (the default), call:NS "
        "a constant, measured:FACTOR its processor time (these runs do not repeat themselves)",
    )
    parser.add_argument(
        "--host",
        metavar="NAME|FILE",
        help="the host: a profile of its times by name ('velo sim --hosts' lists them, with the "
        "source of each time), or a file (.toml) of your own (default: ht200-fitted)",
    )
    parser.add_argument(
        "--host-ns",
        metavar="NAME=NS,...",
        type=checked(host_constants),
        help="other times than the host's: store, dma, read, poll, clock, copy, call; and gap",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=checked(units.parse_count),
        default=1,
        help="seed of what is random in the hardware's surroundings (default: 1)",
    )
    parser.set_defaults(layer="mtl", plain=False, dimmnet=0, mpi="ompi4", mpi_root=None)
    return layer
