# SPDX-License-Identifier: Apache-2.0
import pytest

from velo import units
from velo.errors import UsageError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.50 ns"),
        (52.14, "52.1 ns"),
        (99.96, "100 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 µs"),
        (1370, "1.37 µs"),
        (2.5e6, "2.50 ms"),
        (3e9, "3.00 s"),
    ],
)
def test_times_have_three_digits_and_the_right_unit(value: float, text: str) -> None:
    assert units.time_ns(value) == text


def test_rates_and_bandwidths_are_decimal() -> None:
    assert units.rate(41.2e6) == "41.2 M/s"
    assert units.bandwidth(12_345_000_000) == "12.3 GB/s"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (8, "8 B"),
        (1024, "1 KiB"),
        (4097, "4097 B"),
        (4096, "4 KiB"),
        (1 << 20, "1 MiB"),
    ],
)
def test_sizes_never_hide_an_off_by_one(size_bytes: int, text: str) -> None:
    assert units.size(size_bytes) == text


@pytest.mark.parametrize("value", [0, 7, 999, 1000, 25_900_000, 999_960, 123_456_789_012])
def test_short_counts_take_at_most_five_characters(value: float) -> None:
    assert len(units.short(value)) <= 5


def test_sizes_are_parsed_sorted_and_each_once() -> None:
    assert units.parse_sizes("4k,8, 64,8,1MiB") == [8, 64, 4096, 1 << 20]


@pytest.mark.parametrize("text", ["", "8,", "x", "-1", "8.5", "1G", "99999999999", "0x10"])
def test_bad_sizes_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"size|list"):
        units.parse_sizes(text)


@pytest.mark.parametrize("text", ["0", "-3", "4097", "two", ""])
def test_bad_counts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="whole number"):
        units.parse_count(text)


def test_cpu_lists_keep_their_order() -> None:
    assert units.parse_cpus("3,0-1,1") == [3, 0, 1]


@pytest.mark.parametrize("text", ["", "1-", "2-1", "a", "0,,1"])
def test_bad_cpu_lists_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="CPU"):
        units.parse_cpus(text)
