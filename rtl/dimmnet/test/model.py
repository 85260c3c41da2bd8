# SPDX-License-Identifier: Apache-2.0
"""What a whole board does with commands, word by word: memories and statuses, no cycles.

It knows of packets only what the contract says of a status: how many words the last one has.
"""

from dataclasses import dataclass, field
from typing import Any

from layout import ACCESS, CONSTANTS, ERROR, KIND, MEMORY, OP, pack, unpack

PAYLOAD = CONSTANTS["payload_words_max"]
LLCM_WORDS, RING = CONSTANTS["llcm_words"], CONSTANTS["status_llcm_word"]
PREFETCH, WINDOWS = 256, 128
NAMES = {value: name for name, value in OP.items()}


class RefusedError(Exception):
    def __init__(self, error: str):
        super().__init__(error)
        self.error = error


@dataclass
class Process:
    words: int  # of its region
    sodimm: list[int] = field(default_factory=list)
    prefetch: list[int] = field(default_factory=lambda: [0] * PREFETCH)
    windows: list[int] = field(default_factory=lambda: [0] * WINDOWS)
    llcm: list[int] = field(default_factory=lambda: [0] * RING)
    local: dict[str, int] = field(default_factory=dict)
    remote: dict[str, int] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    done: int = 0
    error: int = 0


def most(element: int, pattern: bool, listed: bool, even: bool) -> int:
    """The most elements of a packet."""
    fits = [
        count
        for count in range(1, PAYLOAD + 1)
        if pattern + (count + 1) // 2 * listed + count * element <= PAYLOAD
    ]
    best = max(fits)
    return best - best % 2 if even and best > 1 else best


