# SPDX-License-Identifier: Apache-2.0
"""A job with a killed rank ends soon, with an error, and what it leaves in shared memory is in
nobody's way."""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ENDS_WITHIN_S = 30.0
RANKS = "3"
# A port and its RMA unit of each rank; beside the MTL there is the BTL for one-sided operations.
SEGMENTS = {"mtl": 12, "btl": 6}
# A rank that waits for any source cannot know that no sender is left; mpirun knows that. pml ob1
# does not tell the BTL the source of a receive.
NOTICED = {
    "mtl": ("ring", "ring-any", "named", "collective"),
    "btl": ("ring", "ring-any", "collective"),
}
ENDED_BY_MPIRUN = ("ring", "ring-any", "named", "any", "collective")


class Job:
    """Runs programs over a layer, with shared memory of their own."""

    def __init__(self, layer: str, shm: Path) -> None:
        self.velo = [sys.executable, "-m", "velo", "run", "-n", RANKS, f"--{layer}"]
        self.env = {**os.environ, "VELO_SHM_DIR": str(shm)}
        self.shm = shm

    def left(self) -> list[str]:
        """The segments in shared memory."""
        return sorted(path.name for path in self.shm.glob("velo.*"))

    def plain(self, *program: str) -> tuple[list[str], dict[str, str]]:
        """The mpirun command and environment that `velo run` would use, all but the domain."""
        words = shlex.split(self.said([*self.velo, "--print", *program]))
        count = next(i for i, word in enumerate(words) if "=" not in word)
        settings = dict(word.split("=", 1) for word in words[:count])
        return words[count:], {
            k: v for k, v in settings.items() if not k.lower().endswith("_domain")
        }

    def said(self, argv: Sequence[str]) -> str:
        return subprocess.run(argv, env=self.env, check=True, capture_output=True, text=True).stdout

    def run(self, argv: Sequence[str], **env: str) -> tuple[int, bytes] | None:
        """Exit code and output; None: it hangs."""
        return wait(argv, {**self.env, **env})


def wait(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int, bytes] | None:
    start = time.monotonic()
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        try:
            said, _ = job.communicate(timeout=ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            job.terminate()
            said, _ = job.communicate()
            print(f"{said.decode(errors='replace')}\nhangs: {shlex.join(argv)}")
            return None
    print(f"exit code {job.returncode} after {time.monotonic() - start:.1f} s: {shlex.join(argv)}")
    return job.returncode, said


def wait_until(holds: Callable[[], bool]) -> bool:
    """Wait for something; False: it does not happen."""
    end = time.monotonic() + ENDS_WITHIN_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def failed(result: tuple[int, bytes] | None, code_counts: bool = True) -> bool:
    """Has the job ended as it should, because a rank died?"""
    if result is None:
        return False
    code, said = result
    if b"nobody died" in said or (code_counts and code == 0):
        print(f"{said.decode(errors='replace')}\nthis should have failed")
        return False
    return True


def velo_run_ends(job: Job, layer: str, program: str) -> bool:
    """`velo run` ends with an error and takes everything away."""
    for part in ENDED_BY_MPIRUN:
        if not failed(job.run([*job.velo, program, part])):
            return False
    for part in NOTICED[layer]:
        # mpirun lets the others live, so they themselves must notice; its exit code says nothing.
        if not failed(job.run([*job.velo, "--enable-recovery", program, part]), code_counts=False):
            return False
    print(f"left: {job.left() or 'nothing'}")
    return not job.left()


def mpirun_ends(job: Job, program: str) -> bool:
    """So does mpirun alone; it leaves segments. A job of the same domain takes them for its own."""
    domains = {f"OMPI_MCA_{layer}_velo_domain": "again" for layer in ("mtl", "btl")}
    for part in ENDED_BY_MPIRUN:
        argv, env = job.plain(program, part)
        if not failed(job.run(argv, **env, **domains)):
            return False
    left = job.left()
    argv, env = job.plain(program)  # Kills nobody.
    again = job.run(argv, **env, **domains)
    print(f"left by the killed: {left or 'nothing'}; by the next: {job.left() or 'nothing'}")
    return bool(left) and again is not None and again[0] == 0 and not job.left()


def leftovers_are_swept(job: Job, program: str) -> bool:
    """The next job, of any domain, removes the segments of a killed job."""
    argv, env = job.plain(program, "named")
    if not failed(job.run(argv, **env)):
        return False
    left = job.left()
    argv, env = job.plain(program)
    following = job.run(argv, **env)
    print(f"left by the killed: {left or 'nothing'}; by the next: {job.left() or 'nothing'}")
    return bool(left) and following is not None and following[0] == 0 and not job.left()


def killed_launcher_is_cleaned_up_after(job: Job, layer: str, program: str) -> bool:
    """What a `velo run` leaves that is killed itself: `velo clean` finds it, the next run takes it
    away."""
    with subprocess.Popen([*job.velo, program, "stay"], env=job.env) as launcher:
        wait_until(lambda: len(job.left()) == SEGMENTS[layer])
        launcher.kill()
    clean = [sys.executable, "-m", "velo", "clean", "--dry-run", "--json"]
    # mpirun, which is told that the launcher is gone, ends the ranks by and by.
    found = wait_until(
        lambda: (
            [d["removable"] for d in json.loads(job.said(clean))["domains"]] == [SEGMENTS[layer]]
        )
    )
    left = job.left()
    following = job.run([*job.velo, program])
    print(f"left by the killed: {left}; by the next: {job.left() or 'nothing'}")
    return found and following is not None and following[0] == 0 and not job.left()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check", choices=("velo-run", "mpirun", "launcher", "sweep"))
    parser.add_argument("layer", choices=tuple(NOTICED))
    parser.add_argument("program", help="velo-mpi-kill")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="velo-kill-") as shm:
        job = Job(args.layer, Path(shm))
        if args.check == "velo-run":
            good = velo_run_ends(job, args.layer, args.program)
        elif args.check == "mpirun":
            good = mpirun_ends(job, args.program)
        elif args.check == "launcher":
            good = killed_launcher_is_cleaned_up_after(job, args.layer, args.program)
        else:
            good = leftovers_are_swept(job, args.program)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
