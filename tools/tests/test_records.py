# SPDX-License-Identifier: Apache-2.0
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up import RUN, result

from velo.errors import VeloError
from velo.results import records
from velo.results.records import Record, RecordError, Sample, summarize

MINIMAL = {
    "metric": "half_rtt_ns",
    "size_bytes": 8,
    "pairs": 1,
    "value": 50.0,
    "limit": 45.0,
    "ratio": 1.11,
    "min": 48.0,
    "max": 60.0,
}


def sample(value: float, before: float, after: float, hop: str | None = "near") -> Sample:
    return Sample("latency", "half_rtt_ns", 8, value, before, after, hop, "pingpong")


def test_the_ratio_is_that_of_the_medians() -> None:
    # Medians: value 60, limit 50. The median of the single ratios would be 1.0.
    batches = [sample(30, 30, 30), sample(60, 60, 60), sample(100, 49, 51)]
    (record,) = summarize(batches)
    assert (record.value, record.limit) == (60, 50)
    assert record.ratio == pytest.approx(1.2)
    assert record.ratio_median == pytest.approx(1.0)
    assert (record.min, record.max, record.samples) == (30, 100, 3)


def test_the_limit_of_a_batch_is_the_mean_of_its_two_sides() -> None:
    (record,) = summarize([sample(50, 40, 60)])
    assert record.limit == 50


def test_near_and_far_are_never_mixed_and_moved_batches_are_left_out() -> None:
    found = summarize(
        [sample(50, 45, 45), sample(250, 210, 210, "far"), sample(900, 45, 210, None)]
    )
    assert [(r.hop, r.value, r.samples) for r in found] == [("near", 50, 1), ("far", 250, 1)]


def test_different_things_get_different_records() -> None:
    base = sample(50, 45, 45)
    changes: list[dict[str, Any]] = [
        {"size_bytes": 64},
        {"pairs": 2},
        {"threads": 2},
        {"senders": 64},
        {"processes": 8},
        {"stack": "other"},
        {"metric": "rate_msgs_per_s"},
        {"limit_name": "ring64"},
        {"mode": "rate"},
    ]
    assert len(summarize([base, *(replace(base, **change) for change in changes)])) == 10


def test_records_survive_being_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.json"
    written = result()
    records.save(path, written)
    read = records.load(path)
    assert [r.to_json() for r in read] == [r.to_json() for r in written]
    assert read[0].run == RUN
    assert list(path.parent.iterdir()) == [path]


def test_the_file_has_the_fields_that_the_users_were_promised(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    records.save(path, result())
    for line in json.loads(path.read_text()):
        assert set(MINIMAL) | {"class", "stack", "samples", "machine", "version", "command"} <= set(
            line
        )
        assert line["ratio"] == pytest.approx(line["value"] / line["limit"], rel=1e-4)
        assert line["min"] <= line["value"] <= line["max"]


def test_a_record_of_only_the_promised_fields_is_enough() -> None:
    record = Record.from_json(MINIMAL)
    assert (record.stack, record.hop, record.senders) == ("velo", "near", 1)
    assert math.isnan(record.ratio_q1)
    assert "ratio_q1" not in record.to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": "fast"}, "value is 'fast', expected a number above 0"),
        ({"limit": 0}, "limit is 0, expected a number above 0"),
        ({"min": True}, "min is True"),
        ({"size_bytes": -8}, "size_bytes is -8, expected a whole number"),
        ({"size_bytes": 8.5}, "size_bytes is 8.5"),
        ({"class": "middling"}, "class is 'middling', expected 'near' or 'far'"),
        ({"metric": None}, "metric is missing"),
        ({"extra": [1]}, "extra is \\[1\\], expected an object"),
    ],
)
def test_a_bad_file_is_refused_with_file_record_and_reason(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps([MINIMAL, MINIMAL | change]))
    with pytest.raises(RecordError, match=f"bad.json, record 2: {message}"):
        records.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{}", "no list of records"), ("[1]", "expected an object, found int"), ("[", "not JSON")],
)
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=message):
        records.load(path)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(RecordError, match=r"cannot read /nonexistent/x\.json: No such file"):
        records.load(Path("/nonexistent/x.json"))


def test_a_result_that_cannot_be_written_says_why_and_keeps_the_old_one(tmp_path: Path) -> None:
    folder = tmp_path / "run.json"
    folder.mkdir()
    with pytest.raises(VeloError, match=r"cannot write .*run\.json: Is a directory"):
        records.save(folder, result())
    assert list(tmp_path.iterdir()) == [folder]
