# SPDX-License-Identifier: Apache-2.0
"""What `velo paper` shows: each figure of the papers with ours beside it, and what differs.

The papers' values are those that their text gives; of curves that are only drawn, none is read off.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from markupsafe import Markup

from papers import dimmnet, figure4, sensitivity
from papers.experiments import Results, Series
from papers.points import EXTOLL_POINTS, HT200_POINT, HTX_POINT, VELO_POINTS, Point
from velo import units
from velo.cluster import profiles
from velo.display import Table, paint
from velo.errors import writing
from velo.report import plots
from velo.report.page import template

TEMPLATE = Path(__file__).with_name("page.html.j2")
NONE = "–"
ICPP = "VELO, ICPP 2008"
WHITE = "VELO, white paper"
FPGA = "case for FPGAs"
RATES = "high message rates"
# Table 1 of the VELO paper: flip-flops and LUTs of a Virtex-4 FX60.
AREAS = {
    "velo_requester": (88, 143), "velo_completer": (274, 365), "velo_regfile": (222, 199),
}  # fmt: skip
TCP_NS = 62e3
# Table I: what a message of 8 bytes of payload takes of the link, and the link's rate with nothing
# else on it.
PAPER_PEAK = 78e6
# A packet on a cable: start word, header of two words, CRC (spec, layout packet).
PROTOCOL_BYTES = 16
# bench_network's message of 8 bytes has 16 bytes of an upper layer's header.
BENCH_MESSAGE_BYTES = 24
# Of one word in the 32-bit path; the link of EXTOLL R1 moves one a cycle, as ours does.
LINK_BYTES_A_CYCLE = 4
PAPER_RATE = 9.73e6
HERE = VELO_POINTS[0]
NEWER = [point.name for point in VELO_POINTS[1:]]  # Those of EXTOLL have the same names.
WIDTHS = [point.width_bits for point in VELO_POINTS]


@dataclass(frozen=True)
class Claim:
    """A value that a paper states, and how ours is found."""

    source: str
    what: str
    paper: float | None
    ours: Callable[[Results, Point], float | None]
    show: Callable[[float], str]
    points: tuple[Point, ...]
    note: str = ""
    is_compared: bool = True
    """Does the conclusion count it? Not what a row above says, too, or what is free here."""

    def reached(self, results: Results) -> bool | None:
        """Is ours at least as good, at the paper's clock? None: there is nothing to compare."""
        ours = self.ours(results, self.points[0])
        if not self.is_compared or self.paper is None or ours is None:
            return None
        return ours <= self.paper if self.show in LESS_IS_BETTER else ours >= self.paper


def _cycles_text(value: float) -> str:
    return f"{value:.0f} cycles"


def _size_text(value: float) -> str:
    return f"{value:.0f} B"


# How values of which less is better are shown.
LESS_IS_BETTER = (_cycles_text, _size_text, units.time_ns)


def _at(experiment: str, x: float, scale: Callable[[float], float] = lambda v: v) -> Any:
    def find(results: Results, point: Point) -> float | None:
        value = _value(results, experiment, point, x)
        return None if value is None else scale(value)

    return find


def _value(results: Results, experiment: str, point: Point, x: float) -> float | None:
    return next((s.at(x) for s in results.of(experiment) if s.point == point), None)


def _best(experiment: str, by_size: bool = False) -> Any:
    def find(results: Results, point: Point) -> float | None:
        series = next((s for s in results.of(experiment) if s.point == point), None)
        values = [y * x if by_size else y for x, y in series.values] if series else []
        return max(values, default=None)

    return find


def _cycles_of(cycles: dict[str, Any], width_bits: int) -> dict[str, Any]:
    """The measurements at one width; all else on the page is about the path of 32 bits."""
    found = cycles if width_bits == 32 else cycles.get(f"node_{width_bits}_bit", {})
    return cast("dict[str, Any]", found)


def _cycles(results: Results, point: Point) -> float | None:
    value = _cycles_of(results.cycles, point.width_bits).get("host_to_host_cycles")
    return None if value is None else float(value)


def _bytes_a_message(results: Results, point: Point) -> float | None:
    rate = _best("rate by pairs")(results, point)
    word = LINK_BYTES_A_CYCLE * point.width_bits // 32
    return word * point.clock_mhz * 1e6 / rate if rate else None


def _share_of_peak(results: Results, point: Point) -> float | None:
    taken = _bytes_a_message(results, point)
    return 8 / taken if taken else None


