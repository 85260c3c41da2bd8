# SPDX-License-Identifier: Apache-2.0
"""The Python binding, used once by two processes: binding.py SCENE ROLE, as the programs of play.h.

A call of the system that fails is an exception of velo's, an OSError or a MemoryError. After it
everything can be closed, and what was sent before has arrived.
"""

import gc
import os
import queue
import sys
from collections.abc import Callable
from pathlib import Path

import velo

PATIENCE_S = int(os.environ.get("SCENE_PATIENCE_MS", "10000")) / 1000
DATA = bytes(i * 7 % 256 for i in range(100_000))


def messages(role: int) -> None:
    with velo.Port(node=role, vpid=0, data_bytes=1 << 17) as port:
        conn = port.connect(velo.port_id(1 - role, 0), PATIENCE_S)
        conn.send(DATA[:20_000], tag=3, timeout=PATIENCE_S)
        with port.recv(PATIENCE_S) as message:
            assert bytes(message.data) == DATA[:20_000] and message.tag == 3
        conn.send(b"", timeout=PATIENCE_S)
        assert port.recv_bytes(PATIENCE_S) == b""


def remote(role: int) -> None:
    with velo.Port(node=role, vpid=0, data_bytes=1 << 17) as port, velo.Rma(port) as rma:
        memory = rma.alloc(len(DATA))
        memory.publish(1)
        conn = port.connect(velo.port_id(1 - role, 0), PATIENCE_S)
        conn.send(b"published", timeout=PATIENCE_S)
        assert port.recv_bytes(PATIENCE_S) == b"published"
        peer = rma.connect(velo.port_id(1 - role, 0), PATIENCE_S)
        key = peer.lookup(1)
        peer.put(DATA, key)
        peer.flush(PATIENCE_S)
        into = bytearray(len(DATA))
        peer.get(into, key)
        peer.flush(PATIENCE_S)
        assert into == DATA
        conn.send(b"done", timeout=PATIENCE_S)
        assert port.recv_bytes(PATIENCE_S) == b"done"
        assert bytes(memory.data) == DATA


def broadcast(role: int) -> None:
    with velo.Port(node=role, vpid=0, data_bytes=1 << 17) as port:
        conn = port.connect(velo.port_id(1 - role, 0), PATIENCE_S)
        if role == 0:
            with velo.Broadcast(vpid=5) as ring:
                conn.send(b"", timeout=PATIENCE_S)
                port.recv_bytes(PATIENCE_S)
                for _ in range(20):
                    ring.send(DATA, timeout=PATIENCE_S)
                port.recv_bytes(PATIENCE_S)
        else:
            port.recv_bytes(PATIENCE_S)
            with velo.BroadcastReader(vpid=5, timeout=PATIENCE_S) as reader:
                conn.send(b"", timeout=PATIENCE_S)
                for _ in range(20):
                    assert reader.recv_bytes(PATIENCE_S) == DATA
                conn.send(b"", timeout=PATIENCE_S)


def objects(role: int) -> None:
    with velo.Queue("0", here=role == 0) as first, velo.Queue("1", here=role == 1) as second:
        ours, theirs = (first, second) if role == 0 else (second, first)
        for sent in ("text", DATA, list(range(50_000))):
            theirs.put(sent, timeout=PATIENCE_S)
            assert ours.get(timeout=PATIENCE_S) == sent
        theirs.put_nowait(None)
        assert ours.get(timeout=PATIENCE_S) is None


SCENES: dict[str, Callable[[int], None]] = {
    scene.__name__: scene for scene in (messages, remote, broadcast, objects)
}


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def main() -> int:
    name, role = sys.argv[1:]
    before = descriptors()
    status = 0
    try:
        SCENES[name](int(role))
    except (velo.Error, OSError, MemoryError, queue.Empty, queue.Full) as error:
        print(f"{type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr)
        status = 3
    gc.collect()
    # A process keeps the socket that it rings doorbells with.
    if (left := descriptors() - before) > 1:
        print(f"wrong: {left} descriptors are left", file=sys.stderr)
        return 4
    return status


if __name__ == "__main__":
    raise SystemExit(main())
