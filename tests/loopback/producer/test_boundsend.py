"""``send_nowait`` in all the ways in which it can be called: the quick way and the written one do the same."""

import copy
import gc
import inspect
import os
import pickle
import pydoc
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, wraps

import pytest

import dataproxy
from dataproxy._core.producer.ingest.stream import BoundSend, Stream
from tests.support.scripted import Scripted

GC_HEAD = 16


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as server:
        yield server


@pytest.fixture
def producer(server) -> Iterator[dataproxy.Producer]:
    with dataproxy.Producer(server.target, group_id="g", linger=60) as producer:
        yield producer


def ways(producer: dataproxy.Producer) -> dict[str, Callable[..., None]]:
    """Return every way to call it, without the stream's name."""
    stream = producer.stream("s")
    return {
        "bound": stream.send_nowait,
        "written out": lambda *args, **options: stream.send_nowait(*args, **options),
        "of the class": partial(Stream.send_nowait, stream),
        "by __call__": stream.send_nowait.__call__,
        "of the producer": partial(producer.send_nowait, "s"),
        "of the producer's class": partial(dataproxy.Producer.send_nowait, producer, "s"),
    }


def test_every_way_sends_what_it_was_given(server, producer) -> None:
    sent = []
    for name, send in ways(producer).items():
        given = [f"{name} {number}".encode() for number in range(5)]
        assert send(given[0]) is None
        assert send(body=given[1]) is None
        send(bytearray(given[2]))
        send(memoryview(given[3]))
        send(given[4], attrs={"k": "v"}, message_id="m", dt=1_577_836_800_000)
        sent += given
    producer.flush(30)
    assert sorted(server.bodies()) == sorted(sent)


@pytest.mark.parametrize(
    ("error", "args", "options"),
    [
        (TypeError, (), {}),
        (TypeError, (b"x", b"y"), {}),
        (TypeError, (b"x",), {"other": 1}),
        (TypeError, (b"x",), {"body": b"y"}),
        (dataproxy.InvalidMessageError, ("text",), {}),
        (dataproxy.InvalidMessageError, (None,), {}),
        (dataproxy.InvalidMessageError, (b"",), {}),
        (dataproxy.InvalidMessageError, (b"x" * 2_000_000,), {}),
        (dataproxy.InvalidMessageError, (b"x",), {"message_id": "a&b"}),
        (dataproxy.ConfigError, (b"x",), {"key": "k"}),
    ],
)
def test_every_way_refuses_with_the_same_error(producer, error, args, options) -> None:
    texts = set()
    for send in ways(producer).values():
        with pytest.raises(error) as caught:
            send(*args, **options)
        texts.add(str(caught.value) if error is not TypeError else "")
    assert len(texts) == 1
    assert producer.stats().accepted == 0


@pytest.mark.parametrize("limit", [5000, 40_000])
def test_the_largest_body_is_the_same_in_every_way(server, limit) -> None:
    with dataproxy.Producer(server.target, group_id="g", max_frame_bytes=limit) as producer:
        largest = {}
        for name, send in ways(producer).items():
            for size in range(limit, 0, -1):
                try:
                    send(b"x" * size)
                except dataproxy.InvalidMessageError:
                    continue
                largest[name] = size
                break
        assert len(set(largest.values())) == 1


def test_lines_are_looked_at_in_every_way(server) -> None:
    with dataproxy.Producer(server.target, group_id="g", message_type=3) as producer:
        for send in ways(producer).values():
            send(b"a line")
            with pytest.raises(dataproxy.InvalidMessageError, match="line"):
                send(b"two\nlines")
        assert producer.stats().accepted == len(ways(producer))


def test_a_full_buffer_and_a_closed_producer_raise_in_every_way(server) -> None:
    producer = dataproxy.Producer(server.target, group_id="g", linger=60, buffer_bytes=1024, on_full="raise")
    every = ways(producer)
    for _ in range(4):
        producer.send_nowait("s", b"x" * 252)
    for send in every.values():
        with pytest.raises(dataproxy.BufferFullError):
            send(b"x")
    producer.close(0)
    for send in every.values():
        with pytest.raises(dataproxy.ClosedError):
            send(b"x")
    assert producer.report().balanced
    assert producer.report().accepted == 4


def test_many_open_packs_and_small_ones_make_no_difference(server) -> None:
    with dataproxy.Producer(server.target, group_id="g", linger=60, batch_messages=3) as producer:
        streams = [producer.stream(f"s{number}") for number in range(600)]
        for number in range(5):
            for stream in streams:
                stream.send_nowait(b"%d" % number)
        assert producer.flush(30).delivered == 3000
    assert sorted(server.bodies()) == sorted(b"%d" % number for number in range(5) for _ in range(600))


