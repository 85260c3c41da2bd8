# SPDX-License-Identifier: Apache-2.0
"""Debian's HPCC, unchanged, over an MPI stack."""

import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from velo.errors import VeloError, VerifyError
from velo.measure.mpi.stacks import Stack

RUN_TIMEOUT_S = 45.0
PROBLEM_SIZE = 1000
BLOCK_SIZE = 80
# Ranks -> process grid P x Q.
GRIDS = {2: (1, 2), 4: (2, 2), 8: (2, 4)}
# HPCC's own rule: at most this part of the table may be wrong.
ERRORS_MAX = 0.01

INPUT = """\
HPLinpack benchmark input file
of velo bench
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
1            # of NBs
{nb}         NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p}          Ps
{q}          Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""


@dataclass(frozen=True)
class Result:
    """What a run of HPCC is read for."""

    updates_per_s: float
    """MPIRandomAccess_GUPs."""
    run_time_ns: float
    """The whole command, from its start to its end."""


def run(stack: Stack, ranks: int, cpus: Sequence[int]) -> Result:
    """One run in a folder of its own."""
    p, q = GRIDS[ranks]
    with tempfile.TemporaryDirectory(prefix="velo-hpcc-") as name:
        folder = Path(name)
        text = INPUT.format(n=PROBLEM_SIZE, nb=BLOCK_SIZE, p=p, q=q)
        (folder / "hpccinf.txt").write_text(text, encoding="ascii")
        begin_ns = time.monotonic_ns()
        stack.output(ranks, cpus, ["hpcc"], RUN_TIMEOUT_S, cwd=folder)
        run_time_ns = float(time.monotonic_ns() - begin_ns)
        try:
            output = (folder / "hpccoutf.txt").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise VeloError("hpcc ended without writing hpccoutf.txt") from error
    return Result(parse(output), run_time_ns)


def parse(text: str) -> float:
    """Updates per second of MPIRandomAccess; what HPCC itself finds wrong is a VerifyError."""
    found = dict(re.findall(r"^(\w+)=(\S+)$", text, re.MULTILINE))
    failed = re.search(r"^.*\bFAILED\b.*$", text, re.MULTILINE)
    if failed and not re.search(r"\b0 tests completed and failed", failed[0]):
        raise VerifyError(f"hpcc: a residual is too large: {failed[0].strip()}")
    try:
        gups = float(found["MPIRandomAccess_GUPs"])
        errors = float(found["MPIRandomAccess_ErrorsFraction"])
    except (KeyError, ValueError) as error:
        raise VeloError(f"hpccoutf.txt has no MPIRandomAccess result: {text[-200:]!r}") from error
    if found.get("Success") != "1" or not errors <= ERRORS_MAX:
        raise VerifyError(
            f"hpcc: Success={found.get('Success')}, {errors:.2%} of the RandomAccess table wrong"
        )
    if not gups > 0:
        raise VeloError(f"hpcc: MPIRandomAccess_GUPs is {gups}")
    return gups * 1e9
