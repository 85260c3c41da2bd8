# SPDX-License-Identifier: Apache-2.0
"""A program of an interpreter: it loads MPI by ctypes, waits for threads and starts processes.

interpreter.py VELO MPI
"""

import concurrent.futures
import ctypes
import os
import queue
import subprocess
import sys
import threading
import time

NAP_S = 0.25
SLACK_S = 0.01
TAG = 3

velo, library = sys.argv[1:]
if "VELO_SIM" not in os.environ:
    os.execv(velo, [velo, "sim", "-n", "2", "--", sys.executable, *sys.argv])
mpi = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)


def handle(name: str) -> ctypes.c_void_p:
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


def expect_nap(what: str, begun_s: float) -> None:
    passed_s = time.monotonic() - begun_s
    assert NAP_S <= passed_s <= NAP_S + SLACK_S, f"{what}: {passed_s} s"


def talk(rank: int) -> int:
    """Rank 0 naps and sends; the other one waits as long."""
    begun_s = time.monotonic()
    value = ctypes.c_int(42 if rank == 0 else 0)
    where = (ctypes.byref(value), 1, handle("ompi_mpi_int"), 1 - rank, TAG)
    if rank == 0:
        time.sleep(NAP_S)
        assert mpi.MPI_Send(*where, handle("ompi_mpi_comm_world")) == 0
    else:
        assert mpi.MPI_Recv(*where, handle("ompi_mpi_comm_world"), None) == 0
    expect_nap("a message", begun_s)
    return value.value


def use_threads() -> None:
    begun_s = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        naps = [pool.submit(time.sleep, NAP_S) for _ in range(3)]
        assert list(pool.map(lambda number: number * number, range(4))) == [0, 1, 4, 9]
        assert all(nap.result() is None for nap in naps)
    expect_nap("a pool of threads", begun_s)

    begun_s = time.monotonic()
    numbers: queue.Queue[int] = queue.Queue()
    event = threading.Event()
    timer = threading.Timer(NAP_S, lambda: (numbers.put(7), event.set()))
    timer.start()
    assert numbers.get(timeout=10) == 7
    assert event.wait(10)
    timer.join()
    expect_nap("a timer", begun_s)

    begun_s = time.monotonic()
    assert not threading.Event().wait(NAP_S)
    expect_nap("a limit", begun_s)


def use_processes() -> None:
    done = subprocess.run(["echo", "of a process"], capture_output=True, text=True, check=True)
    assert done.stdout == "of a process\n"
    code = subprocess.call([sys.executable, "-c", "import sys; sys.exit(5)"])
    assert code == 5, code


assert mpi.MPI_Init(None, None) == 0
number = ctypes.c_int()
assert mpi.MPI_Comm_rank(handle("ompi_mpi_comm_world"), ctypes.byref(number)) == 0
heard = talk(number.value)
use_threads()
use_processes()
assert mpi.MPI_Finalize() == 0
print(f"rank {number.value} of an interpreter has {heard}", flush=True)
