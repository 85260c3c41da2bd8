#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw one message on its way through two nodes, from a VCD of the simulation, as an SVG."""

import argparse
import re
import subprocess
import sys
from html import escape
from pathlib import Path

from rtl_bench import OUT, ROOT, build

STAGES = [
    "host write",
    "crossbar out",
    "requester out",
    "network port out",
    "switch out",
    "link: first word",
    "far link: in",
    "far switch out",
    "completer in",
    "completer out",
    "DMA write",
]
# Vectors of both nodes side by side: name, lowest bit of what is shown, what it is, and the stage
# that says when it counts.
DATA = [
    ("host_write_data_i", 0, "host write, data", 0),
    ("data_out", 0, "cable, data", 5),
    ("dma_write_data_o", 32, "DMA write, data", 10),
]
# Its lowest two bits are the kind of the word on the cable; a frame's first word is a control word.
CABLE_KIND, CONTROL_WORD = "kind_out", 1
LEFT, CELL, ROW = 150, 26, 24
LEGEND = [
    ("valid", "a word of the message is there"),
    ("data", "the word, its last four hexadecimal digits"),
    ("idle", "idle words of the link"),
]


def read_vcd(path: Path, wanted: set[str]) -> dict[str, list[tuple[int, int]]]:
    """Changes of the wanted signals of the top's own scope: time and value."""
    codes: dict[str, str] = {}
    changes: dict[str, list[tuple[int, int]]] = {name: [] for name in wanted}
    time = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        declared = re.match(r"\s*\$var \S+ \d+ (\S+) (\S+)", line)
        if declared:
            if declared[2] in wanted:
                codes[declared[1]] = declared[2]
        elif line.startswith("#"):
            time = int(line[1:])
        else:
            value = re.match(r"b([01]+) (\S+)$", line) or re.match(r"([01])(\S+)$", line)
            if value and value[2] in codes:
                changes[codes[value[2]]].append((time, int(value[1], 2)))
    return changes


def samples(changes: list[tuple[int, int]], cycles: range) -> list[int]:
    """The value just before each cycle's rising edge; times 2 c and 2 c + 1 are its halves."""
    return [next((v for t, v in reversed(changes) if t <= 2 * c), 0) for c in cycles]


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(words)}</text>'


def draw(changes: dict[str, list[tuple[int, int]]]) -> str:
    first = min(time for time, value in changes["stage_o"] if value & 1) // 2
    stage_all = samples(changes["stage_o"], range(first, first + 40))
    length = max(i for i, value in enumerate(stage_all) if value) + 3
    cycles = range(first, first + length)
    stage = stage_all[:length]
    rows: list[str] = []
    y = ROW
    for number in range(0, length, 5):
        rows.append(text(LEFT + CELL * number + CELL / 2, y - 6, str(number), "cycle"))
    rows.append(text(LEFT - 8, y - 6, "cycle", "name"))
    for index, name in enumerate(STAGES):
        rows.append(text(LEFT - 8, y + 16, name, "name"))
        for cycle, value in enumerate(stage):
            if value >> index & 1:
                box = f'x="{LEFT + CELL * cycle}" y="{y + 4}" width="{CELL}" height="{ROW - 8}"'
                rows.append(f'<rect {box} class="valid"/>')
        y += ROW
    kind = samples(changes[CABLE_KIND], cycles)
    for name, lsb, title, place in DATA:
        y += 4
        rows.append(text(LEFT - 8, y + 16, title, "name"))
        cable = name == "data_out"
        words = [
            (v >> lsb & 0xFFFFFFFF, bool(s >> place & 1) or (cable and k & 3 != CONTROL_WORD))
            for v, s, k in zip(samples(changes[name], cycles), stage, kind, strict=True)
        ]
        start = 0
        for cycle in range(1, length + 1):
            if cycle < length and words[cycle] == words[start]:
                continue
            value, counts = words[start]
            if counts or cable:
                width = CELL * (cycle - start)
                box = f'x="{LEFT + CELL * start}" y="{y + 2}" width="{width}" height="{ROW - 4}"'
                rows.append(f'<rect {box} class="{"data" if counts else "idle"}"/>')
                middle = LEFT + CELL * start + width / 2
                rows.append(text(middle, y + 16, f"{value & 0xFFFF:04x}", "value"))
            start = cycle
        y += ROW
    grid = [
        f'<line x1="{LEFT + CELL * c}" y1="{ROW}" x2="{LEFT + CELL * c}" y2="{y}" class="grid"/>'
        for c in range(length + 1)
    ]
    x, y = LEFT, y + 12
    for kind_name, words_shown in LEGEND:
        grid.append(f'<rect x="{x}" y="{y}" width="{CELL}" height="12" class="{kind_name}"/>')
        grid.append(text(x + CELL + 6, y + 10, words_shown))
        x += CELL + 30 + 6 * len(words_shown)
    width, height = LEFT + CELL * length + 10, y + 22
    style = (
        "text{font:11px sans-serif;fill:#222}.name{text-anchor:end}"
        ".cycle,.value{text-anchor:middle}"
        ".value{font-size:9px}.grid{stroke:#ddd}.valid{fill:#3b6ea5}.data{fill:#f4e3b2;stroke:#998}"
        ".idle{fill:#f7f7f7;stroke:#ccc}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
            f"<style>{style}</style>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *grid,
            *rows,
            "</svg>\n",
        ]
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "pictures" / "eight-bytes.svg"
    )
    args = parser.parse_args(argv)
    program = build(
        "node_pair",
        "rtl/bench/node_pair.f",
        ROOT / "rtl" / "bench" / "node_bench.cc",
        OUT / "node_bench_trace",
        ["-CFLAGS", "-DVELO_DATA_WIDTH=32", "--trace-vcd", "--trace-depth", "1"],
    )
    vcd = OUT / "message.vcd"
    subprocess.run([program, "1", "1", str(vcd)], check=True)
    changes = read_vcd(vcd, {"stage_o", CABLE_KIND, *(name for name, *_ in DATA)})
    args.output.write_text(draw(changes), encoding="utf-8")
    print(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