def _protocol(results: Results, point: Point) -> float | None:
    """Known at 32 bits; a wider path also fills its words."""
    is_narrow = point.width_bits == 32 and results.of("rate by pairs")
    return float(PROTOCOL_BYTES) if is_narrow else None


def _gap(results: Results, point: Point) -> float | None:
    cycles = results.cycles.get("cycles_per_8B_message") if point.width_bits == 32 else None
    if cycles is None:
        return None
    return float(LINK_BYTES_A_CYCLE * cycles - BENCH_MESSAGE_BYTES - PROTOCOL_BYTES)


def _mpi_overhead(results: Results, point: Point) -> float | None:
    """What is left of a message's bytes on the link."""
    taken, gap = _bytes_a_message(results, point), _gap(results, point)
    return None if taken is None or gap is None else taken - gap - PROTOCOL_BYTES - 8


def _half_of_link(results: Results, point: Point) -> float | None:
    """The smallest message with which half of the link is used."""
    series = next((s for s in results.of("api stream") if s.point == point), None)
    link = LINK_BYTES_A_CYCLE * point.width_bits / 32 * point.clock_mhz * 1e6
    sizes = [x for x, y in sorted(series.values) if x * y >= link / 2] if series else []
    return sizes[0] if sizes else None


def _bytes_text(value: float) -> str:
    return f"{value:.1f} B"


