# SPDX-License-Identifier: Apache-2.0
"""Programs that do not use velo are told so, by `velo run` and by `velo sim`."""

import argparse
import subprocess
import sys
from collections.abc import Sequence

EXIT_UNUSED = 125
SENTENCE = "no rank used velo"


def ends(argv: Sequence[str], code: int, is_told: bool) -> bool:
    """Does a job end like this?"""
    job = subprocess.run(argv, capture_output=True, text=True, check=False)
    good = job.returncode == code and (SENTENCE in job.stderr) == is_told
    print(f"{'as' if good else 'NOT as'} it should, exit code {job.returncode}: {' '.join(argv)}")
    if not good:
        print(job.stdout, job.stderr, sep="\n")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("used", help="an MPI program")
    parser.add_argument("unused", help="a program that is none")
    parser.add_argument("--sim", action="store_true", help="over the simulated hardware")
    args = parser.parse_args()
    good = []
    for layer in ("--mtl", "--btl"):
        velo = [sys.executable, "-m", "velo", "sim" if args.sim else "run", "-n", "2", layer]
        velo += ["--"] if args.sim else []
        good.append(ends([*velo, args.unused], EXIT_UNUSED, True))
        good.append(ends([*velo, args.used], 0, False))
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
