"""No unit test opens a network socket or starts an engine: what needs one is in ``tests/loopback``."""

from collections.abc import Iterator

import pytest

from tests.support.sockets import OpenedSockets

LISTENER = pytest.StashKey[OpenedSockets]()


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
