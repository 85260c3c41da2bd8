# SPDX-License-Identifier: Apache-2.0
"""Two "nodes" on one machine: network namespaces with a cable between them, each with a host name
and a /dev/shm of its own. Two ranks on each: the BTL carries what stays inside, TCP the rest."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SKIPPED = 77
TIMEOUT_S = 45.0
SUBNET = "10.213.7"
TESTS = ("any_source_tells_who_sent", "everybody_may_send_large_messages_first")
# Run a command line as one of the nodes: `ENTER NODE COMMAND...`, which is also how mpirun starts
# its daemon there.
ENTER = """#!/bin/sh
node=$1
shift
exec ip netns exec "$node" unshare --mount --uts sh -c '
    hostname "$1" && mount -t tmpfs -o size=256m velo-test /dev/shm && shift && eval "$*"
' sh "$node" "$@"
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@contextlib.contextmanager
def nodes() -> Iterator[tuple[str, str]]:
    """Two connected namespaces; raises if the kernel or our rights do not allow them."""
    names = (f"velo{os.getpid()}a", f"velo{os.getpid()}b")
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "velo0", "netns", names[0], "type", "veth", "peer", "name", "velo0",
           "netns", names[1])  # fmt: skip
        for number, name in enumerate(names, 1):
            ip("-n", name, "addr", "add", f"{SUBNET}.{number}/24", "dev", "velo0")
            ip("-n", name, "link", "set", "velo0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def sent_bytes(node: str) -> int:
    """The words that have gone over the cable from a node."""
    said = subprocess.run(
        ["ip", "-n", node, "-s", "-o", "link", "show", "velo0"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    match = re.search(r"TX:[^\\]*\\\s*(\d+)", said)
    assert match, said
    return int(match[1])


def run(enter: Path, names: tuple[str, str], program: str, test: str) -> str:
    """One test with ranks 0 and 1 on the first node, 2 and 3 on the second; what it said."""
    job = [str(enter), names[0], sys.executable, "-m", "velo", "run", "-n", "4", "--btl",
           "--host", f"{names[0]}:2,{names[1]}:2", "--bind-to", "none",
           "--mca", "plm_rsh_agent", str(enter), "--mca", "orte_keep_fqdn_hostnames", "1",
           "--mca", "btl_base_verbose", "1", program, test]  # fmt: skip
    done = subprocess.run(job, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        print(done.stdout, done.stderr)
        raise SystemExit(f"{test}: exit code {done.returncode}")
    return done.stdout + done.stderr


def main() -> int:
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        enter = Path(folder) / "enter"
        enter.write_text(ENTER)
        enter.chmod(0o755)
        try:
            names = stack.enter_context(nodes())
            subprocess.run([enter, names[0], "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", None) or error
            print(f"skipped: network namespaces cannot be made here: {reason}")
            return SKIPPED
        said = "".join(run(enter, names, program, test) for test in TESTS)
        used = set(re.findall(r"Using (\w+) btl for send to \[\[\d+,\d+\],(\d+)\] on node", said))
        cable_bytes = min(map(sent_bytes, names))
    print(f"BTLs: {sorted(used)}; over the cable: at least {cable_bytes} bytes each way")
    layers = {btl for btl, _ in used}
    # Four ranks, of which each sends 3 MB to the two on the other node.
    return int(not {"velo", "tcp"} <= layers or cable_bytes < 12_000_000)


if __name__ == "__main__":
    sys.exit(main())
