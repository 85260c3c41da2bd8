# SPDX-License-Identifier: Apache-2.0
"""What the ranks of an archive of OTF2 did, as scripts for velo-replay."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from velo.cluster.otf2_package import load_otf2
from velo.errors import VeloError

NS_PER_S = 10**9
# As tools/perf/replay/script.h has them.
COMMS_MAX, REQUESTS_MAX, BYTES_MAX = 1024, 65536, 1 << 30
# Blocks of collective operations, as Score-P tells the bytes that a rank sends and receives, those
# for itself among them. `received` and `sent` are those of a block; `each` stands for a block of
# each of N ranks. In a scan a rank sends to itself and those above, and receives from itself and
# those below: N + 1 blocks in all; N - 1 in an exclusive one. A rank that works in place does not
# count its own block, which cannot be seen: then `each` and `scan` come out too small.
COLLECTIVES = {
    "BARRIER": ("barrier", "none"),
    "BCAST": ("bcast", "received"),
    "GATHER": ("gather", "sent"),
    "GATHERV": ("gather", "sent"),
    "SCATTER": ("scatter", "received"),
    "SCATTERV": ("scatter", "received"),
    "ALLGATHER": ("allgather", "each"),
    "ALLGATHERV": ("allgather", "each"),
    "ALLTOALL": ("alltoall", "each"),
    "ALLTOALLV": ("alltoall", "each"),
    "ALLTOALLW": ("alltoall", "each"),
    "ALLREDUCE": ("allreduce", "each"),
    "REDUCE": ("reduce", "sent"),
    "REDUCE_SCATTER": ("reduce_scatter", "each"),
    "REDUCE_SCATTER_BLOCK": ("reduce_scatter", "each"),
    "SCAN": ("scan", "scan"),
    "EXSCAN": ("exscan", "exscan"),
}
# Their blocks differ between ranks: all get the mean.
IRREGULAR = {"GATHERV", "SCATTERV", "ALLGATHERV", "ALLTOALLV", "ALLTOALLW", "REDUCE_SCATTER"}
# A communicator's or a window's making and unmaking meets as a barrier does.
MEETINGS = {
    "CREATE_HANDLE", "DESTROY_HANDLE", "CREATE_HANDLE_AND_ALLOCATE",
    "DESTROY_HANDLE_AND_DEALLOCATE", "ALLOCATE", "DEALLOCATE",
}  # fmt: skip
# Events of MPI that ask for nothing to be replayed.
SILENT = {"MpiCollectiveBegin", "MpiProbe", "MpiRequestTest"}


class Step(NamedTuple):
    """A line of a script; of a collective operation the bytes are filled in when all is read."""

    name: str
    numbers: tuple[int, ...]


class Part(NamedTuple):
    """A rank's part in a collective operation."""

    operation: str
    comm: int
    root: int
    block: float


@dataclass
class Rank:
    """What a rank did."""

    number: int
    steps: list[Step | Part] = field(default_factory=list)
    first: int | None = None
    """When it was ready to compute, in ticks."""
    last: int = 0


@dataclass
class Trace:
    """What all ranks did."""

    ranks: list[Rank]
    comms: list[tuple[int, ...]]
    """Members, as ranks."""
    took_ns: int
    blocks: dict[tuple[int, int], int]
    """Bytes of a block, by communicator and number of the operation on it."""
    irregular: Counter[str]

    def told(self) -> str:
        steps = [step for rank in self.ranks for step in rank.steps]
        messages = sum(isinstance(step, Step) and step.name == "send" for step in steps)
        return f"{messages} messages, {len(self.blocks)} collective operations"


def read(path: Path) -> Trace:
    """Read an archive; what is in it is not trusted."""
    otf2 = load_otf2()
    if not path.is_file():
        raise VeloError(f"{path} is no file; give an archive's traces.otf2")
    try:
        with otf2.reader.open(str(path)) as archive:
            return _read(archive, otf2, path)
    except otf2.error_type as failed:
        raise VeloError(f"{path} cannot be read: {failed}") from failed


