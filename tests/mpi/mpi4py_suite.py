# SPDX-License-Identifier: Apache-2.0
"""mpi4py's own test-suite over velo.

The source package comes from PyPI and is built against the Open MPI that velo's components are for,
into an environment of its own in the build folder, once.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

SKIPPED = 77
VERSION = "4.1.2"
# numpy widens what the tests cover; the pins make two installations the same.
REQUIREMENTS = ("setuptools==79.0.1", "wheel==0.45.1", "cython==3.1.6", "numpy==2.4.6")
KNOWN = Path(__file__).with_name("mpi4py-known.txt")
# Messages between ranks, matched probes, threads, one-sided: what depends on us most.
QUICK = (
    "test_(p2p_buf|p2p_buf_matched|p2p_obj|msgzero|request|threads|cco_buf|cco_nb_buf|cco_vec|rma)$"
)
BUILD_TIMEOUT_S = 600.0


class UnavailableError(Exception):
    """mpi4py cannot be had here; the message says why."""


def known_failures(text: str) -> list[str]:
    """Test names that Open MPI's own transport fails too; each line has one, and a reason."""
    lines = (line.split("#", 1)[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def call(*argv: str | Path, **env: str) -> None:
    try:
        subprocess.run(
            [str(word) for word in argv],
            check=True,
            timeout=BUILD_TIMEOUT_S,
            env={**os.environ, **env},
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnavailableError(f"cannot build mpi4py: {error}") from error


def environment(build: Path) -> Path:
    """The folder with mpi4py installed and its sources beside it; made if it is not there."""
    folder = build / f"mpi4py-{VERSION}"
    stamp = folder / "done"
    if stamp.exists():
        return folder
    mpicc = shutil.which("mpicc.openmpi")
    if mpicc is None:
        raise UnavailableError("mpicc.openmpi is not there (scripts/apt-run.txt)")
    shutil.rmtree(folder, ignore_errors=True)
    call("/usr/bin/python3", "-m", "venv", folder)
    pip = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    call(*pip, "install", *REQUIREMENTS)
    options = ["--no-deps", "--no-build-isolation"]
    call(*pip, "download", *options, "--no-binary", ":all:", "-d", folder, f"mpi4py=={VERSION}")
    archive = folder / f"mpi4py-{VERSION}.tar.gz"
    # Its speed is not what is tested; without optimization it builds in a fraction of the time.
    call(*pip, "install", *options, archive, MPICC=mpicc, CFLAGS="-O0")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    stamp.touch()
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layer", choices=("mtl", "btl", "vader"))
    parser.add_argument("ranks", type=int)
    parser.add_argument("--build", type=Path, required=True, help="where to install mpi4py")
    parser.add_argument("--quick", action="store_true", help="only what moves data between ranks")
    args = parser.parse_args()
    try:
        folder = environment(args.build)
    except UnavailableError as error:
        print(f"skipped: {error}")
        return SKIPPED
    suite = [folder / "bin" / "python", folder / f"mpi4py-{VERSION}" / "test" / "main.py", "-v"]
    if args.quick:
        suite += ["-i", QUICK]
    for name in known_failures(KNOWN.read_text()):
        suite += ["-x", name]
    # Tests that spawn processes need more slots than there are cores.
    run = [sys.executable, "-m", "velo", "run", "-n", str(args.ranks)]
    if args.layer == "vader":  # To see what Open MPI's own transport does with a test.
        run += ["--btl", "--mca", "btl", "self,vader"]
    else:
        run.append(f"--{args.layer}")
    run += ["--oversubscribe", "--bind-to", "none"]
    job = subprocess.run([*run, *map(str, suite)], check=False, capture_output=True, text=True)
    said = job.stdout + job.stderr
    print("\n".join(said.splitlines()[-60:]))
    ran = [int(n) for n in re.findall(r"^Ran (\d+) tests", said, flags=re.M)]
    if not ran or min(ran) == 0:
        print("no tests were run")
        return 1
    return int(job.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
