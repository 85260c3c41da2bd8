# SPDX-License-Identifier: Apache-2.0
"""`velo replay`: scripts of archives that OTF2's own writer has made."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from velo import cli, tree
from velo.cluster import replay_script
from velo.cluster.otf2_package import load_otf2

otf2 = load_otf2()
OPS = otf2.CollectiveOp
NOBODY = 0xFFFFFFFF


class Writer:
    """The events of one rank; a tick is a nanosecond."""

    def __init__(self, archive: Any, events: Any, communicators: dict[str, Any]) -> None:
        self.archive, self.events, self.comms = archive, events, communicators
        self.time = 0

    @contextmanager
    def call(self, name: str, paradigm: Any = otf2.Paradigm.MPI, ns: int = 10) -> Iterator[Any]:
        """A region; what it is about comes in the middle."""
        region = self.archive.definitions.region(name, paradigm=paradigm)
        self.events.enter(self.time, region)
        self.time += ns
        yield self.events
        self.time += ns
        self.events.leave(self.time, region)

    def compute(self, ns: int) -> None:
        self.time += ns

    def collective(self, op: Any, comm: str, root: int, sent: int, received: int) -> None:
        with self.call("MPI_" + str(op).rpartition(".")[2].capitalize()) as events:
            events.mpi_collective_begin(self.time)
            events.mpi_collective_end(self.time, op, self.comms[comm], root, sent, received)


Program = Callable[[Writer, int], None]


def write(folder: Path, ranks: int, program: Program) -> str:
    """An archive of what all ranks do. Returns its anchor file."""
    with otf2.writer.open(str(folder), timer_resolution=10**9) as archive:
        tell, kinds = archive.definitions, otf2.GroupType
        node = tell.system_tree_node("machine")
        locations = tuple(
            tell.location(f"{r}", group=tell.location_group(f"{r}", system_tree_parent=node))
            for r in range(ranks)
        )
        mpi = {"paradigm": otf2.Paradigm.MPI}
        tell.group("", group_type=kinds.COMM_LOCATIONS, members=locations, **mpi)
        comms = {
            name: tell.comm(name, group=tell.group(name, group_type=kind, members=members, **mpi))
            for name, kind, members in (
                ("world", kinds.COMM_GROUP, locations),
                ("odd", kinds.COMM_GROUP, locations[1::2]),
                ("self", kinds.COMM_SELF, ()),
            )
        }
        for rank, location in enumerate(locations):
            program(Writer(archive, archive.event_writer_from_location(location), comms), rank)
    return str(folder / "traces.otf2")


@pytest.fixture(autouse=True)
def program_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "find", lambda name: Path("/opt") / name)


def scripts(tmp_path: Path, ranks: int, program: Program) -> list[list[str]]:
    """The lines of each rank's script, without the first."""
    archive = write(tmp_path / "archive", ranks, program)
    assert cli.main(["replay", archive, "-o", str(tmp_path / "scripts")]) == 0
    texts = [
        (tmp_path / "scripts" / f"rank.{rank}").read_text(encoding="utf-8") for rank in range(ranks)
    ]
    for rank, text in enumerate(texts):
        assert text.startswith(f"velo-replay 1 {ranks} {rank} ")
    return [text.splitlines()[1:] for text in texts]


def refusal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: Program, ranks: int = 2
) -> str:
    archive = write(tmp_path / "archive", ranks, program)
    assert cli.main(["replay", archive, "-o", str(tmp_path / "scripts")]) == 1
    assert not (tmp_path / "scripts").exists()
    return capsys.readouterr().err


