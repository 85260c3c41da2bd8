# SPDX-License-Identifier: Apache-2.0
"""Ports and connections: what is sent arrives, waits end, errors are named."""

import array
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from conftest import PATIENCE_S

import velo


def test_a_message_arrives_with_its_tag_and_source(port: velo.Port, conn: velo.Connection) -> None:
    conn.send(b"hello", tag=7)
    with port.recv(PATIENCE_S) as message:
        assert bytes(message) == b"hello"
        assert (message.tag, message.source, len(message)) == (7, port.id, 5)
        assert message.generation == port.generation == conn.generation


@pytest.mark.parametrize("size", [0, 1, 8, 56, 57, 4096, 16384])
def test_every_way_of_receiving_gives_the_bytes_that_were_sent(
    port: velo.Port, conn: velo.Connection, size: int
) -> None:
    data = os.urandom(size)
    conn.send(data)
    assert port.recv_bytes(PATIENCE_S) == data
    conn.send(data)
    assert port.try_recv_bytes() == data
    for _ in range(2):
        conn.send(data)
    with port.recv(PATIENCE_S) as message:
        assert message.data == data
    message = port.try_recv()
    assert message is not None
    with message:
        assert bytes(message) == data
    for _ in range(2):
        conn.send(data)
    buffer = bytearray(size)
    assert port.recv_into(buffer, PATIENCE_S).len_bytes == size
    assert buffer == data
    room = bytearray(size + 8)
    assert port.recv_into(room, PATIENCE_S).len_bytes == size
    assert room[:size] == data
    assert port.try_recv_bytes() is None
    assert port.try_recv() is None


def test_a_burst_is_one_call_on_each_side(port: velo.Port, conn: velo.Connection) -> None:
    burst = [b"first", bytearray(b""), array.array("B", b"third"), os.urandom(3000)]
    assert conn.send_many(burst, tag=[1, 2, 3, 4], timeout=PATIENCE_S) == 4
    assert conn.send_many([], timeout=PATIENCE_S) == 0
    assert conn.send_many([b"a", b"b"], tag=9) == 2
    got = port.recv_many(5, timeout=PATIENCE_S)
    assert [data for data, _ in got] == [*map(bytes, burst), b"a"]
    assert [about.tag for _, about in got] == [1, 2, 3, 4, 9]
    assert all(about.source == port.id and about.generation == port.generation for _, about in got)
    assert [(data, about.len_bytes) for data, about in port.recv_many()] == [(b"b", 1)]
    with pytest.raises(velo.Timeout):
        port.recv_many(timeout=0)
    with pytest.raises(velo.ArgumentError):
        port.recv_many(0)
    with pytest.raises(ValueError, match="shorter"):
        conn.send_many([b"a", b"b"], tag=[1])
    assert port.try_recv() is None


