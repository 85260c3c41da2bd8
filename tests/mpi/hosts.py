# SPDX-License-Identifier: Apache-2.0
"""MPI jobs on several hosts, which are namespaces (tests/machines).

Shared memory is inside each, libfabric between them. Each check is a test of its own;
CMakeLists.txt finds them by their names.
"""

import argparse
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "machines"))
from machines import SKIPPED, Cable, Machines, NotPermittedError, become_root

from velo.runtime.hosts import AGENT

# The hosts share the cores of one machine, which each believes to have to itself.
POLITE = ("--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
ENDS_WITHIN_S = 100.0
# A peer that is silent so long is lost: shorter than a user's, since a test waits for it.
SILENCE_MS = "3000"
# In place of what velo run sets: mpirun gives a host up after 6 s of silence, not after 11.
LOSES_HOSTS_SOON = ("--mca", "oob_tcp_keepalive_time", "4", "--mca", "oob_tcp_keepalive_intvl", "1",
                    "--mca", "oob_tcp_keepalive_probes", "2")  # fmt: skip
# Then mpirun ends what it can reach, and gives the other host up.
ENDS_AFTER_LOSS_S = 60.0
EXIT_FAILED = 1
PROGRAMS = {
    "velo-mpi-tests": ("atomics.c", "crowd.c", "datatypes.c", "matching.c", "onesided.c",
                       "threads.c"),
    "velo-mpi-collectives": ("collectives.c", "movements.c", "reductions.c"),
}  # fmt: skip
# It ends the job on purpose; what is about shared memory of all ranks.
LEFT_OUT = ("ends_the_job", "fall_back_together")
UNEVEN = "each_rank_puts_into_each_other"
# So begin tests of dynamic windows; over several hosts without MPI_THREAD_MULTIPLE
# (docs/guides/mpi.md).
DYNAMIC = "memory_that_stays_attached_is_reached"


class Hosts:
    """Some hosts, and velo run on the first of them."""

    def __init__(self, machines: Machines, programs: Path) -> None:
        self.machines = machines
        self.programs = programs
        self.env = {variable: str(machines.agent) for _, variable in AGENT.values()}

    def command(self, ranks: Sequence[int], words: Sequence[str]) -> list[str]:
        """`velo run` with so many ranks on each host."""
        slots = zip(self.machines.names, ranks, strict=True)
        hosts = ",".join(f"{name}:{count}" for name, count in slots)
        return [sys.executable, "-m", "velo", "run", "-n", str(sum(ranks)), "--host", hosts,
                *POLITE, *words]  # fmt: skip

    def run(
        self, ranks: Sequence[int], *words: str, limit_s: float = ENDS_WITHIN_S, **env: str
    ) -> CompletedProcess[str]:
        """A job to its end, whatever that is."""
        begin = time.monotonic()
        argv = self.command(ranks, words)
        try:
            done = self.machines.run(0, argv, timeout_s=limit_s, env={**self.env, **env})
        except TimeoutExpired as error:
            print(error.output)
            raise SystemExit(f"hangs: {' '.join(words)}") from error
        seconds = time.monotonic() - begin
        print(f"exit code {done.returncode} after {seconds:.1f} s: {' '.join(words)}", flush=True)
        return done

    def passes(self, ranks: Sequence[int], *words: str, **more: object) -> str:
        """A job that has to go well; what it says."""
        done = self.run(ranks, *words, **more)
        if done.returncode:
            raise SystemExit(f"{done.stdout}\n{' '.join(words)}: exit code {done.returncode}")
        return done.stdout

    def program(self, name: str) -> str:
        """One of the programs of tests/mpi."""
        return str(self.programs / name)

    def left(self, number: int) -> list[str]:
        """Segments in a host's shared memory."""
        said = self.machines.run(number, ["ls", "/dev/shm"]).stdout.split()
        return [name for name in said if name.startswith("velo.")]

    def carriers(self, number: int) -> set[str]:
        """By what the ports of the job on a host reach their peers, as `velo info` shows it."""
        domains = {name.split(".")[1].partition("+")[0] for name in self.left(number)}
        info = [sys.executable, "-m", "velo", "info", "--json", "--domain", *domains]
        ports = json.loads(self.machines.run(number, info).stdout)["ports"]
        return {way for port in ports for way in port["connections"]}

    def ranks_alive(self, number: int, program: str) -> int:
        """Processes of a program on a host."""
        search = f"ls -l /proc/[0-9]*/exe 2>/dev/null | grep -c -- '-> {program}$'"
        return int(self.machines.run(number, ["sh", "-c", search]).stdout)


@contextlib.contextmanager
def hosts(args: argparse.Namespace, count: int = 2, **cable: object) -> Iterator[Hosts]:
    """Hosts, with a cable between them if one is described."""
    with Machines(count, Cable(args.cable, **cable) if cable else None) as machines:
        yield Hosts(machines, args.programs)


# ---- jobs that go well ---------------------------------------------------------------------------


def check_messages_inside_and_between(args: argparse.Namespace) -> None:
    """Any source over both carriers at once, random lengths, each message the right one."""
    with hosts(args) as job:
        said = job.passes([2, 2], job.program("velo-mpi-mix"), "50", str(1 << 20), "1", "3")
        assert "4 ranks, 3 rounds" in said, said
        sent = min(map(job.machines.sent_bytes, range(2)))
        print(f"over the cable: at least {sent} bytes each way")
        assert sent > 1_000_000
        assert not job.left(0) + job.left(1)


def check_programs_of_two_hosts(args: argparse.Namespace) -> None:
    """MPI's calls, one rank on each host."""
    with hosts(args) as job:
        for test in ("a_probe_tells_source_tag_and_length", "put_and_get_reach_created_windows",
                     "each_thread_keeps_its_order", "vectors_keep_their_bytes"):  # fmt: skip
            ranks = [2, 2] if test.startswith("put") else [1, 1]
            job.passes(ranks, job.program("velo-mpi-tests"), test)
        said = job.passes([1, 1], "NPopenmpi", "-u", "4096", "-n", "20", "-o", "/dev/null")
        assert re.search(r"^ *\d+: +4096 bytes", said, re.MULTILINE), said
        collectives = job.program("velo-mpi-collectives")
        job.passes([2, 1], collectives, "any_mix_of_collectives_of_three_ranks_is_right")


def check_dynamic_windows_of_two_hosts(args: argparse.Namespace) -> None:
    """They work; with MPI_THREAD_MULTIPLE Open MPI up to 4.1.4 has an error in place of a hang."""
    with hosts(args) as job:
        test = [job.program("velo-mpi-tests"), f"{DYNAMIC}_while_other_memory_comes_and_goes"]
        job.passes([2, 2], *test, "single")
        done = job.run([2, 2], *test)
        if done.returncode:
            assert "velo: no window over these hosts" in done.stdout, done.stdout
            assert "MPI_ERR_WIN" in done.stdout, done.stdout
            assert not job.left(0) + job.left(1)


def check_windows_where_ranks_do_not_divide_by_hosts(args: argparse.Namespace) -> None:
    """Seven ranks on three hosts: osc/rdma up to 4.1.5 puts to a wrong rank, and says nothing."""
    with hosts(args, 3) as job:
        program = job.program("velo-mpi-tests")
        job.passes([3, 2, 2], program, UNEVEN, "single")


def check_the_byte_transfer_layer_leaves_the_cable_to_tcp(args: argparse.Namespace) -> None:
    """BTL velo inside each host, tcp between them."""
    with hosts(args) as job:
        line = job.command(
            [2, 2],
            [
                "--mca",
                "btl_base_verbose",
                "1",
                job.program("velo-mpi-tests"),
                "any_source_tells_who_sent",
            ],
        )
        line.insert(line.index("--host"), "--btl")
        done = job.machines.run(0, line, timeout_s=ENDS_WITHIN_S, env=job.env)
        assert done.returncode == 0, done.stdout
        used = set(re.findall(r"Using (\w+) btl for send to \[\[\d+,\d+\],\d+\] on", done.stdout))
        assert {"velo", "tcp"} <= used, done.stdout


def check_a_bad_cable(args: argparse.Namespace) -> None:
    """A hundredth of all frames is lost, and each takes 50 ms."""
    with hosts(args, delay_ms=50, loss=0.01, seed=3) as job:
        job.passes([2, 2], job.program("velo-mpi-mix"), "10", "65536", "7", "1")
        frames = job.machines.frames()
        print(frames)
        assert frames["lost"] > 0


# ---- jobs that end -------------------------------------------------------------------------------


def ends(job: Hosts, done: CompletedProcess[str], program: str) -> None:
    """The job has failed, and nothing of it is left on any host."""
    assert done.returncode != 0, done.stdout
    assert "nobody died" not in done.stdout, done.stdout
    for number in range(len(job.machines.names)):
        assert not job.ranks_alive(number, program), f"ranks live on host {number}"
        assert not job.left(number), job.left(number)


def check_a_killed_rank(args: argparse.Namespace) -> None:
    """On either host: rank 1 kills itself."""
    with hosts(args) as job:
        program = job.program("velo-mpi-kill")
        for ranks in ([1, 2], [2, 1]):
            for part in ("ring", "named"):
                ends(job, job.run(ranks, program, part), program)


def check_a_cut_cable(args: argparse.Namespace) -> None:
    """The ranks of both hosts end with an error, soon after the silence that was set."""
    said = cut(args, SILENCE_MS)
    assert "VELO_ERR_PEER_DEAD" in said, said


def check_a_host_that_mpirun_loses(args: argparse.Namespace) -> None:
    """It ends the job before any rank says something. Open MPI 5's then ends with 0."""
    cut(args, "60000")


def cut(args: argparse.Namespace, silence_ms: str) -> str:
    """Cut the cable of a job that runs; it fails. What it says."""
    with hosts(args, delay_ms=1) as job:
        program = job.program("velo-mpi-kill")
        argv = job.command([2, 1], [*LOSES_HOSTS_SOON, program, "turn"])
        env = {**os.environ, **job.env, "VELO_OFI_TIMEOUT_MS": silence_ms}
        with Path(args.log).open("w+") as log:
            process = job.machines.start(0, argv, env=env, stdout=log, stderr=log)
            wait_until(lambda: job.ranks_alive(0, program) == 2)
            wait_until(lambda: "turns" in Path(args.log).read_text())
            assert job.carriers(0) == {"shm", "ofi"}
            assert job.carriers(1) == {"ofi"}
            job.machines.cut(1)
            begin = time.monotonic()
            wait_until(lambda: not any(job.ranks_alive(number, program) for number in (0, 1)))
            print(f"no rank lives {time.monotonic() - begin:.1f} s after the cut")
            try:
                code = process.wait(ENDS_AFTER_LOSS_S)
            finally:
                process.kill()
                process.wait()
            said = Path(args.log).read_text()
            print(f"velo run ends {time.monotonic() - begin:.1f} s after the cut:\n{said}")
        assert code != 0
        return said


def check_a_wrong_secret(args: argparse.Namespace) -> None:
    """Ranks of the second host have another secret."""
    with hosts(args) as job:
        change = (
            'case $(hostname) in *-b) export VELO_OFI_SECRET=another_one_of_it;; esac; exec "$@"'
        )
        done = job.run([1, 1], "sh", "-c", change, "sh", job.program("velo-mpi-mix"),
                       "1", "8", "1", "1", VELO_OFI_TIMEOUT_MS=SILENCE_MS)  # fmt: skip
        assert done.returncode != 0, done.stdout
        assert "has another secret" in done.stdout, done.stdout
        assert "all as sent" not in done.stdout, done.stdout


def check_what_velo_run_says(args: argparse.Namespace) -> None:
    """The secret is on no command line; hosts that cannot take part are named."""
    with hosts(args) as job:
        show = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; echo secret=$VELO_OFI_SECRET"
        said = job.passes([1, 1], "sh", "-c", show)
        secrets = set(re.findall(r"^secret=(\w{64})$", said, re.MULTILINE))
        assert len(secrets) == 1, said
        assert said.count(secrets.pop()) == 2, said
        argv = [word.replace("velo-b", "velo-x") for word in job.command([1, 1], ["true"])]
        done = job.machines.run(0, argv, env=job.env)
        assert done.returncode == EXIT_FAILED, done.stdout
        assert "host velo-x is not reached" in done.stdout, done.stdout


# ---- long ones -----------------------------------------------------------------------------------


def nightly_all_programs(args: argparse.Namespace) -> None:
    """All of tests/mpi on two hosts."""
    with hosts(args) as job:
        for program, sources in PROGRAMS.items():
            for source in sources:
                text = Path(__file__).with_name(source).read_text()
                for name, ranks in re.findall(r"^TEST\((\w+), (\d+)\)", text, re.MULTILINE):
                    if not any(part in name for part in LEFT_OUT):
                        half = int(ranks) // 2
                        spread = [int(ranks) - half, half]
                        level = ["single"] if name.startswith(DYNAMIC) else []
                        job.passes(spread, job.program(program), name, *level, limit_s=900)


def nightly_netpipe(args: argparse.Namespace) -> None:
    """NetPIPE, one rank on each host."""
    with hosts(args) as job:
        job.passes([1, 1], "NPopenmpi", "-u", str(1 << 20), "-o", "/dev/null", limit_s=600)


def nightly_sixty_four_ports(args: argparse.Namespace) -> None:
    """Three hosts, 32 ranks, each with a port of the MTL and one of the BTL; all talk to all.

    They share a few cores: a rank that waits sleeps soon, and may be silent until its next turn.
    All ranks are of one session. When each host was a session of its own, the ranks of one host
    kept the cores from those of another for 25 s (Linux 6.18 with autogroup).
    """
    sleep = ["--mca", "mtl_velo_sleep_polls", "10", "--mca", "btl_velo_sleep_polls", "10",
             "--mca", "orte_leave_session_attached", "1", "--mca", "prte_leave_session_attached",
             "1"]  # fmt: skip
    with hosts(args, 3) as job:
        said = job.passes(
            [11, 11, 10], *sleep, job.program("velo-mpi-mix"), "20", "65536", "1", "2",
            args.seconds, limit_s=float(args.seconds) + 900, VELO_OFI_TIMEOUT_MS="60000",
        )  # fmt: skip
        print(said)
        assert "32 ranks" in said
        assert not job.left(0) + job.left(1) + job.left(2)


def wait_until(holds: object, limit_s: float = ENDS_AFTER_LOSS_S) -> None:
    """Wait for something; SystemExit: it does not happen."""
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            raise SystemExit("this does not happen")
        time.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder of velo-mpi-*")
    parser.add_argument("--cable", required=True, help="velo-cable")
    parser.add_argument("--log", default="/dev/null", help="file for what a job says")
    parser.add_argument("--seconds", default="3600", help="of nightly_sixty_four_ports")
    parser.add_argument("check", help="name of a function")
    args = parser.parse_args()
    become_root()
    try:
        with Machines(2, Cable(args.cable)):
            pass
    except NotPermittedError as error:
        print(f"skipped: {error}")
        return SKIPPED
    globals()[args.check](args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