def test_messages_are_begun_and_end_as_in_the_trace(tmp_path: Path) -> None:
    def program(rank: Writer, number: int) -> None:
        peer, world = 1 - number, rank.comms["world"]
        rank.compute(1000)  # Before MPI begins: of no interest.
        with rank.call("MPI_Init"):
            pass
        rank.compute(500)
        with rank.call("MPI_Irecv") as events:
            events.mpi_irecv_request(rank.time, 77)
        with rank.call("MPI_Isend") as events:
            events.mpi_isend(rank.time, peer, world, 5, 64, 78)
        rank.compute(300)
        with rank.call("MPI_Waitall") as events:
            events.mpi_isend_complete(rank.time, 78)
            events.mpi_irecv(rank.time, peer, world, 5, 64, 77)
        # Both ways at once: a send that waited for its receive first would never end.
        with rank.call("MPI_Sendrecv") as events:
            events.mpi_send(rank.time, peer, world, 9, 100_000)
            events.mpi_recv(rank.time, peer, world, 9, 100_000)

    own, other = scripts(tmp_path, 2, program)
    assert own == [
        "comm 0 1",
        "compute 500",
        "receive 0 0 1 5 64",
        "send 1 0 1 5 64",
        "compute 300",
        "wait 1",
        "wait 0",
        "send 0 0 1 9 100000",
        "receive 1 0 1 9 100000",
        "wait 1",
        "wait 0",
    ]
    assert other == [line.replace("0 1 5", "0 0 5").replace("0 1 9", "0 0 9") for line in own]


def test_time_in_regions_of_others_is_computing(tmp_path: Path) -> None:
    def program(rank: Writer, number: int) -> None:
        with rank.call("main", otf2.Paradigm.COMPILER, 100):
            with rank.call("MPI_Init"):
                pass
            with rank.call("solve", otf2.Paradigm.COMPILER, 100):
                pass
            with rank.call("MPI_Finalize"):
                pass

    assert scripts(tmp_path, 1, program) == [["compute 200", "compute 100"]]


def test_collective_operations_have_the_bytes_of_a_block(tmp_path: Path) -> None:
    """As Score-P tells bytes: all that a rank sends and receives, its own among them."""

    def program(rank: Writer, number: int) -> None:
        is_root = number == 2
        rank.collective(OPS.BARRIER, "world", NOBODY, 0, 0)
        rank.collective(OPS.BCAST, "world", 2, 4 * 70 if is_root else 0, 70)
        rank.collective(OPS.REDUCE, "world", 2, 80, 4 * 80 if is_root else 0)
        # In place the root sends nothing.
        rank.collective(OPS.GATHER, "world", 2, 0 if is_root else 90, 3 * 90 if is_root else 0)
        rank.collective(OPS.SCATTER, "world", 2, 4 * 60 if is_root else 0, 60)
        for op in (OPS.ALLREDUCE, OPS.ALLGATHER, OPS.ALLTOALL, OPS.REDUCE_SCATTER_BLOCK):
            rank.collective(op, "world", NOBODY, 4 * 50, 4 * 50)
        # To itself and those above, from itself and those below; without itself.
        rank.collective(OPS.SCAN, "world", NOBODY, (4 - number) * 40, (number + 1) * 40)
        rank.collective(OPS.EXSCAN, "world", NOBODY, (3 - number) * 30, number * 30)
        # Blocks of 10, 20, 30, 40.
        rank.collective(OPS.ALLGATHERV, "world", NOBODY, 4 * 10 * (number + 1), 100)
        if number % 2:
            rank.collective(OPS.BARRIER, "odd", NOBODY, 0, 0)
        rank.collective(OPS.BARRIER, "self", NOBODY, 0, 0)

    all_ranks = scripts(tmp_path, 4, program)
    for number, lines in enumerate(all_ranks):
        steps = [line for line in lines if not line.startswith(("comm", "compute"))]
        assert steps[:12] == [
            "barrier 0 0 0",
            "bcast 0 2 70",
            "reduce 0 2 80",
            "gather 0 2 90",
            "scatter 0 2 60",
            "allreduce 0 0 50",
            "allgather 0 0 50",
            "alltoall 0 0 50",
            "reduce_scatter 0 0 50",
            "scan 0 0 40",
            "exscan 0 0 30",
            "allgather 0 0 25",
        ]
        comms = [line.split()[1:] for line in lines if line.startswith("comm")]
        used = [comms[int(step.split()[1])] for step in steps[12:]]
        assert used == ([["1", "3"]] if number % 2 else []) + [[str(number)]]
    # All ranks make the same communicators in the same order.
    assert len({tuple(x for x in lines if x.startswith("comm")) for lines in all_ranks}) == 1


