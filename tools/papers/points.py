# SPDX-License-Identifier: Apache-2.0
"""The papers' hardware and newer hardware, and how it is measured by velo-mpi-perf."""

import json
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Point:
    """Hardware of one clock and width, with cables of one length."""

    name: str
    clock_mhz: float
    width_bits: int
    cable_ns: float
    host: str = ""
    """A profile, as `velo sim --host` has it."""

    @property
    def options(self) -> list[str]:
        cycles = round(self.cable_ns * self.clock_mhz / 1000)
        words = ["--clock-mhz", f"{self.clock_mhz:g}", "--width-bits", str(self.width_bits)]
        words += ["--cable-cycles", str(cycles)] if cycles else []
        return [*words, "--host", self.host] if self.host else words


# The VELO paper gives no delay for its cable; EXTOLL's hop takes some 300 ns, "mainly due to the
# hard IP modules used for serialization" (high-message-rates, section V): our 14 cycles, and 211 ns
# on the cable. Newer points keep the cable.
VELO_POINTS = (
    Point("100 MHz, 32 bit", 100, 32, 0),
    Point("300 MHz, 64 bit", 300, 64, 0),
    Point("800 MHz, 128 bit", 800, 128, 0),
)
EXTOLL_POINTS = (
    Point("156 MHz, 32 bit", 156, 32, 211),
    Point("300 MHz, 64 bit", 300, 64, 211),
    Point("800 MHz, 128 bit", 800, 128, 211),
)
# The papers' own hosts, of which no time was chosen to give what they measured with them.
HT200_POINT = replace(VELO_POINTS[0], name="HT200 host", host="opteron-ht200")
HTX_POINT = replace(EXTOLL_POINTS[0], name="180 ns host", host="opteron-ht400")
# Eight nodes: six links of 32 bits are the torus, three wider ones its cube, each pair bundled.
EIGHT_NODES = {32: "torus:2x2x2", 64: "hypercube:3", 128: "hypercube:3"}
# A program that streams messages.
RATE = ("velo-mpi-perf", "rate", "--no-limit", "--batches", "1")


def parse(said: str, x: str) -> list[tuple[float, float]]:
    """The samples among a program's JSON lines."""
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [(float(line[x]), float(line["value"])) for line in lines if "value" in line]