CLAIMS = (
    Claim(ICPP, "host port to host port, hardware alone", 64, _cycles, _cycles_text, VELO_POINTS,
          "fig. 4"),
    Claim(ICPP, "half round trip, velo.h, 8 B", 970, _at("api latency", 8), units.time_ns,
          VELO_POINTS, "fig. 5; theirs of the smallest message; the host's times were chosen to "
          "give their host's share"),
    Claim(ICPP, "the same, the host's times from sources alone", 970, _at("api latency", 8),
          units.time_ns, (HT200_POINT,), "fig. 5; host opteron-ht200", is_compared=False),
    Claim(ICPP, "half round trip, Open MPI's BTL, 8 B", 1500, _at("mpi latency", 8),
          units.time_ns, VELO_POINTS, "fig. 5; their MPI adds some 500 ns of software"),
    Claim(ICPP, "the same, the host's times from sources alone", 1500, _at("mpi latency", 8),
          units.time_ns, (HT200_POINT,), "fig. 5; host opteron-ht200", is_compared=False),
    Claim(ICPP, "ping-pong bandwidth, 8 B", 7.8e6, _at("api latency", 8, lambda ns: 8e9 / ns),
          units.bandwidth, VELO_POINTS, "fig. 6", is_compared=False),
    Claim(ICPP, "streaming bandwidth, 32 B", 100e6, _at("api stream", 32, lambda r: 32 * r),
          units.bandwidth, VELO_POINTS, "fig. 7"),
    Claim(ICPP, "message rate, 8 B", 4.8e6, _at("api stream", 8), units.rate, VELO_POINTS,
          "section 5; one core"),
    Claim(ICPP, "message rate, 32 B", 3e6, _at("api stream", 32), units.rate, VELO_POINTS,
          "section 5; theirs: “over 3 million”"),
    Claim(WHITE, "half round trip on an ASIC, velo.h, 8 B", 500, _at("api latency", 8),
          units.time_ns, VELO_POINTS, "page 9: less than that, with hardware five times as fast; "
          "ours in the last columns", is_compared=False),
    Claim(WHITE, "message with which half of the link is used", 32, _half_of_link, _size_text,
          VELO_POINTS, "page 9, n½; our link is twice as wide"),
    Claim(WHITE, "TCP over Gigabit Ethernet takes so many times as long", TCP_NS / 970,
          _at("api latency", 8, lambda ns: TCP_NS / ns), lambda v: f"{v:.0f}", VELO_POINTS,
          "page 8: 62 µs, half round trip of NetPIPE", is_compared=False),
    Claim(FPGA, "half round trip, Open MPI's MTL, 128 B", 2440, _at("netpipe latency", 128),
          units.time_ns, EXTOLL_POINTS, "fig. 3"),
    Claim(FPGA, "the same, a host access takes 180 ns", 2440, _at("netpipe latency", 128),
          units.time_ns, (HTX_POINT,), "fig. 3; host opteron-ht400: section III.B measures "
          "about 180 ns to an HTX device", is_compared=False),
    Claim(FPGA, "streaming bandwidth, Open MPI's MTL, 4 KiB", None,
          _at("netpipe stream", 4096, lambda ns: 4096e9 / ns), units.bandwidth, EXTOLL_POINTS,
          "fig. 4; theirs is only drawn, their link carries 624 MB/s"),
    Claim(FPGA, "half round trip, PingPong of the Intel MPI Benchmarks, 128 B", None,
          _at("pingpong", 128), units.time_ns, EXTOLL_POINTS, "fig. 5; only drawn: “very similar” "
          "to figure 3 up to 256 B"),
    Claim(FPGA, "RandomAccess, two nodes, small table", None, _at("gups by table", 1 << 12),
          units.gups, EXTOLL_POINTS, "fig. 6; only drawn: about 2.8 times InfiniBand's at both "
          "tables. 32 ranks, as two nodes of 16 cores; 2^12 words"),
    Claim(FPGA, "RandomAccess, two nodes, large table", None, _at("gups by table", 1 << 16),
          units.gups, EXTOLL_POINTS, "fig. 6; theirs is the largest that fits into 32 GB, ours has "
          "2^16 words"),
    Claim(RATES, "MPI message rate, 8 B, best of all pairs", PAPER_RATE, _best("rate by pairs"),
          units.rate, EXTOLL_POINTS, "table I, fig. 4"),
    Claim(RATES, "the same, of the 78 M/s that payload alone would allow", PAPER_RATE / PAPER_PEAK,
          _share_of_peak, lambda v: f"{v:.1%}", EXTOLL_POINTS, "table I", is_compared=False),
    Claim(RATES, "MPI bandwidth, four pairs", 480e6, _best("rate by size", by_size=True),
          units.bandwidth, EXTOLL_POINTS, "fig. 3; theirs is the peak of the same test"),
    Claim(RATES, "of the link, for each 8-byte message", 64, _bytes_a_message, _bytes_text,
          EXTOLL_POINTS, "table I, of which:", is_compared=False),
    Claim(RATES, "– network protocol", 32, _protocol, _bytes_text, EXTOLL_POINTS[:1],
          "table I; ours: start word, header, CRC", is_compared=False),
    Claim(RATES, "– gaps of switch and network interface", 8, _gap, _bytes_text, EXTOLL_POINTS[:1],
          "table I; ours: of messages of 24 bytes, measured by make rtl-bench", is_compared=False),
    Claim(RATES, "– MPI's header", 16, _mpi_overhead, _bytes_text, EXTOLL_POINTS[:1],
          "table I; ours: what is left but the 8 bytes of payload, so a pause of the hosts counts "
          "here, too", is_compared=False),
    Claim(RATES, "RandomAccess, 8 nodes, 64 ranks", 0.20853e9, _at("gups", 64), units.gups,
          EXTOLL_POINTS, "table IV. No agreement, however close: computing is free here, and the "
          "table has 2^16 words. The paper extrapolates 1.45 to 1.54 and 1.90 GUP/s for the newer; "
          "see velo predict", is_compared=False),
)  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A picture, what the paper has of it, and what differs."""

    source: str
    title: str
    svg: Markup
    differs: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """How a figure is drawn from an experiment."""

    source: str
    title: str
    experiment: str
    label: str
    show: Callable[[float], str]
    value: Callable[[float, float], float]
    marks: tuple[tuple[str, float, float], ...]
    differs: tuple[str, ...]
    x_label: str = "message size"


def _itself(_: float, y: float) -> float:
    return y


def _bandwidth(size_bytes: float, ns: float) -> float:
    return size_bytes * 1e9 / ns


def _rate_bandwidth(size_bytes: float, msgs_per_s: float) -> float:
    return size_bytes * msgs_per_s


FREE = "Computing is free here: of the software only copies, polls and calls take time."
PATH = "Our path is 32 bits wide, theirs 16: 400 and 200 MB/s at 100 MHz."
DRAWINGS = (
    Drawing(ICPP, "Figure 5: half round trip on the API", "api latency", "half round trip",
            units.time_ns, _itself,
            (("paper, VELO", 8, 970), ("paper, InfiniPath's MPI", 8, 1140),
             ("white paper, TCP, Gigabit Ethernet", 8, TCP_NS)),
            ("The hardware takes fewer cycles than theirs, module by module in figure 4 (make "
             "rtl-bench measures it); theirs hold a HyperTransport core.", PATH,
             "A word of each message of velo.h names the connection, which theirs has not.")),
    Drawing(ICPP, "Figure 5: half round trip over Open MPI", "mpi latency", "half round trip",
            units.time_ns, _itself,
            (("paper, VELO", 8, 1500), ("paper, Open MPI/OpenIB", 8, 5310)),
            (FREE + " Their 500 ns of MPI software are not in it.",)),
    Drawing(ICPP, "Figure 6: ping-pong bandwidth", "api latency", "bandwidth", units.bandwidth,
            _bandwidth, (("paper, VELO", 8, 7.8e6), ("paper, InfiniPath", 8, 6.5e6)),
            ("Size over half round trip: the same run as figure 5.",)),
    Drawing(ICPP, "Figure 7: streaming bandwidth", "api stream", "bandwidth", units.bandwidth,
            _rate_bandwidth, (("paper, VELO", 32, 100e6), ("paper, InfiniPath", 32, 67e6)),
            (PATH, FREE)),
    Drawing(FPGA, "Figure 3: NetPIPE, half round trip", "netpipe latency", "half round trip",
            units.time_ns, _itself,
            (("paper, EXTOLL", 128, 2440), ("paper, InfiniBand SDR", 128, 6640)),
            (FREE,
             "Each cable has 211 ns of delay, so that a hop takes the 300 ns of the later paper; "
             "this one does not give it.")),
    Drawing(FPGA, "Figure 4: NetPIPE, streaming bandwidth", "netpipe stream", "bandwidth",
            units.bandwidth, _bandwidth, (),
            ("The paper draws its curve without values: 5.1 times InfiniBand SDR at best.",
             "Messages to 16 KiB go through VELO, in lines that carry 56 bytes at most; in the "
             "later paper RMA took over beyond 2 KiB, with less overhead a byte.")),
    Drawing(FPGA, "Figure 5: PingPong of the Intel MPI Benchmarks", "pingpong", "half round trip",
            units.time_ns, _itself, (),
            ("By the definition of the suite: MPI_Send and MPI_Recv, half of the mean round trip, "
             "0 bytes and powers of two; velo-mpi-perf latency does that. The paper draws its "
             "curve without values.", FREE)),
    Drawing(FPGA, "Figure 6: RandomAccess on two nodes, two tables", "gups by table",
            "updates a second", units.gups, _itself, (),
            ("The paper draws bars without values. 16 ranks a node, one for each of its cores. "
             + FREE,),
            "words of the table"),
    Drawing(RATES, "Figure 3: message rate over size, four pairs", "rate by size",
            "messages a second", units.rate, _itself, (("paper, EXTOLL", 8, PAPER_RATE),),
            (FREE, "Windows of 64 messages, as the OSU test has them.")),
    Drawing(RATES, "Figure 4: message rate over pairs, 8 B", "rate by pairs", "messages a second",
            units.rate, _itself, (("paper, EXTOLL", 4, PAPER_RATE),),
            ("Theirs needs four pairs to saturate, ours two: " + FREE[0].lower() + FREE[1:],),
            "pairs"),
    Drawing(RATES, "Table IV: RandomAccess, 8 nodes", "gups", "updates a second", units.gups,
            _itself, (("paper, 64 ranks", 64, 0.20853e9),),
            ("A 2x2x2 torus (three wider links: a cube) with eight ranks a node, as theirs. The "
             "program follows HPCC's scheme with a table of 2^16 words; the paper gives no size: "
             "ours spends more of its time on the last, half empty buckets. " + FREE + " So that "
             "both figures are close says nothing.",),
            "ranks"),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A claim with every point's value as text."""

    source: str
    what: str
    paper: str
    ours: tuple[str, ...]
    note: str


