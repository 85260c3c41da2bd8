# SPDX-License-Identifier: Apache-2.0
"""What a job is started with."""

import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from velo.runtime.hosts import Hosts

# A shell makes one for each job.
NEW_SECRET = "$(od -An -v -tx1 -N32 /dev/urandom | tr -d ' \\n')"
NO_USE = (
    "the program is no MPI program, or it is built for another MPI, and then each rank is a job of "
    "its own; build it with the mpicc of the Open MPI that velo is built for"
)


class Launch(NamedTuple):
    """A command and what is added to its environment."""

    argv: Sequence[str]
    env: Mapping[str, str]
    domain: str
    must_use: bool
    """A rank opens a port in the domain, or the job is not what was wanted."""
    rank_depth: int = 1
    """How many generations the ranks are below the process that is started."""
    why_unused: str = NO_USE
    """What is wrong if no rank opens one."""
    hosts: Hosts | None = None
    """The other hosts that ranks are on, if any are."""
    secrets: Sequence[str] = ()
    """Names in `env` of which nobody is to see the values."""
    is_shared: bool = False
    """Other jobs are in the domain, too."""

    def __str__(self) -> str:
        words = [
            f"{name}={NEW_SECRET if name in self.secrets else shlex.quote(value)}"
            for name, value in self.env.items()
        ]
        return " ".join([*words, shlex.join(self.argv)])