def test_a_burst_stops_at_what_cannot_be_sent(port: velo.Port, conn: velo.Connection) -> None:
    long = bytes(conn.max_bytes + 1)
    assert conn.send_many([b"good", long, b"behind"]) == 1
    with pytest.raises(velo.TooBig):
        conn.send_many([long, b"behind"])
    assert port.recv_bytes(PATIENCE_S) == b"good"
    assert port.try_recv() is None
    sent = conn.send_many([b"x"] * 100_000, timeout=0.25)  # Longer than a slice of a wait.
    assert 0 < sent < 100_000
    with pytest.raises(velo.Timeout):
        conn.send_many([b"x"], timeout=0)
    interrupter = threading.Timer(0.05, conn.interrupt)
    port.recv_many(sent // 2, timeout=PATIENCE_S)
    interrupter.start()
    assert conn.send_many([b"x"] * 100_000) < 100_000
    interrupter.join()
    with pytest.raises(velo.Interrupted):
        conn.send_many([b"x"])


def test_a_burst_goes_on_with_the_message_that_found_no_room(
    port: velo.Port, conn: velo.Connection
) -> None:
    burst = [i.to_bytes(4, "little") for i in range(20_000)]
    got: list[tuple[bytes, int]] = []

    def receive() -> None:
        time.sleep(0.25)  # Longer than a slice of a wait.
        while len(got) < len(burst):
            got.extend((data, about.tag) for data, about in port.recv_many(7, PATIENCE_S))

    receiver = threading.Thread(target=receive)
    receiver.start()
    tags = [i % 251 for i in range(len(burst))]
    assert conn.send_many(burst, tag=tags, timeout=PATIENCE_S) == len(burst)
    receiver.join()
    assert got == list(zip(burst, tags, strict=True))


@pytest.mark.parametrize(
    "data",
    [
        bytearray(b"abcd" * 4),
        memoryview(b"abcd" * 4),
        array.array("d", [1.5, 2.5]),
        np.arange(4, dtype=np.int32),
        np.arange(12.0).reshape(3, 4),
    ],
)
def test_anything_with_a_buffer_can_be_sent(
    port: velo.Port, conn: velo.Connection, data: Any
) -> None:
    conn.send(data)
    assert conn.try_send(data)
    conn.send_pieces([data, b"", data])
    whole = memoryview(data).tobytes()
    assert [port.recv_bytes(PATIENCE_S) for _ in range(3)] == [whole, whole, whole * 2]


def test_what_has_no_buffer_is_refused(port: velo.Port, conn: velo.Connection) -> None:
    for data in ("text", 5, None):
        with pytest.raises(TypeError):
            conn.send(data)
    with pytest.raises((ValueError, BufferError)):
        conn.send(np.arange(10)[::2])  # It has gaps.
    assert port.try_recv_bytes() is None


def test_messages_of_one_connection_arrive_in_order(
    domain: str, port: velo.Port, fork: Callable[..., Any]
) -> None:
    def sender() -> None:
        with velo.Port(domain=domain, node=1) as own:
            conn = own.connect(port_id, PATIENCE_S)
            for number in range(20000):
                conn.send(number.to_bytes(4, "little"))

    port_id = port.id
    fork(sender)
    for number in range(20000):
        assert int.from_bytes(port.recv_bytes(PATIENCE_S), "little") == number


def test_a_message_is_built_in_the_ring_itself(port: velo.Port, conn: velo.Connection) -> None:
    with conn.reserve(80) as room:
        np.frombuffer(room.data)[:] = np.arange(10)
    assert np.array_equal(np.frombuffer(port.recv_bytes(PATIENCE_S)), np.arange(10.0))
    room = conn.reserve(100)
    room.data[:3] = b"abc"
    room.commit(3, tag=5)
    assert port.recv_into(bytearray(3), PATIENCE_S).tag == 5


def test_a_reservation_whose_block_fails_sends_nothing_and_keeps_its_room(
    port: velo.Port, conn: velo.Connection
) -> None:
    with pytest.raises(KeyError), conn.reserve(80):
        raise KeyError
    assert port.try_recv() is None
    with pytest.raises(velo.StateError):
        conn.reserve(81)
    with conn.reserve(40) as room:
        room.data[:] = b"x" * 40
    assert port.recv_bytes(PATIENCE_S) == b"x" * 40
    with conn.reserve(200) as room:
        assert len(room.data) == 200


def test_waits_end_in_time(port: velo.Port, conn: velo.Connection) -> None:
    for wait in (port.recv, port.recv_bytes, lambda t: port.recv_into(bytearray(8), t)):
        begin = time.monotonic()
        with pytest.raises(velo.Timeout):
            wait(0.05)
        assert time.monotonic() - begin >= 0.05
    while conn.try_send(b"x" * 1000):
        pass
    with pytest.raises(TimeoutError):  # Python's own, too.
        conn.send(b"x" * 1000, timeout=0.05)
    with pytest.raises(velo.NoPeer):
        port.connect(velo.port_id(5, 5), 0.05)


def test_errors_have_their_own_types_and_say_what_to_do(domain: str, port: velo.Port) -> None:
    with pytest.raises(velo.InUse) as raised:
        velo.Port(domain=domain, node=0, vpid=port.id)
    assert raised.value.name == "VELO_ERR_IN_USE"
    with pytest.raises(velo.ArgumentError, match="node is 999"):
        velo.Port(node=999)
    conn = port.connect(port.id)
    with pytest.raises(velo.TooBig):
        conn.send(bytes(conn.max_bytes + 1))
    conn.send(b"12345")
    with pytest.raises(velo.TooBig):
        port.recv_into(bytearray(4))
    assert port.recv_bytes() == b"12345"


def test_the_peer_that_closes_and_the_one_that_dies_are_told_apart(
    domain: str, fork: Callable[..., Any]
) -> None:
    def peer(end: str) -> None:
        own = velo.Port(domain=domain, vpid=1)
        own.connect(0, PATIENCE_S).send(b"hello")
        assert own.recv_bytes(PATIENCE_S) == b"end"
        if end == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        own.close()

    with velo.Port(domain=domain, vpid=0, departures=True) as port:
        for end, error in (("die", velo.PeerDead), ("close", velo.PeerClosed)):
            child = fork(peer, end)
            assert port.recv_bytes(PATIENCE_S) == b"hello"
            conn = port.connect(1, PATIENCE_S)
            conn.send(b"end")
            child.join(PATIENCE_S)
            with pytest.raises(error):
                conn.check_peer()
            with pytest.raises(error) as raised:
                port.recv(PATIENCE_S)
            assert raised.value.source == 1
            conn.close()


def test_threads_that_share_a_connection_and_a_port_lose_nothing(
    port: velo.Port, conn: velo.Connection
) -> None:
    each, got = 3000, []
    lock = threading.Lock()

    def send(first: int) -> None:
        for number in range(first, first + each):
            conn.send(number.to_bytes(4, "little"))

    def receive() -> None:
        while True:
            data = port.recv_bytes(PATIENCE_S)
            if not data:
                return
            with lock:
                got.append(int.from_bytes(data, "little"))

    senders = [threading.Thread(target=send, args=(i * each,)) for i in range(2)]
    receivers = [threading.Thread(target=receive) for _ in range(2)]
    for thread in senders + receivers:
        thread.start()
    for thread in senders:
        thread.join()
    for _ in receivers:
        conn.send(b"")
    for thread in receivers:
        thread.join()
    assert sorted(got) == list(range(2 * each))


def test_a_wait_does_not_hold_the_gil(port: velo.Port, conn: velo.Connection) -> None:
    """Somebody sends from another thread while the first waits."""
    timer = threading.Timer(0.05, conn.send, (b"x",))
    timer.start()
    assert port.recv_bytes(PATIENCE_S) == b"x"
    sent = 0
    while conn.try_send(b"x" * 8000):
        sent += 1
    timer = threading.Timer(0.05, lambda: [port.recv_bytes(PATIENCE_S) for _ in range(sent + 1)])
    timer.start()
    conn.send(b"x" * 8000, timeout=PATIENCE_S)
    timer.join()


def test_a_wait_uses_no_processor(port: velo.Port) -> None:
    begin, begin_cpu = time.monotonic(), time.process_time()
    with pytest.raises(velo.Timeout):
        port.recv_bytes(0.5)
    used = (time.process_time() - begin_cpu) / (time.monotonic() - begin)
    assert used < 0.1  # It spins for 50 us.


def test_another_thread_ends_a_wait(port: velo.Port) -> None:
    threading.Timer(0.05, port.interrupt).start()
    with pytest.raises(velo.Interrupted):
        port.recv(PATIENCE_S)
    threading.Timer(0.05, port.close).start()
    with pytest.raises(velo.Closed):
        port.recv(PATIENCE_S)


def test_another_thread_ends_a_wait_for_room(port: velo.Port, conn: velo.Connection) -> None:
    while conn.try_send(b"x"):
        pass
    threading.Timer(0.05, conn.interrupt).start()
    with pytest.raises(velo.Interrupted):
        conn.send(b"x", timeout=PATIENCE_S)
    assert port.recv_bytes(timeout=PATIENCE_S) == b"x"


@pytest.mark.parametrize("end", ["port", "conn", "ring", "reader"])
def test_what_is_closed_meanwhile_is_not_interrupted(end: str) -> None:
    def interrupt(what: Any, begun: threading.Event) -> None:
        begun.set()
        with suppress(velo.Closed):
            while True:
                what.interrupt()

    for _ in range(100):
        begun = threading.Event()
        with velo.Port() as peer:
            port = velo.Port()
            ring = velo.Broadcast(vpid=90)
            reader = velo.BroadcastReader(vpid=90)
            ends = {"port": port, "ring": ring, "reader": reader}
            what = ends.get(end) or port.connect(peer.id)
            thread = threading.Thread(target=interrupt, args=(what, begun))
            thread.start()
            begun.wait()
            what.close()
            reader.close()
            ring.close()
            port.close()
            thread.join()


def test_another_thread_ends_a_wait_for_notifications(port: velo.Port) -> None:
    with velo.Rma(port) as unit:
        threading.Timer(0.05, port.interrupt).start()
        with pytest.raises(velo.Interrupted):
            unit.poll(timeout=PATIENCE_S)


def test_a_try_to_connect_does_not_wait(port: velo.Port) -> None:
    with pytest.raises(velo.NoPeer):
        port.try_connect(port.id ^ 0x80)
    conn = port.try_connect(port.id)
    assert conn is not None
    conn.send(b"x")
    assert port.recv_bytes(timeout=PATIENCE_S) == b"x"


def test_closing_ends_a_send_that_waits(port: velo.Port, conn: velo.Connection) -> None:
    while conn.try_send(b"x" * 8000):
        pass
    threading.Timer(0.05, port.close).start()
    with pytest.raises(velo.Closed):
        conn.send(b"x" * 8000, timeout=PATIENCE_S)


def test_a_signal_handler_runs_in_a_wait_and_the_wait_goes_on(
    port: velo.Port, conn: velo.Connection
) -> None:
    ran = []
    before = signal.signal(signal.SIGALRM, lambda *_: (ran.append(1), conn.send(b"late")))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert port.recv_bytes(PATIENCE_S) == b"late"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ran


def test_a_handler_that_raises_ends_the_wait(port: velo.Port) -> None:
    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, fail)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            port.recv_bytes(PATIENCE_S)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_descriptor_tells_once_after_each_arm(port: velo.Port, conn: velo.Connection) -> None:
    assert port.arm()
    assert select.select([port], [], [], 0.02)[0] == []
    conn.send(b"x")
    assert select.select([port], [], [], PATIENCE_S)[0] == [port]
    assert not port.arm()
    assert port.try_recv_bytes() == b"x"
    assert port.arm()


