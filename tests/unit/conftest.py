"""No unit test opens a network socket or starts an engine: what needs one is in ``tests/loopback``."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sockets import OpenedSockets

_MANY_OPEN = 100
LISTENER = pytest.StashKey[OpenedSockets]()


@pytest.fixture(autouse=True, scope="module")
def _nothing_left_open() -> Iterator[None]:
    """Collect what a module's tests left: thousands of simulated members keep descriptors until that happens."""
    yield
    if sum(1 for _ in Path("/proc/self/fd").iterdir()) > _MANY_OPEN:
        gc.collect()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Listen from here on, so that fixtures are heard too."""
    item.stash[LISTENER] = OpenedSockets()
    item.stash[LISTENER].begin()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fail the test that opened a network socket."""
    try:
        yield
    finally:
        opened = item.stash[LISTENER].end()
    if opened:
        pytest.fail(f"a unit test opens a network socket ({opened[0]}): its place is tests/loopback", pytrace=False)
