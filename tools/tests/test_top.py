# SPDX-License-Identifier: Apache-2.0
"""`velo top` and `velo info` over a stand-in for velo-info."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from velo.cli import main
from velo.display import paint, plain
from velo.runtime import tables
from velo.runtime.ports import rates

CONNECTIONS = {"shm": {"in": ["0.2", "0.2"], "out": ["0.2"]}, "loop": {"out": ["3.1"]}}


def port(vpid: int, rx_msgs: int, pid: int = 100, alive: bool = True) -> dict[str, Any]:
    counters = dict.fromkeys(
        ("rx_msgs", "rx_bytes", "rx_doorbells", "rx_sleeps", "rx_errors", "rx_conns",
         "rx_reclaimed", "tx_msgs", "tx_bytes", "tx_again", "tx_sleeps", "tx_conns"), 0,
    )  # fmt: skip
    counters |= {"rx_msgs": rx_msgs, "rx_bytes": 8 * rx_msgs}
    return {"id": vpid, "node": 0, "vpid": vpid, "pid": pid, "alive": alive, "counters": counters,
            "connections": CONNECTIONS if alive else {},
            "memory_bytes": 123_000, "kept_bytes": 70_000, "kept_bound_bytes": 64_000}  # fmt: skip


def look(time_ns: int, *ports: dict[str, Any]) -> dict[str, Any]:
    return {
        "engine": "native",
        "version": "1.0.0 abi 1",
        "spec_hash": "00ff",
        "time_ns": time_ns,
        "domain": "tested",
        "machine": {"cpus": [0, 1], "cache_line_bytes": 64, "membarrier": True,
                    "shm_dir": "/dev/shm", "shm_size_bytes": 1 << 30, "shm_free_bytes": 1 << 29},
        "copies": {"by": "string", "long_bytes": 5120, "reason": "fsrm",
                   "path": "measured", "path_bytes": 1 << 20},
        "ports": list(ports),
        "rings": [],
    }  # fmt: skip


@pytest.fixture
def fake_info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """velo-info that finds one live and one dead port, and 1,000 messages more at each look."""
    looks = [look(i * 500_000_000, port(0, 1000 * i), port(7, 5, alive=False)) for i in (1, 2)]
    once = json.dumps(looks[0])
    program = tmp_path / "velo-info"
    program.write_text(
        f"#!{sys.executable}\nimport sys, time\n"
        f"lines = {[json.dumps(x) for x in looks]!r}\n"
        "if 'bad/name' in sys.argv:\n"
        "    sys.exit('velo-info: the domain name may hold only letters')\n"
        "if '--watch-ms' not in sys.argv:\n"
        f"    print({once!r})\n"
        "    sys.exit()\n"
        "for line in lines:\n"
        "    print(line, flush=True)\n"
        "time.sleep(100)\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("VELO_LIBEXEC", str(tmp_path))


def test_rates_are_what_the_counters_grew_by_in_a_second() -> None:
    found = rates(look(0, port(0, 100)), look(500_000_000, port(0, 1100)))
    assert found == {0: {"rx_msgs": 2000, "rx_bytes": 16000, "tx_msgs": 0, "tx_bytes": 0}}


def test_a_port_that_was_opened_anew_has_no_rate() -> None:
    assert rates(look(0, port(0, 100)), look(1, port(0, 200, pid=101))) == {}
    assert rates(look(0, port(0, 100)), look(1, port(0, 50))) == {}
    assert rates(look(0), look(1, port(0, 50))) == {}


def test_once_prints_one_table_with_rates_and_ends(
    fake_info: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", "--once", "--domain", "tested"]) == 0
    text = capsys.readouterr().out
    assert "domain tested: 2 ports, 1 dead, 2.00 k/s received" in text
    live, dead = (line for line in text.splitlines() if line.lstrip().startswith("0."))
    assert live.split()[:8] == ["0.0", "100", "0", "0", "shm,", "loop", "2.0k", "16.0k"]
    assert dead.split()[:5] == ["0.7", "dead", "0", "0", "–"]


@pytest.mark.parametrize("command", [["info"], ["top", "--once"]])
def test_each_peer_is_listed_with_what_reaches_it(
    fake_info: None, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([*command, "--peers"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["0.0", "shm", "0.2×2", "0.2"] in rows
    assert ["0.0", "loop", "–", "3.1"] in rows
    assert main(command) == 0
    assert "3.1" not in capsys.readouterr().out


def test_info_tells_facts_and_ports(fake_info: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert "1.0.0 abi 1" in text
    assert "512 of 1,024 MiB free" in text
    assert "tested, 2 ports" in text
    assert "from 5,120 bytes on the processor's string moves (fsrm)" in text
    assert "from 1,048,576 bytes on copied or fetched, as each receiver measures it" in text


@pytest.mark.parametrize(
    ("copies", "rows"),
    [
        (
            {"by": "lines", "long_bytes": None, "reason": "VELO_COPY",
             "path": "copy", "path_bytes": 0},
            [("copies", "line by line (VELO_COPY)"), ("long messages", "copied piece by piece")],
        ),
        (
            {"by": "libc", "long_bytes": 6144, "reason": "none", "path": "get", "path_bytes": 9},
            [("copies", "line by line, from 6,144 bytes on the C library's memcpy() (none)"),
             ("long messages", "copied piece by piece, from 9 bytes on fetched in one copy")],
        ),
    ],
)  # fmt: skip
def test_info_tells_how_payloads_move(copies: dict[str, Any], rows: list[tuple[str, str]]) -> None:
    table = tables.facts_table(look(0) | {"copies": copies})
    found = {plain(name): value for name, value in table.rows}
    assert dict(rows).items() <= found.items()


def test_info_as_json_is_what_the_program_said(
    fake_info: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["domain"] == "tested"


@pytest.mark.parametrize("command", [["info"], ["top", "--once"]])
def test_the_program_s_complaint_is_passed_on(
    fake_info: None, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([*command, "--domain", "bad/name"]) == 1
    assert "may hold only letters" in capsys.readouterr().err


def test_kept_memory_beyond_its_bound_is_marked() -> None:
    over, within = port(0, 1), port(1, 1) | {"kept_bytes": 60_000}
    assert tables.kept(over) == paint("70.0k", "red")
    assert tables.kept(within) == "60.0k"


def ring(vpid: int, **changed: Any) -> dict[str, Any]:
    return {"id": vpid, "node": 0, "vpid": vpid, "pid": 100, "alive": True, "drops": False,
            "depth_slots": 16, "msg_bytes_max": 4096, "readers": 2, "readers_max": 4,
            "msgs": 12_345, "behind_msgs": 3, "memory_bytes": 123_000} | changed  # fmt: skip


def test_rings_are_shown_with_their_readers() -> None:
    full = ring(1, behind_msgs=16, drops=True)
    found = look(0) | {"rings": [ring(0), full, ring(2, alive=False)]}
    first, second, dead = tables.rings_table(found).rows
    assert list(first) == ["0.0", "100", "2 of 4", "hold it up", "12.3k", "3", "16", "123k"]
    assert list(second[3:6]) == ["miss messages", "12.3k", paint("16", "red")]
    assert dead[1] == "dead"
    screen = tables.screen(found, {})
    assert screen[0] == "domain tested: 3 rings, 1 dead"
    facts = {plain(name): value for name, value in tables.facts_table(found).rows}
    assert facts["domain"] == "tested, no port open, 3 rings"


def test_ports_and_rings_are_shown_one_below_the_other() -> None:
    screen = tables.screen(look(0, port(0, 1)) | {"rings": [ring(0)]}, {})
    heads = [line for line in screen if isinstance(line, str) and line.startswith("domain")]
    assert heads == [
        "domain tested: 1 port, 0 dead, 0.00 /s received",
        "domain tested: 1 ring, 0 dead",
    ]
    assert tables.screen(look(0), {}) == ["domain tested: no port open"]


def test_ctrl_c_is_how_it_ends(fake_info: None) -> None:
    env = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    argv = [sys.executable, "-m", "velo", "top", "--domain", "tested"]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as top:
        assert top.stdout and top.stderr
        assert b"domain tested" in top.stdout.readline()
        top.send_signal(signal.SIGINT)
        assert top.wait(10) == 0
        assert top.stderr.read() == b""