def test_a_child_cannot_use_the_port_of_its_parent(
    domain: str, port: velo.Port, conn: velo.Connection, fork: Callable[..., Any]
) -> None:
    def child() -> None:
        for call in (port.recv, port.try_recv, port.arm, lambda: conn.send(b"child")):
            with pytest.raises(velo.Closed, match="parent"):
                call()
        port.close()
        with velo.Port(domain=domain) as own:
            own.connect(parent_id, PATIENCE_S).send(b"own")

    parent_id = port.id
    fork(child)
    assert port.recv_bytes(PATIENCE_S) == b"own"
    conn.send(b"parent")
    assert port.recv_bytes(PATIENCE_S) == b"parent"


def test_ports_that_are_open_at_the_end_of_the_process_are_closed(domain: str) -> None:
    with velo.Port(domain=domain, departures=True) as port:
        program = (
            f"import velo; p = velo.Port(domain={domain!r}, node=1);"
            f"c = p.connect({port.id}); c.send(b'x')"
        )
        subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)
        assert port.recv_bytes(PATIENCE_S) == b"x"
        with pytest.raises(velo.PeerClosed):
            port.recv(PATIENCE_S)


def test_the_command_does_not_load_the_binding() -> None:
    program = "import sys, velo.cli; print('velo._velo' in sys.modules, hasattr(velo, 'nonsense'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