def rows(results: Results) -> list[Row]:
    """The claims for which there is anything of ours."""
    out = []
    for claim in CLAIMS:
        values = [claim.ours(results, point) for point in claim.points]
        if any(value is not None for value in values):
            shown = [NONE if value is None else claim.show(value) for value in values]
            shown += [NONE] * (len(EXTOLL_POINTS) - len(shown))
            paper = NONE if claim.paper is None else claim.show(claim.paper)
            out.append(Row(claim.source, claim.what, paper, tuple(shown), claim.note))
    return out


def conclusion(results: Results) -> str:
    """What a person may conclude from what has run, in one sentence; its terms are on the page."""
    judged = [(claim, claim.reached(results)) for claim in CLAIMS]
    missed = [f"{claim.what} ({claim.source})" for claim, reached in judged if reached is False]
    compared = [claim for claim, reached in judged if reached is not None]
    if not compared:
        return ""
    reached = len(compared) - len(missed)
    return (
        f"At the papers' clocks our simulated hardware, with a modelled host, reaches {reached} of "
        f"the {len(compared)} values of the papers that it can be compared with"
        + (f", all but {'; '.join(missed)}" if missed else "")
        + ": that is what the hardware allows, and not what a real computer with it would measure."
    )


def measured_points(found: Sequence[Row]) -> list[int]:
    """Of the columns of points those in which there is a value."""
    return [at for at in range(len(EXTOLL_POINTS)) if any(row.ours[at] != NONE for row in found)]


