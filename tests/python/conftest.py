# SPDX-License-Identifier: Apache-2.0
"""What the tests of the binding share: ports in a domain of their own, and other processes."""

import multiprocessing
import os
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

import velo

PATIENCE_S = 20.0
"""Longer than anything here takes; a wait that ends with it has failed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """CTest sees a file as one test, so it would not see one that is skipped in it."""
    report = yield
    if report.skipped and "VELO_BUILD_DIR" in os.environ:
        report.outcome = "failed"
    return report


@pytest.fixture
def domain(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses now."""
    return f"py-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**8}"


@pytest.fixture
def port(domain: str) -> Iterator[velo.Port]:
    with velo.Port(domain=domain) as port:
        yield port


@pytest.fixture
def conn(port: velo.Port) -> velo.Connection:
    """From the port to itself."""
    return port.connect(port.id, 0)


@pytest.fixture
def fork() -> Iterator[Callable[..., Any]]:
    """Start a function in a child; it must end well, unless it was killed on purpose."""
    context = multiprocessing.get_context("fork")
    children = []

    def start(function: Callable[..., None], *args: Any) -> Any:
        child = context.Process(target=function, args=args)
        child.start()
        children.append(child)
        return child

    yield start
    for child in children:
        child.join(PATIENCE_S)
        killed = child.exitcode is None
        child.kill()
        assert not killed, "a child did not end"
        assert child.exitcode in (0, -9), child.exitcode
