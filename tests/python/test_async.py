# SPDX-License-Identifier: Apache-2.0
"""Waiting in asyncio."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import velo

PATIENCE_S = 20.0


def test_a_task_waits_and_others_go_on(port: velo.Port, conn: velo.Connection) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            task = asyncio.create_task(port.recv_bytes_async())
            for _ in range(3):
                await asyncio.sleep(0.01)
                assert not task.done()
            conn.send(b"one")
            assert await task == b"one"
            for number in range(1000):
                conn.send(number.to_bytes(2, "little"))
                with await port.recv_async() as message:
                    assert int.from_bytes(message.data, "little") == number

    asyncio.run(main())


def test_a_wait_is_cancelled_and_begun_again(port: velo.Port, conn: velo.Connection) -> None:
    async def main() -> None:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await port.recv_async()
        waiting = asyncio.create_task(port.recv_bytes_async())
        await asyncio.sleep(0.01)
        conn.send(b"x")
        async with asyncio.timeout(PATIENCE_S):
            assert await waiting == b"x"

    asyncio.run(main())


def test_several_tasks_wait_for_a_port(port: velo.Port, conn: velo.Connection) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            for cancelled in (0, 1, 2):
                tasks = [asyncio.create_task(port.recv_bytes_async()) for _ in range(3)]
                await asyncio.sleep(0.02)
                tasks.pop(cancelled).cancel()
                for number in range(2):
                    await asyncio.sleep(0.02)
                    conn.send(bytes([number]))
                assert sorted(await asyncio.gather(*tasks)) == [b"\0", b"\1"]

    asyncio.run(main())


def test_several_tasks_wait_for_a_queue() -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            with velo.Queue[int]() as queue:
                tasks = [asyncio.create_task(queue.get_async()) for _ in range(3)]
                for number in range(3):
                    await asyncio.sleep(0.02)
                    queue.put(number)
                assert sorted(await asyncio.gather(*tasks)) == [0, 1, 2]

    asyncio.run(main())


def test_two_loops_wait_for_a_queue() -> None:
    async def take(count: int) -> list[int]:
        async with asyncio.timeout(PATIENCE_S):
            return [await queue.get_async() for _ in range(count)]

    got: list[int] = []
    with velo.Queue[int]() as queue:
        threads = [
            threading.Thread(target=lambda: got.extend(asyncio.run(take(20)))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for number in range(40):
            time.sleep(0.002)
            queue.put(number)
        for thread in threads:
            thread.join(PATIENCE_S)
    assert sorted(got) == list(range(40))


@pytest.mark.parametrize("kind", ["port", "queue"])
@pytest.mark.parametrize("first", ["thread", "task"])
def test_the_loop_goes_on_while_a_thread_receives(
    port: velo.Port,
    conn: velo.Connection,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    first: str,
) -> None:
    """Each gets one of two messages, and is woken by it: nobody finds it later."""
    monkeypatch.setattr("velo.binding.port.LOOK_S", 2 * PATIENCE_S)

    async def main() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        thread = threading.Thread(target=lambda: got.append(wait()))
        if first == "thread":
            thread.start()
            await asyncio.sleep(0.1)
        task = asyncio.create_task(wait_async())
        await asyncio.sleep(0.1)
        if first == "task":
            thread.start()
            await asyncio.sleep(0.1)
        ticking = asyncio.create_task(tick())
        await asyncio.sleep(0.5)
        assert ticks > 10
        send(b"1")
        await asyncio.sleep(0.1)
        send(b"2")
        async with asyncio.timeout(PATIENCE_S):
            got.append(await task)
        thread.join(PATIENCE_S)
        ticking.cancel()

    got: list[bytes] = []
    with velo.Queue[bytes]() as queue:
        wait: Any = port.recv_bytes if kind == "port" else queue.get
        wait_async: Any = port.recv_bytes_async if kind == "port" else queue.get_async
        send: Any = conn.send if kind == "port" else queue.put
        asyncio.run(main())
    assert sorted(got) == [b"1", b"2"]


def test_closing_ends_the_wait(port: velo.Port) -> None:
    async def main() -> None:
        task = asyncio.create_task(port.recv_async())
        await asyncio.sleep(0.01)
        port.close()
        with pytest.raises(velo.Closed):
            async with asyncio.timeout(PATIENCE_S):
                await task

    asyncio.run(main())


def test_a_wait_uses_no_processor(port: velo.Port) -> None:
    async def main() -> float:
        await asyncio.sleep(0)
        begin, begin_cpu = time.monotonic(), time.process_time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await port.recv_async()
        return (time.process_time() - begin_cpu) / (time.monotonic() - begin)

    assert asyncio.run(main()) < 0.1


def test_a_queue_is_waited_for(fork: Callable[..., Any]) -> None:
    def child(queue: velo.Queue[list[int]]) -> None:
        time.sleep(0.05)
        queue.put([1, 2])
        queue.put([3])
        queue.close()

    async def main(queue: velo.Queue[list[int]]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            assert await queue.get_async() == [1, 2]
            assert await queue.get_async() == [3]

    with velo.Queue[list[int]]() as queue:
        fork(child, queue)
        asyncio.run(main(queue))


def test_a_sender_that_dies_is_noticed(domain: str, fork: Callable[..., Any]) -> None:
    def child() -> None:
        own = velo.Port(domain=domain, node=1)
        own.connect(0, PATIENCE_S).send(b"x")
        os.kill(os.getpid(), signal.SIGKILL)

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            assert await port.recv_bytes_async() == b"x"
            with pytest.raises(velo.PeerDead):
                await port.recv_async()

    with velo.Port(domain=domain, vpid=0, departures=True) as port:
        fork(child)
        asyncio.run(main())