def _read(archive: Any, otf2: Any, path: Path) -> Trace:
    tell = archive.definitions
    resolution = tell.clock_properties.timer_resolution
    locations = _locations(tell, otf2, path)
    ranks = [Rank(number) for number in range(len(locations))]
    comms: dict[Any, int] = {}
    members: list[tuple[int, ...]] = []
    readers = {
        location: _Reader(ranks[number], locations, comms, members, resolution)
        for location, number in locations.items()
    }
    for location, event in archive.events:
        reader = readers.get(location)
        if reader:
            reader.take(event)
        elif type(event).__name__.startswith("Mpi"):
            raise VeloError(f"{path}: {location.name} uses MPI, and is no rank's first thread")
    for reader in readers.values():
        reader.end()
    blocks, irregular = _meet(ranks, members)
    longest = max((rank.last - (rank.first or 0) for rank in ranks), default=0)
    return Trace(ranks, members, longest * NS_PER_S // resolution, blocks, irregular)


def _locations(tell: Any, otf2: Any, path: Path) -> dict[Any, int]:
    """The rank of each location that is one in MPI_COMM_WORLD."""
    for group in tell.groups:
        is_mpi = group.paradigm == otf2.Paradigm.MPI
        if is_mpi and group.group_type == otf2.GroupType.COMM_LOCATIONS:
            return {location: rank for rank, location in enumerate(group.members)}
    raise VeloError(f"{path} has no ranks of MPI")


def _name(value: Any) -> str:
    """Of a value of one of OTF2's enumerations."""
    return str(value).rpartition(".")[2]


class _Reader:
    """Makes steps of the events of one location."""

    def __init__(
        self,
        rank: Rank,
        locations: dict[Any, int],
        comms: dict[Any, int],
        members: list[tuple[int, ...]],
        resolution: int,
    ) -> None:
        self.rank, self.locations, self.comms, self.members = rank, locations, comms, members
        self.resolution = resolution
        self.regions: list[bool] = []
        """Those that are open: is each one of MPI?"""
        self.computes_since: int | None = None
        self.requests: dict[int, int] = {}
        """Of the trace: the script's."""
        self.posted: dict[int, int] = {}
        """Where the steps of receives stand whose messages are not known yet."""
        self.free: list[int] = []
        self.used = 0
        self.sends: list[int] = []
        """Requests of blocking sends, which end with their region: MPI_Sendrecv has both."""

    def take(self, event: Any) -> None:
        kind = type(event).__name__
        if self.rank.first is None:
            self.rank.first = self.computes_since = event.time
        self.rank.last = max(self.rank.last, event.time)
        act = ACTIONS.get(kind)
        if act:
            act(self, event)
        elif kind not in SILENT and kind.startswith(("Mpi", "Rma", "NonBlocking")):
            raise VeloError(f"rank {self.rank.number}: {kind} at {event.time} cannot be replayed")

    def end(self) -> None:
        if self.posted:
            raise VeloError(f"rank {self.rank.number}: a receive never ends in the trace")
        if self.computes_since is not None and not any(self.regions):
            self._computed(self.rank.last)

    # --- regions ---

    def _enter(self, event: Any) -> None:
        is_mpi = _name(event.region.paradigm) == "MPI"
        if is_mpi and not any(self.regions):
            self._computed(event.time)
        self.regions.append(is_mpi)

    def _leave(self, event: Any) -> None:
        was_mpi = self.regions.pop() if self.regions else False
        if was_mpi and not any(self.regions):
            for request in self.sends:
                self._wait(request)
            self.sends.clear()
            self.computes_since = event.time
            if event.region.name.startswith("MPI_Init"):
                self.rank.first = event.time
                self.rank.steps.clear()

    def _computed(self, until: int) -> None:
        ticks = until - (self.computes_since or 0)
        if self.computes_since is not None and ticks > 0:
            self.rank.steps.append(Step("compute", (ticks * NS_PER_S // self.resolution,)))
        self.computes_since = None

    # --- messages ---

    def _in_mpi(self, event: Any) -> None:
        if not any(self.regions):
            raise VeloError(
                f"rank {self.rank.number}: {type(event).__name__} at {event.time} is in no region "
                "of MPI, so nothing tells computing from waiting"
            )

    def _begin(self) -> int:
        if self.free:
            return self.free.pop()
        if self.used == REQUESTS_MAX:
            raise VeloError(f"rank {self.rank.number}: more than {REQUESTS_MAX} messages at a time")
        self.used += 1
        return self.used - 1

    def _wait(self, request: int) -> None:
        self.rank.steps.append(Step("wait", (request,)))
        self.free.append(request)

    def _message(self, request: int, event: Any, peer: int) -> tuple[int, ...]:
        if event.msg_length > BYTES_MAX:
            raise VeloError(f"rank {self.rank.number}: a message has {event.msg_length} bytes")
        # Tags of libraries may be above what every MPI takes.
        tag = event.msg_tag & 0x7FFF
        return (request, self._comm(event.communicator), peer, tag, event.msg_length)

    def _send(self, event: Any) -> None:
        self._in_mpi(event)
        request = self._begin()
        self.rank.steps.append(Step("send", self._message(request, event, event.receiver)))
        self.sends.append(request)

    def _isend(self, event: Any) -> None:
        self._in_mpi(event)
        request = self.requests[event.request_id] = self._begin()
        self.rank.steps.append(Step("send", self._message(request, event, event.receiver)))

    def _receive(self, event: Any) -> None:
        self._in_mpi(event)
        request = self._begin()
        self.rank.steps.append(Step("receive", self._message(request, event, event.sender)))
        self._wait(request)

    def _post(self, event: Any) -> None:
        self._in_mpi(event)
        self.requests[event.request_id] = self._begin()
        self.posted[event.request_id] = len(self.rank.steps)
        self.rank.steps.append(Step("receive", ()))

    def _received(self, event: Any) -> None:
        place = self.posted.pop(event.request_id, None)
        if place is None:
            raise VeloError(f"rank {self.rank.number}: a receive at {event.time} was never posted")
        request = self.requests[event.request_id]
        numbers = self._message(request, event, event.sender)
        self.rank.steps[place] = Step("receive", numbers)
        self._complete(event)

    def _cancel(self, event: Any) -> None:
        place = self.posted.pop(event.request_id, None)
        if place is None:
            raise VeloError(f"rank {self.rank.number}: a send was cancelled; it cannot be replayed")
        self.rank.steps[place] = Step("compute", (0,))
        self.free.append(self.requests.pop(event.request_id))

    def _complete(self, event: Any) -> None:
        request = self.requests.pop(event.request_id, None)
        if request is None:
            raise VeloError(f"rank {self.rank.number}: a request ends twice, or never began")
        self._wait(request)

    # --- all together ---

    def _take_part(self, event: Any) -> None:
        self._in_mpi(event)
        name = _name(event.collective_op)
        if name in MEETINGS:
            name = "BARRIER"
        if name not in COLLECTIVES:
            raise VeloError(f"rank {self.rank.number}: {name} cannot be replayed")
        comm = self._comm(event.communicator)
        ranks = len(self.members[comm])
        blocks = {
            "none": 0.0,
            "sent": float(event.size_sent),
            "received": float(event.size_received),
            "each": event.size_received / ranks,
            "scan": (event.size_sent + event.size_received) / (ranks + 1),
            "exscan": (event.size_sent + event.size_received) / max(ranks - 1, 1),
        }
        is_rooted = name in {"BCAST", "GATHER", "GATHERV", "SCATTER", "SCATTERV", "REDUCE"}
        root = event.root if is_rooted else 0
        if not 0 <= root < ranks:
            raise VeloError(f"rank {self.rank.number}: {name} has no such root: {root}")
        self.rank.steps.append(Part(name, comm, root, blocks[COLLECTIVES[name][1]]))

    def _comm(self, comm: Any) -> int:
        if type(comm).__name__ != "Comm":
            raise VeloError("communicators between two groups cannot be replayed")
        located = comm.group.members
        # That of each rank alone is one definition for all, without members.
        key = (comm, -1 if located else self.rank.number)
        if key not in self.comms:
            if len(self.members) == COMMS_MAX:
                raise VeloError(f"there are more than {COMMS_MAX} communicators")
            self.comms[key] = len(self.members)
            members = [self.locations[each] for each in located]
            self.members.append(tuple(members) or (self.rank.number,))
        return self.comms[key]


ACTIONS = {
    "Enter": _Reader._enter,
    "Leave": _Reader._leave,
    "MpiSend": _Reader._send,
    "MpiIsend": _Reader._isend,
    "MpiIsendComplete": _Reader._complete,
    "MpiRecv": _Reader._receive,
    "MpiMrecv": _Reader._receive,
    "MpiIrecvRequest": _Reader._post,
    "MpiIrecv": _Reader._received,
    "MpiImrecvRequest": _Reader._post,
    "MpiImrecv": _Reader._received,
    "MpiRequestCancelled": _Reader._cancel,
    "MpiCollectiveEnd": _Reader._take_part,
}
"""By the event's class in OTF2."""


def _meet(
    ranks: list[Rank], members: list[tuple[int, ...]]
) -> tuple[dict[tuple[int, int], int], Counter[str]]:
    """Bring together the parts of each collective operation: its block, which is the same in all,
    else their mean. A root that works in place tells of none of its own."""
    parts: dict[tuple[int, int], list[Part]] = {}
    for rank in ranks:
        for place, part in _parts(rank):
            parts.setdefault(place, []).append(part)
    blocks: dict[tuple[int, int], int] = {}
    irregular: Counter[str] = Counter()
    for (comm, number), own in parts.items():
        operations = {(part.operation, part.root) for part in own}
        if len(operations) != 1 or len(own) != len(members[comm]):
            raise VeloError(
                f"operation {number} of communicator {comm} is not the same in all its ranks"
            )
        told = [part.block for part in own if part.block > 0]
        blocks[comm, number] = min(round(sum(told) / len(told)) if told else 0, BYTES_MAX)
        if own[0].operation in IRREGULAR:
            irregular[own[0].operation] += 1
    return blocks, irregular


def _parts(rank: Rank) -> Iterator[tuple[tuple[int, int], Part]]:
    numbers: Counter[int] = Counter()
    for step in rank.steps:
        if isinstance(step, Part):
            yield (step.comm, numbers[step.comm]), step
            numbers[step.comm] += 1


def script(trace: Trace, rank: Rank) -> str:
    """The text for velo-replay."""
    lines = [f"velo-replay 1 {len(trace.ranks)} {rank.number} {trace.took_ns}"]
    lines += [f"comm {' '.join(map(str, members))}" for members in trace.comms]
    places = (place for place, _ in _parts(rank))
    for step in rank.steps:
        if isinstance(step, Part):
            name = COLLECTIVES[step.operation][0]
            lines.append(f"{name} {step.comm} {step.root} {trace.blocks[next(places)]}")
        else:
            lines.append(" ".join([step.name, *map(str, step.numbers)]))
    return "\n".join([*lines, ""])
