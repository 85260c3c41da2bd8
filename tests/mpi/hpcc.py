# SPDX-License-Identifier: Apache-2.0
"""HPCC, Debian's own binary, over velo: a small run, judged by its own verification."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
TIMEOUT_S = 580.0
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hpcc" / "hpccinf.txt"
GRIDS = {2: (1, 2), 4: (2, 2), 8: (2, 4), 16: (4, 4)}
# With more than four ranks RandomAccess takes four receives in any order, and cancels them after
# the last FINISHED: over any transport it may so drop its last messages, some 250 updates each.
# That does not grow with the table, while the errors that it permits itself do.
ORDER, ORDER_OF_MANY, MANY_RANKS = 200, 1000, 5
# A name that must be in the summary, and what its value must satisfy.
VERIFIED = {
    "Success": lambda value: value == 1,
    "MPIRandomAccess_ErrorsFraction": lambda value: 0 <= value <= 0.01,
    "MPIRandomAccess_LCG_ErrorsFraction": lambda value: 0 <= value <= 0.01,
    "PTRANS_residual": lambda value: 0 <= value < 16,
    "MPIFFT_maxErr": lambda value: 0 <= value < 1e-10,
    "StarDGEMM_Gflops": lambda value: value > 0,
}


def problem(text: str, ranks: int, order: int) -> str:
    """The example's problem with another grid and order."""
    p, q = GRIDS[ranks]
    text = re.sub(r"^\d+( +Ns\b.*)$", rf"{order}\1", text, flags=re.M)
    text = re.sub(r"^\d+( +Ps\b.*)$", rf"{p}\1", text, flags=re.M)
    return re.sub(r"^\d+( +Qs\b.*)$", rf"{q}\1", text, flags=re.M)


def judge(text: str) -> list[str]:
    """The errors in an hpccoutf.txt."""
    summary = dict(re.findall(r"^(\w+)=(\S+)$", text, flags=re.M))
    wrong = [
        f"{name} = {summary.get(name, 'missing')}"
        for name, right in VERIFIED.items()
        if name not in summary or not right(float(summary[name]))
    ]
    if re.search(r"\bFAILED\b", text.replace("0 tests completed and failed", "")):
        wrong.append("a residual check FAILED")
    if not re.search(r"\bPASSED\b", text):
        wrong.append("no HPL residual check PASSED")
    return wrong


def main() -> int:
    layer, ranks = sys.argv[1], int(sys.argv[2])
    if shutil.which("hpcc") is None:
        print("skipped: hpcc is not installed (scripts/packages/apt-run.txt)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        order = ORDER_OF_MANY if ranks >= MANY_RANKS else ORDER
        text = problem(EXAMPLE.read_text(), ranks, order)
        (Path(folder) / "hpccinf.txt").write_text(text)
        argv = [sys.executable, "-m", "velo", "run", "-n", str(ranks), f"--{layer}", "hpcc"]
        subprocess.run(argv, cwd=folder, check=True, timeout=TIMEOUT_S)
        wrong = judge((Path(folder) / "hpccoutf.txt").read_text())
    print("\n".join(wrong) or "HPCC verified its results")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
