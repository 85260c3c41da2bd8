# SPDX-License-Identifier: Apache-2.0
"""`velo trace`: what it makes of a recording, to the figure."""

import io
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_report import Page

from velo import cli
from velo.cluster import recording, routing, timeline, trace_page
from velo.cluster.recording import (
    END,
    KIND_END,
    KIND_LINK,
    KIND_MESSAGE,
    KIND_OPERATION,
    LINK,
    MESSAGE,
    NEVER,
    OPERATION,
)
from velo.errors import VeloError

CYCLE, DMA, STORE = 10_000, 110_000, 110_000
NETWORK = routing.build("ring", "4")


def message(
    source: tuple[int, int], target: tuple[int, int], stored: int, cycles: int, size: int = 8
) -> tuple[int, ...]:
    """Stored at a time, so many cycles from host port to host port, the first three to get in."""
    offered = stored + STORE
    left = offered + cycles * CYCLE
    return (
        KIND_MESSAGE, *source, *target, 5, size, stored, offered, offered + 3 * CYCLE, left + DMA,
    )  # fmt: skip


def link(node: int, number: int, bucket: int, payload: int, repeated: int = 0) -> tuple[int, ...]:
    start = bucket * 100 * CYCLE
    return (KIND_LINK, node, number, 0, repeated // 6, start, payload, 2 * payload, repeated)


MESSAGES = [
    message((0, 1), (1, 2), 1_000_000, 31),
    message((0, 1), (1, 2), 1_050_000, 33),
    message((3, 2), (1, 2), 1_000_000, 51, 56),
    message((0, 1), (1, 2), 8_000_000, 100),
]
LOST = [(*message((2, 9), (1, 7), 2_000_000, 0)[:-1], NEVER)]
OPERATIONS = [
    (KIND_OPERATION, 0, 1, 1, 2, 2, 9, 0, 4096, 1_000_000, 1_170_000, 30_000_000),
    (KIND_OPERATION, 0, 1, 1, 2, 2, 9, 4, 100, 1_100_000, 1_270_000, 4_100_000),
    (KIND_OPERATION, 2, 1, 3, 1, 1, 0, 0, 8, 7_000_000, 7_170_000, NEVER),
]
LINKS = [link(0, 0, 1, 10), link(0, 0, 8, 20, 12), link(3, 0, 1, 30), link(0, 0, 9, 1)]


def write(
    path: Path,
    messages: list[tuple[int, ...]] = MESSAGES,
    end: bool = True,
    operations: list[tuple[int, ...]] = OPERATIONS,
    **head: Any,
) -> Path:
    cables = [[*a, *b] for a, b in sorted(NETWORK.cables.items())]
    said = {
        "velo_recording": 2,
        "topology": "ring:4",
        "nodes": 4,
        "cables": cables,
        "clock_khz": 100_000,
        "bucket_cycles": 100,
        "cable_cycles": 3,
        "word_bytes": 4,
        "store_ps": STORE,
        "dma_ps": DMA,
        "command": ["mpirun", "velo-rank", "prog", "-x"],
    } | head
    data = json.dumps(said).encode() + b"\n"
    data += np.array(messages + LOST, MESSAGE).tobytes() + np.array(LINKS, LINK).tobytes()
    data += np.array(operations, OPERATION).tobytes()
    if end:
        kind = [KIND_END] + [0] * 7
        data += np.array([(kind, 9_000_000, len(messages), len(LOST), 0)], END).tobytes()
    path.write_bytes(data)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "run.rec")


@pytest.fixture
def run(path: Path) -> recording.Recording:
    return recording.load(path)


def test_a_recording_is_read_as_it_was_written(run: recording.Recording) -> None:
    assert (run.topology, run.nodes, len(run.messages), len(run.lost)) == ("ring:4", 4, 4, 1)
    assert run.cables == NETWORK.cables
    assert (run.network / run.cycle_ps).tolist() == [31, 33, 51, 100]
    assert run.latency.tolist() == [530_000, 550_000, 730_000, 1_220_000]
    assert run.span == (1_000_000, 9_220_000)
    assert run.operations["op"].tolist() == [2, 2, 1]
    assert run.whole


