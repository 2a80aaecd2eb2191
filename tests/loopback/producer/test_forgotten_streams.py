"""A stream goes with the last thing that refers to it, and not before."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from tests.native.probe_streams import least_body, table
from tests.support.scripted import Peer, Scripted, ack, good, silent

MANY = 12_000
KEPT_NAMES = 4096


@pytest.fixture
def server() -> Any:
    with Scripted() as running:
        yield running


def producer(target: str, **options: Any) -> dataproxy.Producer:
    """Return a producer of group g with one connection."""
    return dataproxy.Producer(target, group_id="g", **{"connections": 1, "linger": 0.001, **options})


def settled(p: dataproxy.Producer, by_name: Collection[str] = ()) -> None:
    """Wait until nothing is left but the handles by name: a pack is given back after its result was told."""
    wanted = {(name, ""): 1 for name in by_name}
    deadline = time.monotonic() + 30
    while table(p) != wanted and time.monotonic() < deadline:
        p.flush(30)
    assert table(p) == wanted


def churn(p: dataproxy.Producer, n: int = 300) -> None:
    """Make and forget streams, so that memory which was given back is written over."""
    for i in range(n):
        p.stream(f"other-{i % 7}", attrs={"k": "v" * (i % 90)})


def test_a_handle_without_messages_goes_at_once(server: Scripted) -> None:
    with producer(server.target) as p:
        handle = p.stream("s", attrs={"a": "1"})
        again = p.stream("s", attrs={"a": "1"})
        assert table(p) == {("s", "a=1"): 2}
        del handle
        assert table(p) == {("s", "a=1"): 1}
        bound = again.send_nowait
        del again
        assert table(p) == {("s", "a=1"): 1}
        bound(b"x")
        del bound
        settled(p)
    assert server.bodies() == [b"x"]


@pytest.mark.parametrize("way", ["send_nowait", "send", "send_batch"])
def test_forgotten_handles_keep_nothing(server: Scripted, way: str) -> None:
    most = 0
    with producer(server.target) as p:
        for i in range(MANY):
            handle = p.stream(f"s{i}", attrs={"a": "1"} if i % 2 else None)
            if i % 4 < 3:
                getattr(handle, way)([b"x"] if way == "send_batch" else b"x")
            del handle
            if i % 1000 == 999:
                p.flush(30)
                most = max(most, len(table(p)))
        settled(p)
        assert p.report().delivered == MANY // 4 * 3
    assert most < 1100, "what had its result was given back while others were made"


def test_names_of_calls_are_kept_while_they_are_used(server: Scripted) -> None:
    with producer(server.target) as p:
        most = 0
        for i in range(3 * KEPT_NAMES):
            p.send_nowait(f"once-{i}", b"x", group_id="h" if i % 2 else None)
            if i % 256 == 0:
                p.send_nowait("always", b"x")
            if i % 256 == 255:  # just before it is used again
                p.flush(30)
                known = table(p)
                assert ("always", "") in known
                most = max(most, len(known))
        assert most <= 2 * KEPT_NAMES + 256
    assert len(server.bodies()) == 3 * KEPT_NAMES + 3 * KEPT_NAMES // 256


def test_a_stream_outlives_its_handle_while_messages_are_open(server: Scripted) -> None:
    with producer(server.target, linger=60) as p:
        p.stream("pending", attrs={"a": "1"}).send_nowait(b"first")
        churn(p)
        assert set(table(p)) == {("pending", "a=1")}
        p.stream("pending", attrs={"a": "1"}).send_nowait(b"second")
        churn(p)
        settled(p)
    ((_, frame),) = server.frames
    assert b"groupId=g&streamId=pending&a=1&" in frame
    assert server.bodies() == [b"first", b"second"]


def test_a_stream_outlives_its_handle_while_a_frame_is_unanswered() -> None:
    held: list[tuple[Peer, bytes]] = []
    with Scripted(lambda peer, frame: held.append((peer, frame))) as server, producer(server.target, linger=0) as p:
        p.stream("pending").send_nowait(b"x")
        server.wait_frames(1)
        churn(p)
        assert set(table(p)) == {("pending", "")}
        server.react = good
        peer, frame = held.pop()
        peer.send(ack(frame))
        settled(p)


def test_what_is_undelivered_keeps_its_names() -> None:
    with Scripted(silent) as server:
        p = producer(server.target)
        for i in range(200):
            p.stream(f"s{i}", attrs={"a": f"{i}"}).send_nowait(b"%d" % i)
        p.close(0)
        assert len(table(p)) == 200
        lost = [(one.stream_id, one.attrs["a"], bytes(one.body)) for one in p.undelivered()]
        assert sorted(lost) == sorted((f"s{i}", f"{i}", b"%d" % i) for i in range(200))
        assert table(p) == {}


@pytest.mark.parametrize("on_full", ["drop_newest", "drop_oldest"])
def test_reports_name_streams_whose_handles_are_gone(on_full: str) -> None:
    told: list[str] = []
    may_go = threading.Event()

    def hear(result: dataproxy.DeliveryResult) -> None:
        may_go.wait(30)
        told.append(result.stream_id)

    options = {"on_full": on_full, "buffer_bytes": 3000, "linger": 60, "undelivered_bytes": 0}
    with Scripted(silent) as server:
        p = producer(server.target, on_delivery=hear, **options)
        for i in range(100):
            p.stream(f"s{i}").send_nowait(bytes(100))
            churn(p, 10)
        may_go.set()
        p.close(0)
        assert sorted(told) == sorted(f"s{i}" for i in range(100))
        assert table(p) == {}


def test_key_queues_outlive_the_handles_that_share_them(server: Scripted) -> None:
    with producer(server.target, ordering="key") as p:
        for i in range(2000):
            p.stream("s", attrs={"a": f"{i % 5}"}).send_nowait(b"%d" % i, key="k")
            if i % 100 == 0:
                churn(p, 20)
        settled(p)
    assert server.bodies() == [b"%d" % i for i in range(2000)]


def test_staged_messages_keep_their_streams(server: Scripted) -> None:
    with producer(server.target, linger=60) as p:
        for i in range(600):
            p.stream(f"s{i}").send_nowait(b"%d" % i)
        for i in range(600):
            p.stream(f"new-{i}").send_nowait(b"new-%d" % i)
            if i % 50 == 0:
                churn(p, 20)
        settled(p)
    sent = {(attrs["streamId"], body) for body, attrs in server.messages()}
    assert sent == {(f"s{i}", b"%d" % i) for i in range(600)} | {(f"new-{i}", b"new-%d" % i) for i in range(600)}


def test_record_batches_find_their_streams_again(server: Scripted) -> None:
    names = [f"s{i}" for i in range(50)]
    batch = pa.record_batch({"v": [f"{i}".encode() for i in range(500)], "s": [names[i % 50] for i in range(500)]})
    with producer(server.target) as p:
        for _ in range(20):
            send_record_batch(p, batch, value=0, stream_id=1, group="g")
            churn(p, 20)
        settled(p, set(names))
    assert len(server.bodies()) == 20 * 500


def test_threads_that_make_use_and_forget_the_same_streams(server: Scripted) -> None:
    def work(p: dataproxy.Producer, seed: int) -> None:
        for i in range(600):
            handle = p.stream(f"s{(i * seed) % 5}", attrs={"a": "1"} if i % 3 else None)
            handle.send_nowait(b"%d" % i)
            if i % 7 == seed:
                p.send_nowait(f"s{i % 5}", b"by name")

    with producer(server.target, linger=0, executors=2, connections=2) as p:
        threads = [threading.Thread(target=work, args=(p, seed)) for seed in range(1, 5)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        settled(p, {f"s{i}" for i in range(5)})
        assert p.report().ok


def test_handles_may_be_the_last_that_know_their_producer() -> None:
    with Scripted() as server:
        p = producer(server.target)
        handles = [p.stream(f"s{i}") for i in range(100)]
        p.send_nowait("s", b"x")
        cycle = [p, handles]
        cycle.append(cycle)
        p.close()
        del p, cycle
        gc.collect()
        with pytest.raises(dataproxy.ClosedError):
            handles[0].send_nowait(b"late")
        del handles
        gc.collect()


def test_a_refused_stream_leaves_nothing_behind(server: Scripted) -> None:
    with producer(server.target, max_frame_bytes=4096) as p:
        fits = least_body(p)
        with pytest.raises(dataproxy.InvalidMessageError, match="leave no room for a body"):
            p.stream("s", attrs={"k": "v" * 4096})
        assert table(p) == {}
        assert least_body(p) == fits


class Counting(dataproxy.Producer):
    """Count the streams that Python was asked for."""

    asked = 0

    def stream(self, *names: Any, **options: Any) -> Any:
        """Return the stream, counted."""
        self.asked += 1
        return super().stream(*names, **options)


def rows(names: Collection[str | None]) -> pa.RecordBatch:
    """Return a record batch with one message for each name."""
    return pa.record_batch(
        {"value": pa.array([b"x"] * len(names), pa.binary()), "stream": pa.array(names, pa.string())}
    )


def test_a_record_batch_asks_python_for_one_of_its_new_streams(server: Scripted) -> None:
    names = [f"s{i}" for i in range(1_000)]
    with Counting(server.target, group_id="g", connections=1, linger=0.001) as p:
        for _ in range(2):
            assert send_record_batch(p, rows(names), value=0, stream_id=1, group="g")[0] == 1_000
            settled(p, names)
        assert p.asked == 1
        p.send("s7", b"x", group_id="g")
        assert p.asked == 1, "the handles by name are those of other calls"


def test_unusual_names_of_a_record_batch_are_judged_by_python(server: Scripted) -> None:
    names = ["plain", "in the middle", "a" * 256, " blank", "a&b", "a=b", "a" * 257, "\x7f", "\u00e4", "", None]
    refused: list[tuple[int, str, str]] = []
    with Counting(server.target, group_id="g", connections=1, linger=0.001) as p:
        assert send_record_batch(p, rows(names), value=0, stream_id=1, group="g", refused=refused)[0] == 3
        assert [(row, code) for row, code, _ in refused] == [(row, "BAD_NAME") for row in range(3, 11)]
        settled(p, names[:3])


def test_new_streams_of_a_record_batch_that_is_refused_are_forgotten(server: Scripted) -> None:
    with Counting(server.target, group_id="g", connections=1, linger=0.001) as p:
        for _ in range(3):
            with pytest.raises(dataproxy.InvalidMessageError):
                send_record_batch(p, rows([*(f"s{i}" for i in range(200)), "a&b"]), value=0, stream_id=1, group="g")
            settled(p)
