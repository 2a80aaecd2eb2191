"""Pytest plugin, found by its entry point: fixtures with hubs in memory, on ports of their own.

Nothing of the package is loaded before a test asks for a fixture.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dataproxy.hub import Faults, Hub

__all__ = ["dataproxy_faults", "dataproxy_hub", "dataproxy_hub_session", "dataproxy_hubs"]


@contextlib.contextmanager
def _factory() -> Iterator[Callable[..., Hub]]:
    from dataproxy.hub import Hub

    with contextlib.ExitStack() as started:

        def start(store: Any = None, **options: Any) -> Hub:
            return started.enter_context(Hub(store, **options))

        yield start


@pytest.fixture
def dataproxy_hubs() -> Iterator[Callable[..., Hub]]:
    """Give the test a function that starts hubs, with any option of ``Hub``; they are closed afterwards."""
    with _factory() as start:
        yield start


@pytest.fixture
def dataproxy_hub(dataproxy_hubs: Callable[..., Hub]) -> Hub:
    """Give the test a hub of its own, in memory, on free loopback ports; it is closed afterwards."""
    return dataproxy_hubs()


@pytest.fixture
def dataproxy_faults(dataproxy_hub: Hub) -> Iterator[Faults]:
    """Give the test the faults of its ``dataproxy_hub``; they are removed before the hub closes."""
    with dataproxy_hub.faults as faults:
        yield faults


@pytest.fixture(scope="session")
def dataproxy_hub_session() -> Iterator[Hub]:
    """Give all tests of a process the same hub; use different groups to keep tests apart."""
    with _factory() as start:
        yield start()