class Model:
    def __init__(self, lid: int, regions: list[int]):
        self.lid = lid
        self.processes = [Process(words, [0] * words) for words in regions]
        self.refused = self.bounds = 0

    def places(
        self, own: Process, access: int, first: int, words: int, shape: dict[str, int]
    ) -> list[int]:
        """The words of SO-DIMM in their order; not yet whether they exist."""
        if access == ACCESS["contiguous"]:
            return [first + i for i in range(words)]
        element, step = shape["element_words"], shape["step"]
        if not 1 <= element <= CONSTANTS["element_words_max"] or words % element:
            raise RefusedError("size")
        count = words // element
        if access == ACCESS["strided"]:
            step -= (step >> 31) << 32
            starts = [first + k * step for k in range(count)]
        else:
            if step + (count + 1) // 2 > LLCM_WORDS:
                raise RefusedError("bounds")
            both = [own.llcm[step + k // 2] for k in range(count)]
            starts = [first + (both[k] >> 32 * (k % 2) & 0xFFFFFFFF) for k in range(count)]
        return [start + i for start in starts for i in range(element)]

    @staticmethod
    def inside(places: list[int], size: int) -> bool:
        return all(0 <= place < size for place in places)

    def status(
        self, target: Process, kind: int, memory: int, words: int, wid: int, tag: int
    ) -> None:
        target.statuses.append(
            pack(
                "status",
                kind=kind,
                memory=memory,
                words=words,
                src_wid=wid,
                tag=tag,
                src_lid=self.lid,
            )
        )

    def command(self, wid: int, number: int) -> None:
        own = self.processes[wid]
        own.done += 1
        try:
            self._command(wid, own, unpack("command", number))
        except RefusedError as refused:
            own.error = ERROR[refused.error]
            self.refused += 1

    def _check(self, c: dict[str, int], own: Process, op: str) -> None:
        put, get = op == "put", op == "get"
        locally, remotely = c["local_access"], c["remote_access"]
        if op not in ("put", "get", "load", "store") or 3 in (locally, remotely):
            raise RefusedError("op")
        if (put or get) and (c["local_memory"] > 1 or (c["local_memory"] and locally)):
            raise RefusedError("op")
        if put and (c["remote_memory"] == 3 or (c["remote_memory"] and remotely)):
            raise RefusedError("op")
        if (get and locally == ACCESS["list"]) or (not put and not get and remotely):
            raise RefusedError("op")
        if not c["words"]:
            raise RefusedError("size")
        elements = [
            shape["element_words"]
            for access, shape in ((locally, own.local), (remotely, own.remote))
            if access
        ]
        if len(set(elements)) > 1:
            raise RefusedError("size")
        for element in elements:
            if not 1 <= element <= CONSTANTS["element_words_max"] or c["words"] % element:
                raise RefusedError("size")

    def _command(self, wid: int, own: Process, c: dict[str, int]) -> None:
        op = NAMES.get(c["op"], "none")
        self._check(c, own, op)
        words, locally, remotely = c["words"], c["local_access"], c["remote_access"]
        window = c["remote_word"] if op in ("load", "store") else c["local_word"]
        windows = op in ("load", "store") or c["local_memory"] == MEMORY["prefetch"]
        size = PREFETCH if op in ("load", "get") else WINDOWS
        mine = None
        if op in ("load", "store") or not c["local_memory"]:
            mine = self.places(own, locally, c["local_word"], words, own.local)
        if windows and window + words > size:
            raise RefusedError("bounds")
        if mine is not None and not self.inside(mine, own.words):
            # Of a list only whole segments before the bad one are carried out.
            if locally == ACCESS["list"]:
                self._part(wid, own, c, op, mine)
            raise RefusedError("bounds")
        if op == "put" and remotely != ACCESS["list"]:
            # The peer's memory is the peer's to judge, but no address goes round.
            theirs = self.places(own, remotely, c["remote_word"], words, own.remote)
            if not self.inside(theirs, (1 << 32) - 1):
                raise RefusedError("bounds")
        self._move(wid, own, c, op, mine, words)

    def _segment(self, own: Process, c: dict[str, int]) -> int:
        """Words of a full segment."""
        locally, remotely = c["local_access"], c["remote_access"]
        shape = own.local if locally else own.remote
        element = shape["element_words"] if locally or remotely else 1
        listed = ACCESS["list"] in (locally, remotely)
        return element * most(element, bool(remotely), remotely == ACCESS["list"], listed)

    def _part(self, wid: int, own: Process, c: dict[str, int], op: str, mine: list[int]) -> None:
        size = self._segment(own, c)
        good = 0
        while self.inside(mine[good : good + size], own.words):
            good += size
        if good:
            self._move(wid, own, {**c, "status": 0}, op, mine[:good], good)

    def _move(
        self, wid: int, own: Process, c: dict[str, int], op: str, mine: list[int] | None, words: int
    ) -> None:
        peer, tag, segment = self.processes[c["wid"]], c["tag"], self._segment(own, c)
        last = (words - 1) % segment + 1
        first = c["local_word"]
        if op == "load":
            assert mine is not None
            at = c["remote_word"]
            own.prefetch[at : at + words] = [own.sodimm[place] for place in mine]
            if c["status"]:
                self.status(own, 0, MEMORY["prefetch"], last, wid, tag)
        elif op == "store":
            assert mine is not None
            at = c["remote_word"]
            for place, word in zip(mine, own.windows[at : at + words], strict=True):
                own.sodimm[place] = word
            if c["status"]:
                self.status(own, 0, MEMORY["sodimm"], last, wid, tag)
        elif op == "put":
            data = (
                own.windows[first : first + words]
                if mine is None
                else [own.sodimm[p] for p in mine]
            )
            self._scatter(wid, own, peer, c, data, segment)
        else:
            self._gather(wid, own, peer, c, mine, words)

    def _scatter(
        self,
        wid: int,
        own: Process,
        peer: Process,
        c: dict[str, int],
        data: list[int],
        segment: int,
    ) -> None:
        """A put's data at the peer, packet by packet: those that do not fit are dropped."""
        memory, remotely = c["remote_memory"], c["remote_access"]
        target = (peer.sodimm, peer.prefetch, peer.llcm)[memory]
        places = self.places(own, remotely, c["remote_word"], len(data), own.remote)
        for at in range(0, len(data), segment):
            part, there = data[at : at + segment], places[at : at + segment]
            ends = at + segment >= len(data)
            if not self.inside(there, len(target)):
                self.bounds += 1
                continue
            for place, word in zip(there, part, strict=True):
                target[place] = word
            if ends and c["status"]:
                words = len(part)
                if remotely:
                    words += 1
                if remotely == ACCESS["list"]:
                    words += (len(part) // own.remote["element_words"] + 1) // 2
                self.status(peer, KIND["write"], memory, words, wid, c["tag"])

    def _gather(
        self,
        wid: int,
        own: Process,
        peer: Process,
        c: dict[str, int],
        mine: list[int] | None,
        words: int,
    ) -> None:
        """A get's data here, read by read: those that leave the peer's region are dropped."""
        remotely, locally = c["remote_access"], c["local_access"]
        theirs = self.places(own, remotely, c["remote_word"], words, own.remote)
        if mine is None:
            mine, target = list(range(c["local_word"], c["local_word"] + words)), own.prefetch
        else:
            target = own.sodimm
        element = own.remote["element_words"] if remotely else 1
        read = 64 * element if remotely == ACCESS["list"] else words
        # Packets of an answer: their pattern is the one of here.
        shape = own.remote if remotely else own.local
        element = shape["element_words"] if remotely or locally else 1
        segment = element * most(element, bool(locally), False, remotely == ACCESS["list"])
        for at in range(0, words, read):
            wanted, there = theirs[at : at + read], mine[at : at + read]
            listed = remotely == ACCESS["list"]
            if listed:  # segment by segment
                good = 0
                while good < len(wanted) and self.inside(wanted[good : good + segment], peer.words):
                    good += segment
                complete = good >= len(wanted)
                wanted, there = wanted[:good], there[:good]
            else:
                complete = self.inside(wanted, peer.words)
                wanted = wanted if complete else []
            if not complete:
                self.bounds += 1
            for place, source in zip(there, wanted, strict=False):
                target[place] = peer.sodimm[source]
            if complete and at + read >= words and c["status"]:
                last = (len(wanted) - 1) % segment + 1
                memory = c["local_memory"]
                tag: Any = c["tag"]
                self.status(own, KIND["answer"], memory, last + bool(locally), c["wid"], tag)
