# SPDX-License-Identifier: Apache-2.0
"""The machines themselves: what they share, what cables do to frames, what is left."""

import contextlib
import itertools
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from machines import SKIPPED, Cable, Machines, NotPermittedError, become_root

DATAGRAMS = 3000
BURST = 50
PORT = 9000
END = b"end"
PATIENCE_S = 20.0
LATE_S = 0.5
SLEEPER = "31.4159"


# ---- inside a machine ----------------------------------------------------------------------------


def inside_send(address: str) -> None:
    """Numbered datagrams, then words of the end, which may be lost, too."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for number in range(DATAGRAMS):
            out.sendto(number.to_bytes(4, "big"), (address, PORT))
            if number % BURST == 0:
                time.sleep(0.002)  # A device's queue holds some hundreds.
        for _ in range(50):
            time.sleep(0.005)
            out.sendto(END, (address, PORT))


def inside_receive(address: str) -> None:
    """Says which have come, in the order in which they came."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as into:
        into.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        into.bind((address, PORT))
        into.settimeout(PATIENCE_S)
        print("ready", flush=True)
        while (data := into.recv(16)) != END:
            print(int.from_bytes(data, "big"))
        into.settimeout(LATE_S)  # The end may have overtaken something.
        with contextlib.suppress(TimeoutError):
            while data := into.recv(16):
                if data != END:
                    print(int.from_bytes(data, "big"))


def inside_answer(address: str) -> None:
    """Sends back each line of a connection."""
    with socket.create_server((address, PORT)) as server:
        print("ready", flush=True)
        client, _ = server.accept()
        while data := client.recv(64):
            client.sendall(data)


# ---- what a cable does ---------------------------------------------------------------------------


def arrived(cable: Cable) -> tuple[list[int], dict[str, int]]:
    """Which of the datagrams come from machine 0 to machine 1, and what the cable has counted."""
    with Machines(2, cable) as machines:
        self = [sys.executable, __file__, "inside"]
        to = machines.addresses[1]
        receiver = machines.start(1, [*self, "receive", to], stdout=subprocess.PIPE)
        assert receiver.stdout
        assert receiver.stdout.readline() == "ready\n"
        assert machines.run(0, [*self, "send", to]).returncode == 0
        said, _ = receiver.communicate(timeout=PATIENCE_S)
        return [int(line) for line in said.split()], machines.frames()


def check_a_share_is_lost_by_the_seed(cable: str) -> None:
    share = 0.1
    first, frames = arrived(Cable(cable, loss=share, seed=7))
    again, _ = arrived(Cable(cable, loss=share, seed=7))
    other, _ = arrived(Cable(cable, loss=share, seed=8))
    lost = 1 - len(first) / DATAGRAMS
    print(f"{DATAGRAMS} datagrams, {lost:.3f} of them lost; the cable: {frames}")
    assert first == sorted(first)
    # Four standard deviations: of one seed it is so or it is not.
    assert abs(lost - share) < 4 * (share * (1 - share) / DATAGRAMS) ** 0.5
    assert first == again
    assert first != other
    assert frames["lost"] >= DATAGRAMS - len(first)
    assert frames["dropped"] == 0


def check_without_loss_all_arrive_in_order(cable: str) -> None:
    got, frames = arrived(Cable(cable, delay_ms=20))
    assert got == list(range(DATAGRAMS)), frames


def check_late_frames_are_overtaken(cable: str) -> None:
    got, _ = arrived(Cable(cable, late=0.05, late_ms=5))
    assert sorted(got) == list(range(DATAGRAMS))
    overtaken = sum(a > b for a, b in itertools.pairwise(got))
    print(f"{overtaken} times a frame came before an earlier one")
    assert overtaken > 0


def check_a_cut_is_a_cut(cable: str) -> None:
    with Machines(3, Cable(cable, delay_ms=5)) as machines:
        self = [sys.executable, __file__, "inside"]
        to = machines.addresses[1]
        server = machines.start(1, [*self, "answer", to], stdout=subprocess.PIPE)
        assert server.stdout
        assert server.stdout.readline() == "ready\n"
        ask = f"""
import socket, sys, time
line = socket.create_connection(("{to}", {PORT}), timeout={PATIENCE_S}).makefile("rw")
for word in sys.stdin:
    begin = time.monotonic()
    line.write(word); line.flush()
    print(line.readline().strip(), time.monotonic() - begin, flush=True)
"""
        client = machines.start(0, [sys.executable, "-c", ask], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE)  # fmt: skip
        assert client.stdin
        assert client.stdout

        def answer(word: str) -> tuple[str, float]:
            print(word, file=client.stdin, flush=True)
            said, seconds = client.stdout.readline().split()
            return said, float(seconds)

        said, seconds = answer("before")
        assert said == "before"
        assert seconds >= 0.010  # Twice the delay, or the cable has none.
        for number in (0, 1):
            machines.cut(number)
            before = machines.frames()
            print("while", file=client.stdin, flush=True)
            # Sent, and sent again.
            wait_until(lambda before=before: machines.frames()["cut"] >= before["cut"] + 2)
            assert machines.frames()["delivered"] == before["delivered"]
            assert not select.select([client.stdout], [], [], 0)[0]
            machines.mend(number)
            assert client.stdout.readline().startswith("while ")
            assert answer("after")[0] == "after"
        client.stdin.close()
        assert client.wait(PATIENCE_S) == 0
        for process in (client, server):
            process.kill()
            process.wait()
            process.stdout.close()