def test_it_is_told_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def program(rank: Writer, number: int) -> None:
        rank.collective(OPS.ALLTOALLV, "world", NOBODY, 30, 30)
        rank.compute(1000)
        rank.collective(OPS.BARRIER, "world", NOBODY, 0, 0)

    scripts(tmp_path, 3, program)
    said = capsys.readouterr().out
    assert "3 ranks, 0 messages, 2 collective operations; the trace took 1.040 us" in said
    assert "with the mean of their blocks: 1 alltoallv" in said
    assert f"velo sim --topology ring:3 -- /opt/velo-replay {tmp_path}/scripts" in said


def test_what_cannot_be_replayed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def outside(rank: Writer, number: int) -> None:
        rank.events.mpi_send(rank.time, 1 - number, rank.comms["world"], 0, 8)

    def without_end(rank: Writer, number: int) -> None:
        with rank.call("MPI_Irecv") as events:
            events.mpi_irecv_request(rank.time, 1)

    def never_posted(rank: Writer, number: int) -> None:
        with rank.call("MPI_Wait") as events:
            events.mpi_irecv(rank.time, 1 - number, rank.comms["world"], 0, 8, 1)

    def ends_twice(rank: Writer, number: int) -> None:
        with rank.call("MPI_Wait") as events:
            events.mpi_isend_complete(rank.time, 5)

    def apart(rank: Writer, number: int) -> None:
        op = OPS.BARRIER if number else OPS.ALLREDUCE
        rank.collective(op, "world", NOBODY, 0, 0)

    def alone(rank: Writer, number: int) -> None:
        if number == 0:
            rank.collective(OPS.BARRIER, "world", NOBODY, 0, 0)

    def without_root(rank: Writer, number: int) -> None:
        rank.collective(OPS.BCAST, "world", 2, 0, 8)

    def later(rank: Writer, number: int) -> None:
        with rank.call("MPI_Ibarrier") as events:
            events.non_blocking_collective_request(rank.time, 1)

    for name, program, said in (
        ("outside", outside, "is in no region of MPI, so nothing tells computing from waiting"),
        ("without_end", without_end, "a receive never ends in the trace"),
        ("never_posted", never_posted, "was never posted"),
        ("ends_twice", ends_twice, "a request ends twice, or never began"),
        ("apart", apart, "operation 0 of communicator 0 is not the same in all its ranks"),
        ("alone", alone, "operation 0 of communicator 0 is not the same in all its ranks"),
        ("without_root", without_root, "BCAST has no such root: 2"),
        ("later", later, "NonBlockingCollectiveRequest at 10 cannot be replayed"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        assert said in refusal(folder, capsys, program), name


def test_what_is_no_archive_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "scripts")
    for name, content, said in (
        ("absent", None, "is no file; give an archive's traces.otf2"),
        ("text", b"no archive\n", "cannot be read"),
        ("empty", b"", "cannot be read"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        assert cli.main(["replay", str(path), "-o", output]) == 1
        assert said in capsys.readouterr().err
    archive = write(tmp_path / "archive", 1, lambda rank, number: rank.compute(1))
    (tmp_path / "scripts").mkdir()
    assert cli.main(["replay", archive, "-o", output]) == 2
    assert "the scripts go into a new folder" in capsys.readouterr().err


def test_limits_are_those_of_the_program_that_reads_scripts() -> None:
    header = Path(__file__).resolve().parents[1] / "perf" / "replay" / "script.h"
    text = header.read_text(encoding="utf-8")
    assert dict(re.findall(r"^#define REPLAY_(\w+_MAX) (.+)$", text, re.M)) == {
        "COMMS_MAX": f"{replay_script.COMMS_MAX}u",
        "REQUESTS_MAX": f"{replay_script.REQUESTS_MAX}u",
        "BYTES_MAX": f"(1 << {replay_script.BYTES_MAX.bit_length() - 1})",
    }
    assert replay_script.BYTES_MAX.bit_count() == 1