def test_operations_are_those_of_the_specification() -> None:
    spec = tomllib.loads((Path(__file__).parents[2] / "spec" / "velo.toml").read_text())
    (operations,) = (e["values"] for e in spec["enum"] if e["name"] == "rma_op")
    said = {v["value"]: v["name"].replace("_", " ") for v in operations}
    assert said == recording.OPERATION_NAMES


def test_a_part_of_it(run: recording.Recording) -> None:
    part = run.between(1_050_000, 8_000_000)
    assert part.messages["stored"].tolist() == [1_050_000]
    assert len(part.operations) == 2  # Those of 1.1 and 7 µs.
    assert len(part.lost) == 1 and part.links["start"].tolist() == []


def test_percentiles_are_values_that_occurred(run: recording.Recording) -> None:
    found = [trace_page.percentile(run.latency, share) for share in (50, 75, 99)]
    assert found == [550_000, 730_000, 1_220_000]


def test_stages_add_up(run: recording.Recording) -> None:
    rows = {stage.name: stage for stage in trace_page.stages(run)}
    assert rows["to the node"].mean == rows["into memory"].most == "110 ns"
    assert rows["into the node"].p99 == "30.0 ns"
    assert rows["through the network"].mean == "508 ns"  # (31 + 33 + 51 + 100) / 4 - 3 cycles
    assert rows["host port to host port"].mean == "538 ns"
    assert rows["all"].most == "1.22 µs"


def test_operations_by_kind(run: recording.Recording) -> None:
    put, get = trace_page.operation_rows(run)
    assert (get.name, get.count, get.failed, get.size) == ("get", "2", "1", "4,196 B")
    assert (get.mean, get.median, get.most) == ("16.0 µs", "3.00 µs", "29.0 µs")
    # Nobody was told of its end.
    assert (put.name, put.count, put.mean, put.most) == ("put", "1", "–", "–")


def test_links_busiest_first(run: recording.Recording) -> None:
    rows = trace_page.link_rows(run)
    # 822 cycles from the first store to the last arrival.
    assert [row.name for row in rows] == ["0.0 → 1.1", "3.0 → 0.1"]
    assert rows[0].use == f"{100 * (30 + 60 + 12 + 3) / 822:.1f} %"
    assert (rows[0].payload, rows[0].retransmissions) == (f"{100 * 31 / 822:.1f} %", 2)
    assert rows[0].busiest == "72 % at 8 µs"
    assert rows[1].bandwidth == "14.6 MB/s"


def test_heat_is_by_link_and_time(run: recording.Recording) -> None:
    warm = trace_page.heat(run)
    assert warm.names[0] == "0.0 → 1.1" and len(warm.names) == 8
    assert warm.edges_us.tolist() == list(range(1, 11))
    assert warm.use[0].tolist() == [0.3, 0, 0, 0, 0, 0, 0, 0.72, 0.03]
    assert warm.use.sum() == pytest.approx(0.3 + 0.72 + 0.03 + 0.9)


def test_heat_of_a_long_run_takes_buckets_together(tmp_path: Path) -> None:
    late = message((0, 1), (1, 2), 1_000_000_000, 31)
    warm = trace_page.heat(recording.load(write(tmp_path / "long", [*MESSAGES, late])))
    # 1,000 buckets, five in a column.
    assert warm.use.shape == (8, 200)
    assert warm.use[0, :2].tolist() == pytest.approx([0.3 / 5, 0.75 / 5])


