# SPDX-License-Identifier: Apache-2.0
"""Profiles of hosts: those that there are, what is refused, and what a run is told of one."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from generators import hostgen
from velo import cli
from velo.cluster import description, grid, job, profiles, routing
from velo.cluster.host import CONSTANTS
from velo.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
BOARD = ROOT / "rtl" / "dimmnet_board"
ALL = "".join(f'[{name}]\nns = {n}\nsource = "assumed"\n' for n, name in enumerate(CONSTANTS))
WHAT = 'what = "a server"\n'


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / "ours.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def planned(*words: str) -> job.Job:
    return job.plan(cli.build_parser().parse_args(["sim", *words, "--", "true"]))


def test_every_profile_is_whole_and_the_default_is_what_it_was() -> None:
    names = profiles.known()
    assert names[0] == profiles.DEFAULT and len(names) == 7
    # Recorded hashes are of these times.
    assert profiles.find(profiles.DEFAULT).ns == {
        "store": 110, "dma": 110, "read": 220, "poll": 30, "clock": 20, "copy": 10, "call": 20,
    }  # fmt: skip
    for name in names:
        profile = profiles.find(name)
        assert tuple(profile.constants) == CONSTANTS
        # Only times that somebody measured or assumed: no other profile is chosen to give a result.
        assert bool(profile.fitted_to) == (name == profiles.DEFAULT), name


def test_the_host_of_the_180_ns_has_them_there_and_back() -> None:
    ns = profiles.find("opteron-ht400").ns
    assert (ns["store"], ns["dma"], ns["read"]) == (90, 90, 180)


def test_the_memory_slots_times_are_those_of_the_pc_before_a_board() -> None:
    pc = runpy.run_path(str(BOARD / "host" / "pc2003.py"))
    dram = runpy.run_path(str(BOARD / "dram" / "ddr200.py"))
    clock, cycles = dram["CLOCK_NS"], dram["cycles"]()
    line = pc["LINE_BYTES"] // 16 * clock  # 64 bits, two a clock
    ask = pc["MISS_NS"] + pc["FSB_REQUEST_NS"] + pc["CHIPSET_NS"] + cycles["cl"] * clock
    read = ask + clock + pc["CHIPSET_NS"] + pc["FSB_PARTIAL_NS"] + pc["FILL_NS"]
    load = ask + line + pc["CHIPSET_NS"] + pc["FSB_LINE_NS"] + pc["FILL_NS"]
    store = (
        pc["FSB_REQUEST_NS"] + pc["FSB_LINE_NS"] + pc["CHIPSET_NS"] + cycles["wl"] * clock + line
    )
    assert profiles.find("dimm-pc1600").ns == {
        "store": round(store),
        "dma": 0,
        "read": round(read),
        "poll": round(read + pc["POLL_NS"]),
        "clock": 20,
        "copy": round((8 * pc["STORE_NS"] + load) / 2),
        "call": round(pc["CALL_NS"]),
    }


def test_a_file_of_ones_own_is_a_host(file: Any) -> None:
    profile = profiles.find(file(WHAT + 'fitted_to = "a result"\n' + ALL))
    assert (profile.name, profile.what, profile.fitted_to) == ("ours", "a server", "a result")
    assert profile.ns == {name: n for n, name in enumerate(CONSTANTS)}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ALL, "what = says in one line"),
        (WHAT + ALL + "[gap]\nns = 1", "a host has no 'gap'; known are what, fitted_to, store"),
        (WHAT + "[store]\nns = 1\nsource = 'x'\n", "dma is missing; a host has all of store, dma"),
        (WHAT + "store = 110\n", "store is a table with ns = and source ="),
        (WHAT + ALL.replace("ns = 0", "ns = -1"), "store.ns is -1; give whole nanoseconds"),
        (WHAT + ALL.replace("ns = 0", "ns = true"), "store.ns is True"),
        (WHAT + ALL.replace("ns = 0", "ns = 1.5"), "store.ns is 1.5"),
        (WHAT + ALL.replace("ns = 0\n", ""), "store.ns is missing"),
        (WHAT + ALL.replace('source = "assumed"\n', "", 1), "store has no source: name the paper"),
        (WHAT + ALL.replace('"assumed"', '" "', 1), "store has no source"),
        (WHAT + ALL.replace("ns = 0", "nanoseconds = 0"), "store has no 'nanoseconds'"),
        (WHAT + "fitted_to = 3\n" + ALL, "fitted_to = names a result"),
        ("what", "Expected '='"),
    ],
)
def test_a_bad_file_is_refused(file: Any, text: str, why: str) -> None:
    with pytest.raises(UsageError) as error:
        profiles.find(file(text))
    assert why in str(error.value) and "ours.toml" in str(error.value)


def test_a_host_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no host 'opteron'; there are ht200-fitted, "):
        profiles.find("opteron")
    with pytest.raises(UsageError, match="No such file"):
        profiles.find(str(tmp_path / "none.toml"))


def test_a_run_is_told_its_times_and_their_name() -> None:
    words = planned("--host", "opteron-ht400", "--host-ns", "poll=5").cluster.options()
    assert words[2:] == [
        "--store-ns", "90", "--dma-ns", "90", "--read-ns", "180", "--poll-ns", "5",
        "--clock-ns", "20", "--copy-ns", "10", "--call-ns", "20",
        "--host", "opteron-ht400 with poll=5",
    ]  # fmt: skip
    # The default is the simulator's own.
    assert planned().cluster.options() == ["--clock-mhz", "100"]


def test_a_clusters_file_names_its_host_and_the_command_line_comes_first(
    file: Any, tmp_path: Path
) -> None:
    file(WHAT + ALL)
    cluster = tmp_path / "cluster.toml"
    cluster.write_text('host = "ours.toml"\n[host_ns]\ncall = 9\n', encoding="utf-8")
    described = description.make(None, str(cluster), {})
    assert described.network == routing.build("full", "2")
    assert described.host_text == "ours with call=9"
    described = description.make(None, str(cluster), {"host": "pcie-gen3"})
    assert described.host_text == "pcie-gen3 with call=9"


def test_a_grid_keeps_the_host() -> None:
    args = cli.build_parser().parse_args(
        ["what-if", "-n", "2", "--host", "pcie-gen5", "--latency", "1", "--", "true"]
    )
    base = grid.Base.of(args, job.plan(args))
    assert "--host pcie-gen5" in base.command(grid.Point(0, None, 400e6))


def test_boards_have_their_own_pc() -> None:
    with pytest.raises(UsageError, match="a board of DIMMnet-2 has its own PC"):
        planned("--dimmnet", "2", "--host", "dimm-pc1600")


def test_hosts_are_listed_with_their_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sim", "--hosts"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("ht200-fitted (default): the VELO paper's Opteron")
    for name in profiles.known():
        assert f"\n{name}" in f"\n{said}"
    assert "  read    180 ns  A Case for FPGA, III.B: about 180 ns" in said


def test_the_reference_has_all_hosts() -> None:
    page = (ROOT / "docs" / "reference" / "simulator.md").read_text(encoding="utf-8")
    assert profiles.reference() in page


def test_options_say_what_the_default_is() -> None:
    action = next(
        a for a in cli.build_parser()._subparsers._group_actions[0].choices["sim"]._actions  # type: ignore
        if "--host" in a.option_strings
    )  # fmt: skip
    assert f"(default: {profiles.DEFAULT})" in (action.help or "")


def test_the_simulators_own_times_are_the_defaults() -> None:
    text = hostgen.header(profiles.find(profiles.DEFAULT))
    assert 'kHostName = "ht200-fitted";' in text and "kHostReadNs = 220;" in text
