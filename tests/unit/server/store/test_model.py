"""Random appends, retention and reopening against a model in plain Python."""

import shutil
import tempfile
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once

NAMES = st.sampled_from(["a", "b", "c"])
ENTRIES = st.lists(st.tuples(NAMES, NAMES, st.integers(0, 3000)), min_size=1, max_size=20)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2), ENTRIES),
        st.tuples(st.just("retain"), st.integers(0, 60), st.none()),
        st.tuples(st.just("reopen"), st.none(), st.none()),
    ),
    max_size=12,
)
RETENTION_BYTES = 20_000
RETENTION_MS = 30


class Model:
    """Keep what a store should hold: log -> [(offset, stream, value, receive_ms)]."""

    def __init__(self) -> None:
        self.logs = defaultdict(list)
        self.next = defaultdict(int)

    def append(self, partition: int, entries: list, now_ms: int) -> None:
        for group, stream, size in entries:
            log = group, partition
            self.logs[log].append((self.next[log], stream, bytes(size), now_ms))
            self.next[log] += 1

    def retain(self, now_ms: int) -> None:
        for log in self.logs.values():
            while log and (
                sum(len(entry[2]) + HEADER for entry in log) > RETENTION_BYTES or log[0][3] < now_ms - RETENTION_MS
            ):
                log.pop(0)


HEADER = 50 + len("127.0.0.1")


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])
@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_the_store_agrees_with_the_model(durable, steps):
    path = tempfile.mkdtemp() if durable else None
    limits = {"retention_bytes": RETENTION_BYTES, "retention_ms": RETENTION_MS}
    store = StoreCore(path, **limits)
    model = Model()
    now_ms = 1000
    try:
        for kind, number, entries in steps:
            if kind == "append":
                now_ms += 1
                model.append(number, entries, now_ms)
                made = [(group, stream, bytes(size)) for group, stream, size in entries]
                append_entries(store, made, partition=number, receive_ms=now_ms)
            elif kind == "retain":
                now_ms += number
                model.retain(now_ms)
                while retain_once(store, now_ms):
                    pass
            elif durable:
                store.close()
                store = StoreCore(path, **limits)
            _compare(store, model)
    finally:
        store.close()
        if durable:
            shutil.rmtree(path)


def _compare(store: StoreCore, model: Model) -> None:
    assert {log[:2] for log in store.logs()} == set(model.next)
    for topic, partition, first, following, entries, records, size in store.logs():
        log = model.logs[topic, partition]
        assert following == model.next[topic, partition]
        assert first == (log[0][0] if log else following)
        assert (entries, records, size) == (len(log), len(log), sum(len(entry[2]) + HEADER for entry in log))
        found = store.read(topic, partition, 0, max_bytes=1 << 30)
        assert [(offset, head[3], value, head[0]) for offset, head, value in found] == log
        for stream in "abc":
            wanted = [entry[0] for entry in log if entry[1] == stream]
            assert store.stream_offsets(topic, partition, stream, 0, 10_000) == wanted
            found = store.read(topic, partition, 0, max_bytes=1 << 30, stream=stream)
            assert [entry[0] for entry in found] == wanted
    for (topic, stream), (entries, _, _) in store.counts().items():
        held = [e for (name, _), log in model.logs.items() if name == topic for e in log if e[1] == stream]
        assert entries == len(held)
