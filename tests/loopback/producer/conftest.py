"""What many tests of the client need: a server that says yes to everything and keeps what it was told."""

from collections.abc import Iterator

import pytest

from tests.support.scripted import Scripted


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    """Run one server for a file's tests; who compares frames empties ``server.frames`` first."""
    with Scripted() as running:
        yield running