@pytest.mark.parametrize(
    ("lacking", "says"), [("_cffi_backend", "pip install cffi"), ("velo._velo", "not installed")]
)
def test_a_binding_that_lacks_something_says_what(lacking: str, says: str) -> None:
    program = (
        f"import sys; sys.modules[{lacking!r}] = None\n"
        "import velo, velo.cli\n"
        "try: velo.Port\nexcept ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert says in done.stdout, done.stderr


WAYS_IN = ["import velo; velo.Queue", "import velo.binding", "import velo.binding.queue"]
"""A queue that another process has pickled takes the last one."""


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_a_free_threaded_python_is_refused_with_a_sentence(way_in: str) -> None:
    """And before a compiled part is loaded; python_free_threaded asks a real one."""
    program = (
        "import sys; sys.abiflags = 't'\n"
        f"try: {way_in}\nexcept ImportError as error: print(error)\n"
        "print([name for name in sys.modules if name.startswith('velo._')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "free-threaded" in done.stdout, done.stderr
    assert done.stdout.endswith("[]\n"), done.stdout


@pytest.mark.parametrize("way_in", WAYS_IN)
@pytest.mark.parametrize("first", ["", "import velo; queue = velo.Queue(); queue.put(1)"])
def test_a_sub_interpreter_is_refused_with_a_sentence(first: str, way_in: str) -> None:
    program = f"""
{first}
import sys
inside = "try: {way_in}\\nexcept ImportError as error: print(error, flush=True)"
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    made = [interpreters.create(config) for config in ("isolated", "legacy")]
else:
    import _xxsubinterpreters as interpreters
    made = [interpreters.create(isolated=isolated) for isolated in (True, False)]
for one in made:
    interpreters.run_string(one, inside)
    interpreters.destroy(one)
{first and "assert queue.get(timeout=5) == 1; queue.close()"}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("not in a sub-interpreter") == 2, (done.stdout, done.stderr)
