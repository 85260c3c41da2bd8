# SPDX-License-Identifier: Apache-2.0
"""The choice of the next command, in the place of LiteDRAM's in controllers of one command a clock.

LiteDRAM's chooser decides a clock ahead, and sees an activate only once tRRD is over: the activate
comes a clock later than it might, every third clock instead of every second, and random reads reach
64 % of what the rows allow. This one decides in the clock of the command. An activate that may go
goes first, since others wait for what it opens; within a kind the banks take turns.
"""

from typing import Any

from litedram.common import cmd_request_rw_layout
from litex.soc.interconnect import stream
from migen import Array, If, Module, Signal


class CommandChooser(Module):
    """The interface of litedram.core.multiplexer._CommandChooser, which see."""

    def __init__(self, requests: list[Any]) -> None:
        self.want_reads, self.want_writes = Signal(), Signal()
        self.want_cmds, self.want_activates = Signal(), Signal()
        layout = cmd_request_rw_layout(len(requests[0].a), len(requests[0].ba))
        self.cmd = cmd = stream.Endpoint(layout)
        number = len(requests)
        activates, others = Signal(number), Signal(number)
        for place, request in enumerate(requests):
            is_activate = request.ras & ~request.cas & ~request.we
            column = (request.is_read & self.want_reads) | (request.is_write & self.want_writes)
            command = request.is_cmd & self.want_cmds
            self.comb += [
                activates[place].eq(request.valid & command & is_activate & self.want_activates),
                others[place].eq(request.valid & ((command & ~is_activate) | column)),
            ]
        candidates, turn, grant = Signal(number), Signal(max=number), Signal(max=number)
        self.comb += If(activates != 0, candidates.eq(activates)).Else(candidates.eq(others))
        # The first candidate behind the one that went last.
        for last in range(number):
            choice: Any = grant.eq(last)
            for place in reversed(range(last + 1, last + number)):
                choice = If(candidates[place % number], grant.eq(place % number)).Else(choice)
            self.comb += If(turn == last, choice)
        self.sync += If(cmd.valid & cmd.ready, turn.eq(grant))

        def chosen(name: str) -> Any:
            return Array(getattr(request, name) for request in requests)[grant]

        self.comb += cmd.valid.eq(candidates != 0)
        self.comb += [
            getattr(cmd, name).eq(chosen(name))
            for name in ("a", "ba", "is_read", "is_write", "is_cmd")
        ]
        for name in ("cas", "ras", "we"):
            self.comb += If(cmd.valid, getattr(cmd, name).eq(chosen(name)))
        for place, request in enumerate(requests):
            self.comb += If(cmd.valid & cmd.ready & (grant == place), request.ready.eq(1))

    def accept(self) -> Any:
        return self.cmd.valid & self.cmd.ready

    def activate(self) -> Any:
        return self.cmd.ras & ~self.cmd.cas & ~self.cmd.we

    def write(self) -> Any:
        return self.cmd.is_write

    def read(self) -> Any:
        return self.cmd.is_read
