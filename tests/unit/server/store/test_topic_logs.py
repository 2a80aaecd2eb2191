"""The logs of one topic: what they cost grows with its partitions, not with the names that others have made."""

import time

import pytest

from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries

#: Of the same question in a store with one other name: 1 is usual, going through all names is at 500 and more.
TIMES = 30


@pytest.fixture(params=["durable", "memory"])
def store(request, tmp_path):
    core = StoreCore(str(tmp_path / "store") if request.param == "durable" else None)
    yield core
    core.close()


def spent(store) -> float:
    """Return the least processor seconds of this thread that the logs of "g" take."""

    def one() -> float:
        begin = time.thread_time()
        for _ in range(20):
            assert [log[0] for log in store.logs("g")] == ["g"]
        return time.thread_time() - begin

    return min(one() for _ in range(5))


def test_they_are_those_of_the_topic(store):
    """Whatever is before, behind and between them, and where partitions are far from each other."""
    places = {("a", 0), ("g", 0), ("ga", 0), ("g", 2), ("h", 2), ("f", 3), ("g", 7), ("g\xe4", 7), ("z", 90_000)}
    for topic, partition in sorted(places):
        append_entries(store, [(topic, "s", b"x")], partition=partition)
        for name in {topic for topic, _ in places} | {"", "missing", "n" * 300, "\ud800"}:
            assert sorted(store.logs(name)) == sorted(log for log in store.logs() if log[0] == name)
    append_entries(store, [("g", "s", b"x")], partition=2**32 - 1)
    assert [log[1] for log in store.logs("g")] == [0, 2, 7, 2**32 - 1]


def test_other_names_cost_it_nothing(store):
    append_entries(store, [("g", "s", b"x"), ("other", "s", b"x")])
    alone = spent(store)
    append_entries(store, [(f"{side}{n}", "s", b"x") for n in range(5000) for side in "az"])
    assert spent(store) < TIMES * alone