def table(results: Results) -> Table:
    """The claims, for the terminal."""
    found = rows(results)
    points = measured_points(found)
    names = ("same clock", *NEWER)
    out = Table("<what", ">paper", *(f">{names[at]}" for at in points))
    source = ""
    for row in found:
        if row.source != source:
            source = row.source
            clock = (VELO_POINTS if source in (ICPP, WHITE) else EXTOLL_POINTS)[0]
            out.add_row(f"{paint(source, 'bold')} (same clock: {clock.name})")
        out.add_row(f"  {row.what}", row.paper, *(row.ours[at] for at in points))
    return out


def cycle_rows(cycles: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    """Figure 4 of the VELO paper: the cycles of one message, module by module."""
    if "stages" not in cycles:
        return []
    paths = [_cycles_of(cycles, width).get("stages", {}) for width in WIDTHS]

    def total(stages: dict[str, int], names: Sequence[str]) -> str:
        return str(sum(stages[name] for name in names)) if stages else NONE

    out = [
        (name, str(paper), [total(stages, names) for stages in paths])
        for name, paper, names in figure4.MODULES
    ]
    for row, modules in (("all", figure4.MODULES), (figure4.ALIKE, figure4.alike())):
        names = [name for _, _, stages in modules for name in stages]
        paper = sum(cycles for _, cycles, _ in modules)
        out.append((row, str(paper), [total(stages, names) for stages in paths]))
    return out


def area_rows(areas: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Table 1 of the VELO paper: flip-flops and LUTs; nothing unless all of ours are there."""
    if not areas.keys() >= AREAS.keys():
        return []

    def text(ff: int, luts: int) -> str:
        return f"{ff} flip-flops, {luts} LUTs"

    return [
        (name.replace("_", " "), text(*paper), text(areas[name]["ff"], areas[name]["lut4"]))
        for name, paper in AREAS.items()
    ]


def figures(results: Results) -> list[Figure]:
    """Every picture for which something has run."""
    out = []
    for drawing in DRAWINGS:
        found = results.of(drawing.experiment)
        if found:
            curves = [_curve(series, drawing, index) for index, series in enumerate(found)]
            svg = plots.curves(curves, drawing.marks, drawing.x_label, drawing.label, drawing.show)
            out.append(Figure(drawing.source, drawing.title, Markup(svg), drawing.differs))
    return out


def _curve(series: Series, drawing: Drawing, index: int) -> plots.Curve:
    xs = [x for x, _ in series.values]
    ys = [drawing.value(x, y) for x, y in series.values]
    return plots.Curve(f"ours, {series.point.name}", xs, ys, index)


def write(results: Results, output: Path) -> None:
    """The page, as one file."""
    found = rows(results)
    points = measured_points(found)
    shown = [replace(row, ours=tuple(row.ours[at] for at in points)) for row in found]
    text = template(TEMPLATE).render(
        conclusion=conclusion(results),
        groups=[(k, list(g)) for k, g in groupby(shown, key=lambda row: row.source)],
        cycles=cycle_rows(results.cycles),
        areas=area_rows(results.areas),
        sensitivity=sensitivity.section(results.prediction),
        figures=figures(results),
        dimmnet=dimmnet.section(results.cycles),
        series=results.series,
        absent=results.absent,
        velo_clock=VELO_POINTS[0].name,
        extoll_clock=EXTOLL_POINTS[0].name,
        points=[("ours, same clock", *NEWER)[at] for at in points],
        widths=WIDTHS,
        icpp=ICPP,
        hosts=[profiles.find(p.host or profiles.DEFAULT) for p in (HERE, HT200_POINT, HTX_POINT)],
    )
    with writing(output):
        output.write_text(text, encoding="utf-8")