def test_the_page_is_whole(run: recording.Recording) -> None:
    text = trace_page.render(run, "run.rec")
    page = Page(text)
    assert "<strong>ring:4</strong>" in text and "prog -x" in text and "mpirun" not in text
    assert len(page.ids) == len(set(page.ids))
    assert "script" not in page.tags and "link" not in page.tags
    assert all(r.startswith(("#", "data:image/png;base64,")) for r in page.references)
    assert ["0.0 → 1.1", "12.8 %"] in [row[:2] for row in page.rows]
    assert "6 links carried nothing" in text
    assert ["get", "2", "1", "4,196 B"] in [row[:4] for row in page.rows]
    assert "ends before" not in text


def perfetto(run: recording.Recording) -> list[dict[str, Any]]:
    file = io.StringIO()
    timeline.write_perfetto(run, file)
    events = json.loads(file.getvalue())["traceEvents"]
    assert isinstance(events, list)
    return events


def test_perfetto_has_two_slices_and_an_arrow_a_message(run: recording.Recording) -> None:
    events = perfetto(run)
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == 8
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names[1000, 0] == "links of ring:4" and names[4, 0] == "node 3"
    out, into = slices[:2]
    assert (out["pid"], out["ts"], out["dur"], out["name"]) == (1, 1.0, 0.14, "8 B to 1.2")
    assert names[1, out["tid"]] == "context 1 sends"
    assert (into["pid"], into["ts"], into["dur"], into["name"]) == (2, 1.42, 0.11, "8 B from 0.1")
    assert names[2, into["tid"]] == "context 2 receives"
    assert out["args"]["latency_ns"] == 530 and out["args"]["taken_ps"] == 1_140_000
    for begin, end in zip(slices[::2], slices[1::2], strict=True):
        assert begin["flow_out"] and end["flow_in"]
        assert begin["bind_id"] == end["bind_id"] and begin["args"] == end["args"]
    assert len({e["bind_id"] for e in slices}) == 4
    began, ended = ([e for e in events if e["ph"] == ph] for ph in "be")
    assert [(e["id2"]["local"], e["name"], e["pid"], e["ts"]) for e in began] == [
        ("0x0", "get of 1.2", 1, 1.0),
        ("0x1", "get of 1.2", 1, 1.1),
        ("0x2", "put of 3.1", 3, 7.0),
    ]
    assert [e["args"]["bytes"] for e in began] == [4096, 100, 8]
    assert [(e["id2"]["local"], e["ts"]) for e in ended] == [
        ("0x0", 30.0),
        ("0x1", 4.1),
        ("0x2", 7.17),
    ]
    counters = [e for e in events if e["ph"] == "C" and e["name"].startswith("0.0 ")]
    assert [e["ts"] for e in counters] == [1, 2, 8, 9, 10]
    assert [e["args"]["payload"] for e in counters] == [10, 0, 20, 1, 0]


