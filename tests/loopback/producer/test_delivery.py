"""Results of messages: waits, callbacks, batches, and accounting that balance at any moment."""

import gc
import itertools
import math
import threading

import pytest

import dataproxy
from tests.support.scripted import Peer, Scripted, ack, refusal, silent


def producer(target: str, **options: object) -> dataproxy.Producer:
    """Return a producer of the group ``g`` that lingers little."""
    return dataproxy.Producer(target, group_id="g", **{"linger": 0.001, **options})


def moody(peer: Peer, frame: bytes) -> None:
    """Refuse for good what says so, else accept."""
    peer.send(refusal(frame, 110, b"bad type") if b"bad" in frame else ack(frame))


def test_a_result_says_where_and_how() -> None:
    with Scripted() as server, producer(server.target) as p:
        got = p.send("s", b"x").result(20)
        assert got.node.endswith(str(server.port))
        assert got.attempts == 1
        assert got.latency > 0


def test_waits_end_and_may_be_repeated() -> None:
    with Scripted(silent) as server:
        p = producer(server.target)
        delivery = p.send("s", b"x")
        batch = p.send_batch("s", [b"y", b"z"])
        for thing in (delivery, batch):
            for timeout in (0, 0.01):
                with pytest.raises(dataproxy.DeliveryPending):
                    thing.result(timeout)
            with pytest.raises(TimeoutError):
                thing.result(0)
            assert not thing.done()
        for timeout in (math.nan, -1, "soon"):
            with pytest.raises(dataproxy.ConfigError, match="a timeout is a number of seconds"):
                delivery.result(timeout)
        server.wait_frames(1)
        for number, frame in list(server.frames):
            server.peers[number].send(ack(frame))
        server.react = lambda peer, frame: peer.send(ack(frame))
        p.flush(math.inf)
        assert delivery.result(math.inf) == delivery.result() == delivery.result(0)
        assert batch.result(1e300).ok
        assert delivery.exception() is None
        assert delivery.done()
        assert batch.done()
        p.close()


def test_nobody_makes_results_by_hand() -> None:
    for kind in (dataproxy.Delivery, dataproxy.BatchDelivery):
        with pytest.raises(TypeError):
            kind()


def test_failures_of_a_batch_name_their_ranges() -> None:
    bodies = [b"good"] * 4 + [b"bad!"] * 2 + [b"good"] * 2
    with Scripted(moody) as server:
        p = producer(server.target, batch_messages=2)
        batch = p.send_batch("s", bodies)
        assert len(batch) == 8
        got = batch.result(20)
        assert (got.accepted, got.delivered, got.ok) == (8, 6, False)
        (failure,) = got.failures
        assert failure[:2] == (4, 2)
        assert failure[2].code == 110
        assert p.close().errors == {110: 2}


def test_callbacks_before_and_after_the_result() -> None:
    held: list[tuple[Peer, bytes]] = []
    with Scripted(lambda peer, frame: held.append((peer, frame))) as server, producer(server.target) as p:
        called: list[str] = []
        both = threading.Barrier(2)
        delivery = p.send("s", b"x")
        delivery.add_done_callback(lambda d: called.append("first"))
        delivery.add_done_callback(lambda d: (called.append("second"), both.wait(20)))
        server.wait(lambda: held)
        assert called == []
        held[0][0].send(ack(held[0][1]))
        both.wait(20)
        assert called == ["first", "second"]
        delivery.result(20)
        delivery.add_done_callback(lambda d: called.append(d))
        assert called[2] is delivery
        delivery.add_done_callback(lambda d: called.append("again"))
        assert called[3] == "again"


def test_callbacks_that_raise_are_logged_and_harm_nobody(caplog) -> None:
    def broken(delivery: dataproxy.Delivery) -> None:
        raise RuntimeError("user code")

    with Scripted() as server, producer(server.target) as p:
        done = threading.Event()
        delivery = p.send("s", b"x")
        delivery.add_done_callback(broken)
        delivery.add_done_callback(lambda d: done.set())
        assert done.wait(20)
        delivery.add_done_callback(broken)
        assert p.send("s", b"y").result(20)
        assert p.stats().callback_errors == 2
    assert sum("user code" in str(record.exc_info) for record in caplog.records) == 1  # the same again: counted only


def test_each_callback_of_a_race_is_called_once() -> None:
    calls = itertools.count()
    with Scripted() as server, producer(server.target, linger=0) as p:

        def work() -> None:
            for _ in range(300):
                delivery = p.send("s", b"x")
                for _ in range(3):
                    delivery.add_done_callback(lambda d: next(calls))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        p.flush(20)
    assert next(calls) == 4 * 300 * 3


def test_on_delivery_gets_one_result_for_each_message() -> None:
    results: list[dataproxy.DeliveryResult] = []
    with Scripted(moody) as server:
        p = producer(server.target, batch_messages=3, on_delivery=results.append)
        for i in range(50):
            p.send_nowait(f"s{i % 2}", b"bad" if i % 5 == 0 else b"fine")
        p.send_batch("s2", [b"fine"] * 20)
        report = p.close()
    assert len(results) == 70
    assert sum(r.delivered is not None for r in results) == report.delivered
    assert sum(r.error is not None for r in results) == report.failed
    assert {r.stream_id for r in results} == {"s0", "s1", "s2"}
    assert all((r.delivered is None) != (r.error is None) for r in results)


def test_a_callback_may_send_and_close() -> None:
    ended = threading.Event()
    with Scripted() as server:
        p = producer(server.target)

        def chain(delivery: dataproxy.Delivery) -> None:
            p.send_nowait("s", b"from the callback")
            p.close()
            ended.set()

        p.send("s", b"x").add_done_callback(chain)
        assert ended.wait(30)
        assert p.close().delivered == 2


def test_results_outlive_their_producer() -> None:
    with Scripted() as server:
        with producer(server.target) as p:
            delivery, batch = p.send("s", b"x"), p.send_batch("s", [b"y"] * 3)
        del p
        gc.collect()
        assert delivery.result().attempts == 1
        assert batch.result().ok
        assert "done" in repr(delivery)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_accounting_balances_in_any_snapshot(threads: int) -> None:
    with Scripted(moody) as server:
        p = producer(server.target, batch_messages=20, buffer_bytes="64KiB", linger=0)
        stop = threading.Event()

        def work(number: int) -> None:
            for i in itertools.count():
                if stop.is_set():
                    return
                p.send_nowait(f"s{number}", b"bad" if i % 50 == 0 else b"x" * (i % 200 + 1))
                if i % 7 == 0:
                    p.send_batch("b", [b"fine"] * 30)

        workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        last = 0
        for _ in range(1000):
            stats = p.stats()
            assert stats.balanced
            assert stats.pending == stats.open + stats.in_flight
            assert 0 <= stats.buffered_bytes <= 65536
            assert stats.accepted >= last
            last = stats.accepted
            assert p.report().balanced
        stop.set()
        for worker in workers:
            worker.join(30)
        report = p.close()
        assert report.balanced
        assert report.pending == 0
        assert report.accepted == len(server.bodies())
        assert report.failed == sum(report.errors.values()) > 0


def test_many_threads_send_and_every_message_arrives_once() -> None:
    with Scripted() as server, producer(server.target, executors=2, connections=4) as p:

        def work(number: int) -> None:
            handle = p.stream(f"s{number}")
            for i in range(500):
                handle.send_nowait(b"%d-%d" % (number, i))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert p.flush(20).delivered == 2000
        bodies = server.bodies()
        assert len(bodies) == len(set(bodies)) == 2000
