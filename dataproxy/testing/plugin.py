"""Pytest plugin: ``pytest_plugins = ["dataproxy.testing.plugin"]`` gives tests the fixture ``dataproxy_hub``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dataproxy.hub import Hub

__all__ = ["dataproxy_hub"]


@pytest.fixture
def dataproxy_hub() -> Iterator[Hub]:
    """Give the test a hub of its own, in memory, on free loopback ports; it is closed afterwards."""
    with Hub() as hub:
        yield hub