def test_slices_of_a_track_never_overlap(tmp_path: Path) -> None:
    """Not even as Perfetto rounds them, each begin and each length to its own ns."""
    # Stores of 6,410 ps each, two at a time; the node has each some time later.
    times = [6_410 * (number // 2) for number in range(200)]
    taken = [time + 110_000 + 6_410 * (number % 7) for number, time in enumerate(times)]
    messages = [
        (1, 0, 1, 1, 2, 0, 8, time, time + 110_000, end, end + 200_640)
        for time, end in zip(times, taken, strict=True)
    ]
    events = perfetto(recording.load(write(tmp_path / "x.rec", messages)))
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == 2 * len(messages)
    ends: dict[tuple[int, int], int] = {}
    begins = set()
    for event in sorted(slices, key=lambda e: e["ts"]):
        track = (event["pid"], event["tid"])
        begin, length = (round(1000 * event[key]) for key in ("ts", "dur"))
        assert begin / 1000 == event["ts"] and length / 1000 == event["dur"]
        assert begin >= ends.get(track, 0) and (track, begin) not in begins
        begins.add((track, begin))
        ends[track] = begin + length
    sent = [e for e in slices if "flow_out" in e]
    assert [e["args"]["stored_ps"] // 1000 / 1000 for e in sent] == [e["ts"] for e in sent]
    # As many as are on their way at once, and no more.
    ways = [(m[7] // 1000, m[9] // 1000) for m in messages]
    at_once = [sum(begin <= time < end for begin, end in ways) for time, _ in ways]
    assert len({e["tid"] for e in sent}) == max(at_once)


def test_the_trace_for_velo_tlm(run: recording.Recording) -> None:
    file = io.StringIO()
    timeline.write_tlm(run, file, "x.trace")
    head, _, *lines = file.getvalue().splitlines()
    assert head == "# velo-tlm ring:4 --clock-mhz 100 --cable-cycles 3 --trace x.trace"
    # Also what was lost crossed the network.
    assert lines == [
        "1105000 0 1 8",
        "1105000 3 1 56",
        "1155000 0 1 8",
        # What a get brings comes from the other side.
        "1165000 1 0 4096",
        "1265000 1 0 100",
        "2105000 2 1 8",
        "7165000 2 3 8",
        "8105000 0 1 8",
    ]


def test_links_that_velo_tlm_does_not_have(tmp_path: Path) -> None:
    wide = recording.load(write(tmp_path / "wide.rec", word_bytes=8))
    assert trace_page.link_rows(wide)[1].bandwidth == "29.2 MB/s"
    with pytest.raises(VeloError, match="links of 32 bits, the recording's have 64"):
        timeline.write_tlm(wide, io.StringIO(), "x.trace")


def test_the_command_writes_what_is_asked_for(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trace", str(path)]) == 0
    said = capsys.readouterr().out
    assert "4 messages, 1 lost; latency p50 550 ns, p99 1.22 µs, max 1.22 µs" in said
    assert "mean 53.75 cycles" in said
    assert "3 operations on remote memory, 4,204 B" in said
    assert (tmp_path / "run.html").is_file()
    (tmp_path / "run.html").unlink()
    outputs = [str(tmp_path / name) for name in ("p.json", "t.trace")]
    words = ["trace", str(path), "--perfetto", outputs[0], "--tlm", outputs[1], "--to-us", "1.01"]
    assert cli.main(words) == 0
    assert Path(outputs[1]).read_text(encoding="utf-8").count("\n") == 5
    assert Path(outputs[0]).is_file() and not (tmp_path / "run.html").exists()
    assert "velo-tlm ring:4" in capsys.readouterr().out


def test_a_recording_without_an_end_is_shown_and_said_to_be_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "cut.rec", end=False)
    path.write_bytes(path.read_bytes() + b"half a record")
    assert cli.main(["trace", str(path)]) == 0
    assert "the recording ends before the run did" in capsys.readouterr().out
    assert "ends before the run did" in (tmp_path / "cut.html").read_text(encoding="utf-8")


def test_what_is_no_recording_is_refused(path: Path, tmp_path: Path) -> None:
    def why(file: Path) -> str:
        with pytest.raises(VeloError) as error:
            recording.load(file)
        return str(error.value)

    other = tmp_path / "other"
    assert "cannot read" in why(tmp_path / "nothing")
    other.write_bytes(b'{"records": []}\n')
    assert "is no recording; velo sim --record" in why(other)
    other.write_bytes(b"\xff\xfe")
    assert "is no recording" in why(other)
    write(other, velo_recording=1)
    assert "of version 1" in why(other)
    other.write_bytes(path.read_bytes()[:-40] + bytes(40))
    assert "records of no known kind" in why(other)
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    other.write_bytes(data[:first] + data[first + 40 :])
    assert "not as many messages" in why(other)


def test_bad_command_lines(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", str(path), "-o", str(path)]) == 2
    assert "is the recording" in capsys.readouterr().err
    assert cli.main(["trace", str(path), "--from-us", "100"]) == 1
    assert "no message that was stored in that time" in capsys.readouterr().err
    assert cli.main(["trace", str(path), "--tlm", "/nonexistent/x"]) == 1
    assert "cannot write /nonexistent/x" in capsys.readouterr().err
