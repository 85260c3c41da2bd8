# SPDX-License-Identifier: Apache-2.0
"""`velo trace --otf2`: an archive as OTF2's own reader sees it."""

import importlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from test_trace import MESSAGES, OPERATIONS, write

from velo import cli
from velo.cluster import archive, otf2_package

# As otf2-print has them: event, location, time, what is told.
LINE = re.compile(r"^([A-Z_]+) +(\d+) +(\d+)  (.*)$", re.M)
# Contexts of the recording that those messages and operations are about, in order.
RANKS = ["0.1", "1.2", "2.1", "3.1", "3.2"]


def printed(folder: Path, *options: str) -> str:
    """Global definitions, or events."""
    command = ["otf2-print", *options, str(folder / "traces.otf2")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    recording = write(tmp_path / "run.rec")
    made = tmp_path / "archive"
    assert cli.main(["trace", str(recording), "--otf2", str(made)]) == 0
    assert not (tmp_path / "run.html").exists()
    return made


def events(folder: Path) -> list[tuple[str, str, int, str]]:
    return [(a, RANKS[int(b)], int(c), d) for a, b, c, d in LINE.findall(printed(folder))]


def test_each_context_is_a_location_of_its_node(folder: Path) -> None:
    text = printed(folder, "-G")
    assert re.findall(r'^LOCATION +\d+  Name: "(.*?)"', text, re.M) == RANKS
    assert "Ticks per Seconds: 1000000000000," in text
    assert 'Name: "context 2 of node 3"' in text and '"node::node 3"' in text
    assert "INVALID" not in text and "INVALID" not in printed(folder)


def test_each_message_is_sent_and_received_at_its_times(folder: Path) -> None:
    sends, receives = Counter[str](), Counter[str]()
    for _, a, b, c, d, tag, size, stored, _, _, published in MESSAGES:
        ends = (RANKS.index(f"{a}.{b}"), RANKS.index(f"{c}.{d}"))
        told = f"Tag: {tag}, Length: {size}"
        sends[f"{stored} {ends[0]} to {ends[1]} {told}"] += 1
        receives[f"{published} {ends[0]} to {ends[1]} {told}"] += 1
    seen: dict[str, Counter[str]] = {"MPI_SEND": Counter(), "MPI_RECV": Counter()}
    for name, location, time, told in events(folder):
        if name not in seen:
            continue
        other = int(re.match(r"(?:Receiver|Sender): (\d+)", told)[1])  # type: ignore[index]
        rank = RANKS.index(location)
        ends = (rank, other) if name == "MPI_SEND" else (other, rank)
        seen[name][f"{time} {ends[0]} to {ends[1]} {told[told.index('Tag:') :]}"] += 1
    assert seen == {"MPI_SEND": sends, "MPI_RECV": receives}


def test_regions_are_nested_and_a_send_ends_before_the_next_begins(folder: Path) -> None:
    for location in RANKS:
        own = [event for event in events(folder) if event[1] == location]
        assert [event[2] for event in own] == sorted(event[2] for event in own)
        open_regions: list[str] = []
        for name, _, _, told in own:
            region = told.removeprefix('Region: "').split('"')[0]
            if name == "ENTER":
                open_regions.append(region)
            elif name == "LEAVE":
                assert open_regions.pop() == region
            elif name == "MPI_SEND":
                assert open_regions == ["context", "send"]
            else:
                assert open_regions == ["context"], name
        assert not open_regions
    ends = [e[2] for e in events(folder) if e[0] == "LEAVE" and '"send"' in e[3] and e[1] == "0.1"]
    # A get is posted as soon as the first is stored, and another before the node has the second.
    assert ends == [1_000_000, 1_100_000, 8_140_000], ends


def test_operations_are_those_of_a_window(folder: Path) -> None:
    names = {1: "RMA_PUT", 2: "RMA_GET"}
    seen = [(e[0], e[1], e[2]) for e in events(folder) if e[0] in names.values()]
    expected = [(names[o[5]], f"{o[1]}.{o[2]}", o[9]) for o in OPERATIONS]
    assert sorted(seen) == sorted(expected)
    ends = [(e[1], e[2]) for e in events(folder) if e[0] == "RMA_OP_COMPLETE_NON_BLOCKING"]
    # The third is never notified.
    assert sorted(ends) == [("0.1", 4_100_000), ("0.1", 30_000_000)]
    assert "Bytes: 4096" in printed(folder)


def test_each_operation_is_written(tmp_path: Path) -> None:
    names = {1: "PUT", 2: "GET", 3: "PUT", 4: "ATOMIC", 5: "PUT"}
    kind = OPERATIONS[0][0]
    operations = [(kind, 0, 1, 1, 2, op, 0, 0, 8, 100 * op, 100 * op, 1000 * op) for op in names]
    recording = write(tmp_path / "run.rec", operations=operations)
    assert cli.main(["trace", str(recording), "--otf2", str(tmp_path / "a")]) == 0
    seen = [(e[0], e[2]) for e in LINE.findall(printed(tmp_path / "a")) if e[0].startswith("RMA_")]
    posted = [(f"RMA_{name}", str(100 * op)) for op, name in names.items()]
    ended = [("RMA_OP_COMPLETE_NON_BLOCKING", str(1000 * op)) for op in names]
    assert sorted(seen) == sorted(posted + ended)
    assert "Type: FETCH_AND_ADD" in printed(tmp_path / "a")


def test_an_archive_goes_into_a_new_folder(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = printed(folder)
    assert cli.main(["trace", str(tmp_path / "run.rec"), "--otf2", str(folder)]) == 1
    assert "an archive goes into a new folder" in capsys.readouterr().err
    assert printed(folder) == before
    nowhere = str(tmp_path / "nowhere" / "x")
    assert cli.main(["trace", str(tmp_path / "run.rec"), "--otf2", nowhere]) == 1
    assert nowhere in capsys.readouterr().err


def test_an_archive_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        otf2 = importlib.import_module("_otf2")
        raise otf2.Error(otf2.ErrorCode(86))

    monkeypatch.setattr(archive, "_with_regions", fail)
    recording = write(tmp_path / "run.rec")
    assert cli.main(["trace", str(recording), "--otf2", str(tmp_path / "a")]) == 1
    assert "cannot be written: PROCESSED_WITH_FAULTS" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(otf2_package, "SYSTEM_PACKAGES", "/nonexistent")
    for name in [name for name in sys.modules if name.split(".")[0] in {"otf2", "_otf2"}]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if "dist-packages" not in p])
    recording = write(tmp_path / "run.rec")
    assert cli.main(["trace", str(recording), "--otf2", str(tmp_path / "a")]) == 1
    assert "apt-get install python3-otf2" in capsys.readouterr().err
