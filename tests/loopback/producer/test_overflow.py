"""A full buffer over real sockets: what is kept, what is dropped, and that the two never meet."""

import threading
from collections import Counter

import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy.hub import Hub
from tests.support.scripted import Peer, Scripted, ack, good, silent

DROPPING = ("drop_newest", "drop_oldest")


def producer(target: str, **options: object) -> dataproxy.Producer:
    """Return a producer with one connection that seals packs only when it must."""
    return dataproxy.Producer(target, group_id="g", **{"linger": 60, "connections": 1, **options})


class Held:
    """A proxy that keeps its answers until ``release``."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.held: list[tuple[Peer, bytes]] = []

    def __call__(self, peer: Peer, frame: bytes) -> None:
        self.held.append((peer, frame))
        if self.free.is_set():
            peer.send(ack(frame))

    def release(self) -> None:
        """Answer everything, now and from now on."""
        self.free.set()
        for peer, frame in list(self.held):
            peer.send(ack(frame))


def outcome(delivery: dataproxy.Delivery) -> str:
    """Return how one message ended."""
    error = delivery.exception(30)
    return "delivered" if error is None else type(error).__name__


@pytest.mark.parametrize("mode", DROPPING)
def test_with_all_in_flight_the_newest_is_dropped(mode) -> None:
    hold = Held()
    told: list[dataproxy.DeliveryResult] = []
    with Scripted(hold) as server:
        p = producer(server.target, on_full=mode, buffer_bytes=1040, batch_messages=5, on_delivery=told.append)
        kept = [p.send("s", b"%03d" % i + b"x" * 97) for i in range(10)]
        server.wait_frames(2)
        lost = [p.send("s", b"lost%96d" % i) for i in range(7)]
        assert [d.done() for d in kept + lost] == [False] * 10 + [True] * 7
        with pytest.raises(dataproxy.DeliveryDropped) as caught:
            lost[3].result(0)
        assert str(caught.value) == (
            "dropped on arrival because the buffer was full; send slower, raise buffer_bytes, or check that"
            " the proxies answer [DROPPED]"
        )
        assert (caught.value.retriable, caught.value.details["attempts"]) == (True, 0)
        assert caught.value.details["maybe_delivered"] is False
        stats = p.stats()
        assert (stats.accepted, stats.dropped, stats.pending, stats.buffered_bytes) == (17, 7, 10, 1040)
        assert stats.errors == {"DROPPED": 7}
        hold.release()
        report = p.close(20)
        assert (report.delivered, report.dropped, report.balanced, report.ok) == (10, 7, True, False)
        assert len(server.bodies()) == 10
        assert not any(body.startswith(b"lost") for body in server.bodies())
    assert Counter(type(r.error).__name__ for r in told) == {"NoneType": 10, "DeliveryDropped": 7}
    assert {r.error.details["id"] for r in told if r.error} == {d.id for d in lost}


def test_drop_oldest_keeps_what_is_new_and_what_was_touched() -> None:
    """A proxy that stops reading: what was written, the last of it in part, is delivered; what was not is dropped.

    Which of the others are dropped depends on what the executor writes meanwhile.
    """
    size = 100_000
    with Scripted(good, receive_buffer=4096) as server:
        server.reading.clear()
        p = producer(
            server.target, on_full="drop_oldest", buffer_bytes=40 * (size + 4), batch_messages=1, delivery_timeout=120,
            max_frame_bytes="1MiB",
        )  # fmt: skip
        bodies = [b"%04d" % i + b"x" * (size - 4) for i in range(120)]
        sent = []
        for body in bodies:
            sent.append(p.send("s", body))
            assert p.stats().buffered_bytes <= 40 * (size + 4)
            if len(sent) == 20:
                server.wait(lambda: server.peers)
                while p.stats().connections[0].sent_bytes < 2 * size:  # it fills what the kernel takes
                    threading.Event().wait(0.001)
        assert [d.done() for d in sent].count(True) == 80 == p.stats().dropped
        written = p.stats().connections[0].sent_bytes
        server.reading.set()
        report = p.flush(30)
        assert (report.delivered, report.dropped, report.pending) == (40, 80, 0)
        seen = server.bodies()
        outcomes = [outcome(d) for d in sent]
        assert [body for body, how in zip(bodies, outcomes, strict=True) if how == "delivered"] == seen
        assert set(outcomes) == {"delivered", "DeliveryDropped"}
        touched = -(-written // len(server.frames[0][1]))
        assert outcomes[: min(touched, 2)] == ["delivered"] * min(touched, 2)
        assert p.stats().connections[0].losses == 0  # the stream stayed in step
        p.close(10)


def test_packs_that_no_proxy_could_take_are_dropped_and_the_rest_arrives() -> None:
    with Scripted() as server:
        target, port = server.target, server.port
    p = producer(target, on_full="drop_oldest", buffer_bytes=10_400, batch_messages=10, reconnect_backoff_max=0.01)
    sent = [p.send("s", b"%04d" % i + b"x" * 96) for i in range(1000)]
    assert p.stats().dropped == 900
    with Scripted(port=port) as server:
        assert p.flush(30).delivered == 100
        assert server.bodies() == [b"%04d" % i + b"x" * 96 for i in range(900, 1000)]
        assert [outcome(d) for d in sent] == ["DeliveryDropped"] * 900 + ["delivered"] * 100
        assert p.close(10).balanced


def test_an_open_pack_can_be_the_oldest() -> None:
    with Scripted(silent) as server:
        p = producer(server.target, on_full="drop_oldest", buffer_bytes=1040)
        old = p.send_batch("a", [b"x" * 100] * 4)
        new = p.send_batch("b", [b"x" * 100] * 5)
        p.send("c", b"x" * 200)
        assert (old.done(), new.done(), p.stats().dropped) == (True, False, 4)
        ((first, count, error),) = old.result(0).failures
        assert (first, count, type(error)) == (0, 4, dataproxy.DeliveryDropped)
        p.close(0)


def test_nothing_is_given_up_in_vain() -> None:
    """A message that would not fit even without all that can be given up is dropped alone."""
    with Scripted(silent) as server:
        p = producer(server.target, on_full="drop_oldest", buffer_bytes=2080, batch_messages=10)
        p.send_batch("s", [b"x" * 100] * 10)
        server.wait_frames(1)
        p.send_batch("s", [b"x" * 100] * 3)
        big = p.send("s", b"x" * 1100)
        assert big.done()
        assert (p.stats().dropped, p.stats().open) == (1, 3)
        p.close(0)


@pytest.mark.parametrize("limit", [{"buffer_bytes": 1040}, {"buffer_messages": 10}])
def test_of_a_batch_each_message_is_judged_alone(limit) -> None:
    hold = Held()
    with Scripted(hold) as server:
        p = producer(server.target, on_full="drop_newest", batch_messages=9, **limit)
        first = p.send_batch("s", [b"x" * 100] * 9)
        server.wait_frames(1)
        sizes = [150, 101, 100, 1, 100] if "buffer_bytes" in limit else [100, 1, 1, 1, 1]
        second = p.send_batch("s", [b"y" * n for n in sizes])
        fits = sizes.index(100)
        hold.release()
        assert first.result(20).ok
        p.flush(20)
        result = second.result(20)
        assert (len(second), result.accepted, result.delivered) == (5, 5, 1)
        lost = [n for f in result.failures for n in range(f.first, f.first + f.messages)]
        assert lost == [n for n in range(5) if n != fits]
        assert server.bodies().count(b"y" * 100) == 1
        p.close(10)


@pytest.mark.parametrize("mode", DROPPING)
def test_columns_and_record_batches_drop_too(mode) -> None:
    with Scripted(silent) as server:
        p = producer(server.target, on_full=mode, buffer_bytes=1040, batch_messages=5)
        p.send_batch("s", [b"x" * 100] * 10)
        server.wait_frames(2)
        rows = pa.record_batch({"v": [b"x" * 100] * 30, "s": ["s", "t", "u"] * 10})
        assert send_record_batch(p, rows, value=0, stream_id=1, group="g")[:3] == (30, 0, 0)
        chunks = pa.chunked_array([[b"x" * 100] * 20, [b"x" * 100] * 5])
        result = p.send_arrow("s", chunks).result(0)
        assert (result.accepted, result.delivered) == (25, 0)
        stats = p.stats()
        assert (stats.accepted, stats.dropped, stats.pending, stats.balanced) == (65, 55, 10, True)
        p.close(0)


def test_a_bad_message_is_refused_even_when_full() -> None:
    with Scripted(silent) as server:
        p = producer(server.target, on_full="drop_newest", buffer_bytes=1040)
        p.send_batch("s", [b"x" * 100] * 10)
        for call in (lambda: p.send("s", b""), lambda: p.send_batch("s", [b"x", b""])):
            with pytest.raises(dataproxy.InvalidMessageError):
                call()
        assert p.stats().accepted == 10
        p.close(0)
        with pytest.raises(dataproxy.ClosedError):
            p.send("s", b"x" * 100)


def test_the_texts_of_a_full_buffer() -> None:
    with Scripted(silent) as server:
        hint = "send slower, raise buffer_bytes, or check that the proxies answer (stats())"
        p = producer(server.target, on_full="raise", buffer_bytes=1040)
        p.send_batch("s", [b"x" * 100] * 10)
        with pytest.raises(dataproxy.BufferFullError) as caught:
            p.send("s", b"x")
        assert str(caught.value) == f"the buffer of 1040 bytes is full (on_full='raise'); {hint} [BUFFER_FULL]"
        p.close(0)
        p = producer(server.target, max_block=0.25, buffer_bytes=1040)
        with pytest.raises(dataproxy.BufferFullError) as caught:
            p.send_batch("s", [b"x" * 100] * 11)
        assert str(caught.value) == (
            "the buffer of 1040 bytes is full and no room came within max_block=0.25 s; 10 messages of this call were"
            f" accepted; {hint} [BUFFER_FULL]"
        )
        p.close(0)


def test_a_blocked_call_ends_although_room_comes_again_and_again() -> None:
    """Every answer makes room and comes only after the sender has filled what it had: the call itself is bounded."""
    raised = threading.Event()

    def react(peer: Peer, frame: bytes) -> None:
        if not raised.wait(0.02):  # slow enough that all of the batch cannot be through
            peer.send(ack(frame))

    with Scripted(react) as server:
        p = producer(server.target, max_block=0.3, buffer_bytes=1040, batch_messages=10)
        with pytest.raises(dataproxy.BufferFullError) as caught:
            p.send_batch("s", [b"x" * 100] * 100_000)
        raised.set()
        assert caught.value.details["accepted"] == p.stats().accepted
        p.close(0)


class Watch:
    """Read the statistics until told to stop; keep what broke a limit."""

    def __init__(self, p: dataproxy.Producer) -> None:
        self.p = p
        self.stop = threading.Event()
        self.broken: list[object] = []
        self.looks = 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        """Look until ``stop`` is set."""
        config = self.p.config
        while not self.stop.is_set():
            stats = self.p.stats()
            self.looks += 1
            over = stats.pending > config.buffer_messages if config.buffer_messages else False
            if stats.buffered_bytes > config.buffer_bytes or over or not stats.balanced:
                self.broken.append(stats)

    def end(self) -> list[object]:
        """Stop looking and return what broke a limit."""
        self.stop.set()
        self.thread.join()
        return self.broken


@pytest.mark.parametrize("mode", ["block", "raise", *DROPPING])
@pytest.mark.parametrize("executors", [1, 3])
def test_what_the_hub_stored_is_what_was_delivered_to_the_message(mode, executors) -> None:
    """Four threads send without regard to a small buffer; afterwards every message is accounted for by name."""
    threads, each = 4, 3000
    told: list[dataproxy.DeliveryResult] = []
    with Hub() as hub:
        p = dataproxy.Producer(
            hub.target, group_id="g", on_full=mode, buffer_bytes=20_000, buffer_messages=300, batch_messages=20,
            linger=0.001, executors=executors, on_delivery=told.append,
        )  # fmt: skip
        watch = Watch(p)
        fates: list[dict[bytes, str]] = [{} for _ in range(threads)]

        def work(which: int) -> None:
            waiting = []
            for i in range(0, each, 3):
                bodies = [b"%d:%d:" % (which, i + k) + b"x" * (i % 90) for k in range(3)]
                try:
                    waiting.append((bodies[:1], p.send("s", bodies[0])))
                except dataproxy.BufferFullError:
                    fates[which][bodies[0]] = "not accepted"
                try:
                    waiting.append((bodies[1:], p.send_batch("s", bodies[1:])))
                except dataproxy.BufferFullError as error:
                    taken = error.details["accepted"]  # one, when another thread came in between
                    fates[which].update(dict.fromkeys(bodies[1 : 1 + taken], "delivered"))
                    fates[which].update(dict.fromkeys(bodies[1 + taken :], "not accepted"))
            p.flush(60)
            for bodies, delivery in waiting:
                if isinstance(delivery, dataproxy.Delivery):
                    fates[which][bodies[0]] = outcome(delivery)
                else:
                    result = delivery.result(30)
                    fates[which].update(dict.fromkeys(bodies, "delivered"))
                    for failure in result.failures:
                        for n in range(failure.first, failure.first + failure.messages):
                            fates[which][bodies[n]] = type(failure.error).__name__

        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert watch.end() == []
        report = p.close(20)
        stored = Counter(record.body for record in hub.records("g"))
    fate = {body: how for one in fates for body, how in one.items()}
    count = Counter(fate.values())
    assert len(fate) == threads * each
    assert stored == Counter(body for body, how in fate.items() if how == "delivered")
    assert report.balanced
    assert (report.delivered, report.dropped) == (count["delivered"], count["DeliveryDropped"])
    assert report.accepted == threads * each - count["not accepted"]
    assert Counter(type(r.error).__name__ for r in told) == Counter(
        {"NoneType": report.delivered, "DeliveryDropped": report.dropped} if report.dropped
        else {"NoneType": report.delivered}
    )  # fmt: skip
    assert set(count) <= {"delivered", {"block": "", "raise": "not accepted"}.get(mode, "DeliveryDropped")}


def test_dropped_messages_take_no_memory_however_slow_the_callback() -> None:
    """With a callback that stands still, 20,000 drops on two streams are two entries, and all are told of."""
    go = threading.Event()
    told: Counter[str] = Counter()

    def slow(result: dataproxy.DeliveryResult) -> None:
        go.wait(60)
        told[f"{result.stream_id} {type(result.error).__name__}"] += 1

    with Scripted(silent) as server:
        p = producer(server.target, on_full="drop_newest", buffer_messages=1, on_delivery=slow)
        p.send("a", b"x")
        for _ in range(10):
            p.send_batch("a", [b"x"] * 1000)
            p.send_batch("b", [b"x"] * 1000)
        before = p.send("a", b"x")
        assert before.id.count(".") == 1
        go.set()
        report = p.close(0)
    assert report.dropped == 20_001
    assert told == {"a DeliveryDropped": 10_001, "b DeliveryDropped": 10_000, "a DeliveryFailed": 1}


@pytest.mark.parametrize("mode", DROPPING)
def test_ids_of_the_caller_stay_with_dropped_messages(mode) -> None:
    go = threading.Event()
    told: list[str] = []
    mine: list[str] = []

    def slow(result: dataproxy.DeliveryResult) -> None:
        go.wait(60)
        told.append(result.error.details["id"])

    with Scripted(silent) as server:
        p = producer(server.target, on_full=mode, buffer_messages=5, batch_messages=5, on_delivery=slow)
        p.send_batch("s", [b"x"] * 5, message_ids=[f"kept{i}" for i in range(5)])
        server.wait_frames(1)
        one = p.send("s", b"x", message_id="one", on_delivery=lambda r: mine.append(r.error.details["id"]))
        plain = p.send("s", b"x")
        many = p.send_batch("s", [b"x"] * 4, message_ids=[f"n{i}" for i in range(4)])
        assert (one.id, many.ids()) == ("one", ["n0", "n1", "n2", "n3"])
        assert many.result(0).failures[0].error.details["id"] == "n0"
        go.set()
        p.close(0)
    assert sorted(told) == sorted(["one", plain.id, "n0", "n1", "n2", "n3", *(f"kept{i}" for i in range(5))])
    assert mine == ["one"]


def test_what_was_given_up_can_be_had_back() -> None:
    with Scripted() as server:
        target = server.target
    p = producer(target, on_full="drop_oldest", buffer_bytes=1040, batch_messages=5, undelivered_bytes="1MiB")
    for i in range(30):
        p.send_nowait("s", b"%03d" % i + b"x" * 97)
    report = p.close(0)
    lost = list(p.undelivered())
    assert [(x.body[:3], type(x.error)) for x in lost if isinstance(x.error, dataproxy.DeliveryDropped)] == [
        (b"%03d" % i, dataproxy.DeliveryDropped) for i in range(20)
    ]
    assert (report.dropped, report.failed, report.not_kept, len(lost)) == (20, 10, 0, 30)
    p = producer(target, on_full="drop_newest", buffer_bytes=1040, undelivered_bytes="1MiB")
    for _ in range(13):
        p.send_nowait("s", b"x" * 100)
    assert (p.close(0).not_kept, len(list(p.undelivered()))) == (3, 10)
