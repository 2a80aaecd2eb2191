"""Stores for the tests of the de-duplication window."""

import pytest

from dataproxy._core.server.store.core import StoreCore


@pytest.fixture(params=[True, False], ids=["durable", "memory"])
def make(request, tmp_path):
    """Return a function that opens the test's store, again if it is durable."""
    opened = []

    def open_store(**options) -> StoreCore:
        for store in opened:
            store.close()
        opened.append(StoreCore(str(tmp_path) if request.param else None, **{"dedupe_ids": 1000, **options}))
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()