def test_a_subclass_may_send_otherwise(server) -> None:
    class Loud(dataproxy.Producer):
        def send_nowait(self, stream_id, body, **options):  # type: ignore[no-untyped-def]
            super().send_nowait(stream_id, body.upper(), **options)

    with Loud(server.target, group_id="g") as producer:
        producer.send_nowait("s", b"abc")
        producer.stream("s").send_nowait(b"def")
    assert sorted(server.bodies()) == [b"ABC", b"def"]


def test_what_is_no_producer_or_stream_is_refused(producer) -> None:
    for call in (
        lambda: Stream.send_nowait(producer, b"x"),
        lambda: Stream.send_nowait(None, b"x"),
        lambda: Stream.send_nowait(),
        lambda: dataproxy.Producer.send_nowait(producer.stream("s"), "s", b"x"),
        lambda: Stream.__dict__["send_nowait"].__get__(producer),
        BoundSend,
    ):
        with pytest.raises(TypeError):
            call()  # type: ignore[operator]


def test_it_looks_like_a_bound_method(producer) -> None:
    stream = producer.stream("s")
    send = stream.send_nowait
    assert send.__self__ is stream
    assert send.__func__ is Stream.send_nowait
    assert send.__name__ == "send_nowait"
    assert send.__qualname__ == "Stream.send_nowait"
    assert send.__doc__ == Stream.send_nowait.__doc__
    assert "one message" in (send.__doc__ or "")
    assert repr(send) == "<bound method Stream.send_nowait of <Stream g/s>>"
    assert str(inspect.signature(send)) == "(body, *, attrs=None, dt=None, message_id=None, key=None)"
    assert list(inspect.signature(Stream.send_nowait).parameters)[:2] == ["self", "body"]
    assert inspect.isroutine(send)
    assert inspect.isroutine(Stream.send_nowait)
    assert "message_id" in pydoc.render_doc(send)
    assert "send_nowait" in pydoc.render_doc(Stream)
    assert wraps(send)(lambda _body: None).__name__ == "send_nowait"
    with pytest.raises(AttributeError):
        send.other  # noqa: B018


def test_equal_where_the_stream_is_the_same(producer) -> None:
    one, other = producer.stream("s"), producer.stream("t")
    assert one.send_nowait == one.send_nowait
    assert hash(one.send_nowait) == hash(one.send_nowait)
    assert one.send_nowait != other.send_nowait
    assert one.send_nowait != one.send
    assert len({one.send_nowait, one.send_nowait, other.send_nowait}) == 2


def test_copied_but_not_pickled(server, producer) -> None:
    send = producer.stream("s").send_nowait
    copy.copy(send)(b"copied")
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(send)
    assert pickle.loads(pickle.dumps(Stream.send_nowait)) is Stream.send_nowait
    producer.flush(30)
    assert list(server.bodies()) == [b"copied"]


def cycle(server: Scripted) -> "weakref.ref[object]":
    """Return a reference to what a closed producer's callback holds: a cycle that nothing else holds."""
    held: list[object] = []
    producer = dataproxy.Producer(server.target, group_id="g", on_delivery=lambda _result: held)
    send = producer.stream("s").send_nowait
    held.append(send)
    send(b"x")
    producer.close(30)
    assert gc.is_tracked(send)
    assert gc.get_referents(send) == [send.__self__]
    gone = weakref.ref(send)
    assert gone() is send
    return gone


def test_weak_references_and_cycles_end(server) -> None:
    gone = cycle(server)
    gc.collect()
    assert gone() is None


def test_no_call_leaves_a_reference(producer) -> None:
    body, wrong, stream = b"some body", "some text", producer.stream("s")
    send = stream.send_nowait

    def counts() -> list[int]:
        return [sys.getrefcount(thing) for thing in (body, wrong, stream, send, None)]

    def calls() -> None:
        for _ in range(1000):
            send(body)
            send(body=body)
            stream.send_nowait(body)
            producer.send_nowait("s", body)
            for refusing in (send, stream.send_nowait):
                with suppress(dataproxy.InvalidMessageError):
                    refusing(wrong)

    calls()
    before = counts()
    calls()
    assert all(abs(now - then) < 100 for now, then in zip(counts(), before, strict=True))


def test_what_a_call_reads_lies_in_one_line_of_memory(producer) -> None:
    assert BoundSend.__basicsize__ + GC_HEAD == 128
    if os.environ.get("PYTHONMALLOC", "pymalloc") != "pymalloc":
        return  # a sanitizer's allocator: where objects lie says nothing
    assert all(id(producer.stream(f"s{number}").send_nowait) % 64 == 0 for number in range(300))