# ---- what machines share -------------------------------------------------------------------------


def check_each_has_its_own(_cable: str) -> None:
    with Machines(3) as machines:
        see = (
            "hostname; echo $$; ls /dev/shm; cat /proc/1/cmdline | tr '\\0' ' '; touch /dev/shm/$0"
        )
        for number, name in enumerate(machines.names):
            host, pid, *rest = machines.run(number, ["sh", "-c", see, name]).stdout.splitlines()
            assert host == name
            assert int(pid) < 20, pid
            assert len(rest) == 1, rest  # Nothing of the others in /dev/shm.
            assert rest[0].rstrip().endswith(name), rest
        sent = machines.sent_bytes(2)
        for to in machines.names:  # By name; each reaches each.
            probe = f"import socket; socket.create_connection(('{to}', 1), timeout=5)"
            said = machines.run(2, [sys.executable, "-c", probe]).stdout
            assert "ConnectionRefusedError" in said, said
        assert machines.sent_bytes(2) > sent


def check_a_shell_on_another_machine(_cable: str) -> None:
    with Machines(2) as machines:
        ask = f"{machines.agent} {machines.names[1]} 'hostname; echo [$VELO_X]; exit 3'"
        done = machines.run(0, ["sh", "-c", ask], env={"VELO_X": "not brought along"})
        assert done.stdout.splitlines() == [machines.names[1], "[]"]
        assert done.returncode == 3
        assert machines.run(1, ["sh", "-c", "kill -9 $$"]).returncode == 128 + signal.SIGKILL
        running = machines.start(1, ["sleep", SLEEPER])
        wait_until(lambda: sleepers() == 1)
        running.kill()
        running.wait()
        wait_until(lambda: sleepers() == 0)
        machines.halt(1)
        assert machines.run(0, ["sh", "-c", ask]).returncode == 255


# ---- what is left --------------------------------------------------------------------------------


def sleepers() -> int:
    """Processes of all machines that this test has started to stay."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += path.read_bytes() == f"sleep\0{SLEEPER}\0".encode()
        except OSError:
            continue
    return found


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "this does not happen"
        time.sleep(0.02)


def inside_stay(cable: str) -> None:
    """Not inside: makes machines, starts something on each, and waits for its own end."""
    with Machines(2, Cable(cable)) as machines:
        for number in range(2):
            machines.start(number, ["sh", "-c", f"setsid sleep {SLEEPER} & exec sleep {SLEEPER}"])
        print(machines.folder, flush=True)
        time.sleep(PATIENCE_S)


def check_nothing_is_left(cable: str) -> None:
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        command = [sys.executable, __file__, "inside", "stay", cable]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout
            folder = Path(process.stdout.readline().strip())
            wait_until(lambda: sleepers() == 4)
            process.send_signal(signum)
        wait_until(lambda: sleepers() == 0)
        if signum == signal.SIGKILL:  # Nobody was left to take it away; it is all there is.
            assert {path.name for path in folder.iterdir()} <= {
                "agent", "hosts",
                *(f"velo-{machine}.{kind}" for machine in "ab" for kind in ("socket", "tmp")),
            }  # fmt: skip
            shutil.rmtree(folder)
        assert not folder.exists()


def main() -> int:
    if sys.argv[1] == "inside":
        globals()[f"inside_{sys.argv[2]}"](*sys.argv[3:])
        return 0
    become_root()
    cable, *wanted = sys.argv[1:]
    checks = {name: check for name, check in globals().items() if name.startswith("check_")}
    try:
        with Machines(2, Cable(cable)):
            pass
    except NotPermittedError as error:
        print(f"skipped: {error}")
        return SKIPPED
    for name in wanted or checks:
        print(name, flush=True)
        checks[name](cable)
    return 0


if __name__ == "__main__":
    sys.exit(main())
