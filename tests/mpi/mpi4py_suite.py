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
import tempfile
from pathlib import Path

SKIPPED = 77
VERSION = "4.1.2"
# numpy widens what the tests cover; the pins make two installations the same.
REQUIREMENTS = ("setuptools==79.0.1", "wheel==0.45.1", "cython==3.1.6", "numpy==2.4.6")
KNOWN = Path(__file__).with_name("mpi4py-known.txt")
# Messages between ranks, matched probes, threads, collectives: what depends on us most.
QUICK = r"^test_(p2p_buf|p2p_buf_matched|p2p_obj|msgzero|request|threads|cco_buf|cco_vec)\.py$"
BUILD_TIMEOUT_S = 840.0
KILL_TIMEOUT_S = 10.0
LINES_SHOWN = 60


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


def prepare(folder: Path) -> None:
    """Install mpi4py into a folder, its sources beside it."""
    mpicc = shutil.which("mpicc.openmpi")
    if mpicc is None:
        raise UnavailableError("mpicc.openmpi is not there (scripts/packages/apt-run.txt)")
    shutil.rmtree(folder, ignore_errors=True)
    call("/usr/bin/python3", "-m", "venv", folder)
    pip = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    call(*pip, "install", *REQUIREMENTS)
    options = ["--no-deps", "--no-build-isolation"]
    call(*pip, "download", *options, "--no-binary", ":all:", "-d", folder, f"mpi4py=={VERSION}")
    archive = folder / f"mpi4py-{VERSION}.tar.gz"
    # Its speed is not what is tested; without optimization it builds in a fraction of the time.
    # pip builds in another folder each time, which ccache must not mind.
    ccache = {"OMPI_CC": "ccache gcc", "CCACHE_NOHASHDIR": "1"} if shutil.which("ccache") else {}
    call(*pip, "install", *options, archive, MPICC=mpicc, CFLAGS="-O0", **ccache)
    shutil.unpack_archive(archive, folder)
    stamp(folder).touch()


def stamp(folder: Path) -> Path:
    """Is there once all is in the folder."""
    return folder / "done"


def suite(folder: Path, quick: bool) -> list[str]:
    """The command for one rank."""
    program = folder / f"mpi4py-{VERSION}" / "test" / "main.py"
    command = [str(folder / "bin" / "python"), str(program), "-v"]
    if quick:
        command += ["-i", QUICK]
    for name in known_failures(KNOWN.read_text()):
        command += ["-x", name]
    return command


def job(layer: str, ranks: int, threads: bool) -> list[str]:
    """The command that starts the ranks."""
    command = [sys.executable, "-m", "velo", "run", "-n", str(ranks)]
    if layer == "vader":  # To see what Open MPI's own transport does with a test.
        command += ["--btl", "--mca", "btl", "self,vader,tcp"]
    else:
        command.append(f"--{layer}")
    # Tests that spawn processes need more slots than there are cores, and more run than that.
    command += ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    # Without threads the MTL takes shorter ways.
    command += ["-x", f"MPI4PY_RC_THREADS={int(threads)}"]
    return [*command, "--tag-output"]  # Which rank hangs?


def run(command: list[str], limit_s: float) -> tuple[int, str]:
    """Exit code and output; what has not ended in time is ended."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.terminate()  # `velo run` hands it on: its ranks end, too.
            process.wait(KILL_TIMEOUT_S)
            print(f"not done after {limit_s:g} s; the last tests are the ones that hang")
            code = 1
        output.seek(0)
        return code, output.read()


def counts(pattern: str, said: str) -> list[int]:
    """What each rank counts; their lines may be mixed."""
    return [int(number) for number in re.findall(pattern, said)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layer", choices=("prepare", "mtl", "btl", "vader"))
    parser.add_argument("ranks", type=int, nargs="?", default=2)
    parser.add_argument("--build", type=Path, required=True, help="where to install mpi4py")
    parser.add_argument("--quick", action="store_true", help="only what moves data between ranks")
    parser.add_argument("--single", action="store_true", help="initialize MPI without threads")
    parser.add_argument("--limit", type=float, default=900.0, metavar="SECONDS")
    args = parser.parse_args()
    folder = args.build / f"mpi4py-{VERSION}"
    if args.layer == "prepare":
        try:
            if not stamp(folder).exists():
                prepare(folder)
        except UnavailableError as error:
            print(f"skipped: {error}")
            return SKIPPED
        return 0
    if not stamp(folder).exists():
        print("skipped: mpi4py is not there; 'mpi4py_suite.py prepare' says why")
        return SKIPPED
    start = job(args.layer, args.ranks, not args.single)
    code, said = run([*start, *suite(folder, args.quick)], args.limit)
    print("\n".join(said.splitlines()[-LINES_SHOWN:]))
    ran, skipped = counts(r"Ran (\d+) tests", said), counts(r"\bskipped=(\d+)", said)
    if not ran or min(ran) == 0 or sum(ran) <= sum(skipped):
        print(f"no tests were run: of {ran}, {skipped} were skipped")
        return 1
    return int(code != 0)


if __name__ == "__main__":
    sys.exit(main())
