#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""velo-tlm as its user sees it: workloads, traces, sizes, repeatability, refusals.

test_program.py VELO-TLM
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ""
WORKLOADS = ("uniform", "neighbour", "transpose", "complement", "hotspot", "alltoall")


def start(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def results(*arguments: str | Path) -> list[dict[str, Any]]:
    done = start(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["results"]
    for row in rows:
        del row["simulation"]
    return rows


class Traces(unittest.TestCase):
    def run_trace(self, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace"
            path.write_text(text, encoding="utf-8")
            return start(*arguments, "--trace", path, "--json")

    def measure(self, text: str, *arguments: str) -> dict[str, Any]:
        done = self.run_trace(text, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["results"][0]

    def test_one_message_takes_what_the_rtl_takes(self) -> None:
        row = self.measure("# a comment\n\n16000 0 1 8\n", "ring:4", "--clock-mhz", "125")
        self.assertEqual(row["messages"], 1)
        self.assertEqual(row["latency"]["max"], {"cycles": 28.0, "ns": 224.0})

    def test_order_of_lines_does_not_matter(self) -> None:
        lines = [f"{1000 * (i % 37)} {i % 8} {(i * 5 + 1) % 8} {i % 57}\n" for i in range(500)]
        row = self.measure("".join(sorted(lines)), "hypercube:3")
        self.assertEqual(row["messages"], 500)

    def test_long_messages_are_cut_and_whole(self) -> None:
        row = self.measure("0 0 3 100000\n0 3 0 57\n900000000000 1 1 8\n", "torus:4x4")
        self.assertEqual(row["messages"], 3)
        # 112 words of data in a packet of 120 words; start, end and three idle words of two cycles.
        self.assertGreater(row["latency"]["max"]["cycles"], 100000 / 4 * 128 / 112)
        self.assertLess(row["latency"]["max"]["cycles"], 100000 / 4 * 128 / 112 * 1.1)

    def test_refused(self) -> None:
        for text in ("0 0 9 8\n", "0 9 0 8\n", "0 0 1\n", "0 0 1 8 9\n", "x\n", "0 0 1 -8\n"):
            done = self.run_trace("0 0 1 8\n" + text, "ring:4")
            self.assertEqual(done.returncode, 1, text)
            self.assertIn("line 2", done.stderr)
        self.assertEqual(start("ring:4", "--trace", "/nowhere/at/all").returncode, 1)


class Congestion(unittest.TestCase):
    VICTIMS = ("--workload", "victim", "--victims", "4", "--load", "0.15")

    def victims(
        self, *arguments: str, topology: str = "torus:4x4x4"
    ) -> dict[tuple[bool, bool], dict[str, Any]]:
        done = start(topology, *self.VICTIMS, *arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["results"]
        return {(row["managed"], row["hot_spot"]): row for row in rows}

    def test_victims_keep_their_rate(self) -> None:
        for seed in ("2", "3", "5"):
            rows = self.victims("--warm-up", "200000", "--cycles", "30000", "--seed", seed)
            unmanaged, managed = rows[False, True], rows[True, True]
            self.assertLess(unmanaged["least_share"], 0.5, seed)
            self.assertGreater(managed["share"], 0.95, seed)
            self.assertGreater(managed["least_share"], 0.9, seed)
            self.assertGreater(managed["hot"], 0.8, seed)
            self.assertGreater(managed["notices"], 0, seed)
            self.assertEqual(unmanaged["notices"], 0, seed)
            # Alone they lose nothing by it.
            self.assertEqual(rows[False, False]["victims"], rows[True, False]["victims"])

    def test_a_hot_node_keeps_its_rate(self) -> None:
        """Eight nodes, few senders, a slow host, one that stands still for a while."""
        flow = ("--from", "2", "--to", "1", "--warm-up", "100000", "--cycles", "100000")
        for senders in ("1", "3", "6"):
            for pace in ("4", "8"):
                for more in ((), ("--stop", "20000"), ("--bytes", "56")):
                    case = (*flow, "--senders", senders, "--pace", pace, *more)
                    rows = self.victims(*case, topology="ring:8")
                    unmanaged, managed = rows[False, True], rows[True, True]
                    self.assertAlmostEqual(unmanaged["hot"], 1 / int(pace), delta=0.01, msg=case)
                    self.assertGreater(managed["hot"], 0.8 * unmanaged["hot"], case)
                    self.assertGreater(managed["share"], 0.9, case)
                    if senders == "6":
                        self.assertLess(unmanaged["share"], 0.5, case)

    def test_the_defaults_are_the_hardware_s(self) -> None:
        done = start("ring:8", *self.VICTIMS[:2], "--victims", "1", "--load", "0.1", "--json")
        params = json.loads(done.stdout)["congestion"]
        registers = (ROOT / "spec" / "velo_regs.rdl").read_text(encoding="utf-8")
        for name in ("mark_cycles", "notice_cycles", "increase", "recover_cycles"):
            default = re.search(rf"\b{name}\[\d+:\d+\] = (\d+);", registers)
            assert default, name
            self.assertEqual(params[name], int(default[1]), name)
        package = ROOT / "rtl" / "congestion" / "rtl" / "velo_congestion_pkg.sv"
        units = re.search(r"RaiseUnits = (\d+);", package.read_text(encoding="utf-8"))
        assert units
        self.assertEqual(params["raise_units"], int(units[1]))

    def test_off_by_default(self) -> None:
        arguments = ("torus:4x4", "--workload", "hotspot", "--load", "0.5", "--warm-up", "0")
        plain = results(*arguments)
        self.assertEqual(plain, results(*arguments, "--mark-cycles", "1", "--increase", "15"))
        managed = results(*arguments, "--congestion")
        self.assertGreater(managed[0]["congestion"]["notices"], 0)

    def test_uniform_traffic_loses_nothing(self) -> None:
        for load in ("0.3", "0.6"):
            plain = results("torus:4x4x4", "--load", load)[0]
            managed = results("torus:4x4x4", "--load", load, "--congestion")[0]
            self.assertAlmostEqual(managed["accepted"], plain["accepted"], delta=0.01)

    def test_refused(self) -> None:
        for arguments in (
            ("--workload", "victim", "--saturation"),
            ("--workload", "victim", "--victims", "100"),
            ("--workload", "victim", "--hot-node", "64"),
            ("--workload", "victim", "--from", "2"),
            ("--workload", "victim", "--from", "2", "--to", "0"),
            ("--workload", "victim", "--pace", "0"),
            ("--increase", "16"),
            ("--mark-cycles", "0"),
        ):
            self.assertNotEqual(start("torus:4x4", *arguments).returncode, 0, arguments)


class Program(unittest.TestCase):
    def test_all_that_is_offered_arrives(self) -> None:
        for topology in ("torus:4x4x4", "mesh:8x8", "ring:16", "hypercube:6", "full:8"):
            for workload in WORKLOADS:
                arguments = ["--workload", workload, "--load", "0.05", "--cycles", "20000"]
                arguments += ["--hot-share", "0.05"]
                row = results(topology, *arguments)[0]
                if workload == "transpose":  # nodes on the diagonal are silent
                    self.assertGreater(row["accepted"], 0.02)
                else:
                    self.assertAlmostEqual(
                        row["accepted"], 0.05, delta=0.005, msg=f"{topology} {workload}"
                    )

    def test_no_deadlock_when_overloaded(self) -> None:
        for topology in ("torus:8x8", "torus:5x4x3", "ring:15", "ring:16", "hypercube:8"):
            for workload in ("uniform", "hotspot", "complement"):
                row = results(topology, "--workload", workload, "--saturation")[0]
                self.assertGreater(row["accepted"], 0.004, f"{topology} {workload}")

    def test_same_seed_same_result(self) -> None:
        arguments = ["torus:8x8x8", "--load", "0.2", "--cycles", "3000", "--seed"]
        self.assertEqual(results(*arguments, "7"), results(*arguments, "7"))
        self.assertNotEqual(results(*arguments, "7"), results(*arguments, "8"))

    def test_neighbours_saturate_their_links(self) -> None:
        # In a ring of two each node has one link in use, of 4 words in 6.
        row = results("ring:2", "--saturation")[0]
        self.assertAlmostEqual(row["accepted"], 4 / 6, delta=0.01)
        self.assertAlmostEqual(row["link_use"]["max"], 1, delta=0.01)

    def test_sizes(self) -> None:
        for topology in ("torus:16x16x16", "hypercube:12", "mesh:64x64", "full:64"):
            row = results(topology, "--load", "0.01", "--warm-up", "200", "--cycles", "1000")[0]
            self.assertGreater(row["messages"], 0)

    def test_sweep_ends_with_saturation(self) -> None:
        rows = results("torus:4x4", "--sweep", "0.2:0.6:0.2", "--cycles", "5000")
        self.assertEqual([round(row["offered"], 3) for row in rows], [0.2, 0.4, 0.6, 2.0])
        means = [row["latency"]["mean"]["cycles"] for row in rows]
        self.assertEqual(means, sorted(means))

    def test_heat_map(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "map.json"
            done = start("mesh:4x4", "--workload", "hotspot", "--heatmap", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            links = json.loads(path.read_text(encoding="utf-8"))["links"]
        self.assertEqual(len(links), 48)
        hottest = max(links, key=lambda link: link["use"])
        self.assertEqual(hottest["to"], 0)

    def test_refused(self) -> None:
        for topology in (
            "torus",
            "torus:",
            "torus:1x4",
            "torus:17x16x16",
            "mesh:4x",
            "ring:4x4",
            "hypercube:13",
            "full:65",
            "tree:4",
            "torus:99999999999",
        ):
            done = start(topology)
            self.assertEqual(done.returncode, 1, topology)
            self.assertTrue(done.stderr.startswith("velo-tlm: "), done.stderr)
        for arguments in (
            ["--workload", "none"],
            ["--load", "0"],
            ["--sweep", "1:0:1"],
            ["--hot-node", "4"],
            ["--bytes", "-1"],
            ["--clock-mhz", "0"],
        ):
            self.assertNotEqual(start("ring:4", *arguments).returncode, 0, arguments)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
