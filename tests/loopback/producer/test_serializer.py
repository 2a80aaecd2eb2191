"""Objects in place of bytes: the serializer of a producer and of a stream."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from dataproxy import AsyncProducer, Producer
from dataproxy.errors import ConfigError, InvalidMessageError
from dataproxy.hub import Hub
from dataproxy.observe.logship import LogHandler


def to_json(value):
    return json.dumps(value).encode()


@pytest.fixture
def hub():
    with Hub() as hub:
        yield hub


def sent(hub):
    return sorted(record.body for record in hub.records("g"))


def test_every_sending_call_makes_bytes_of_objects(hub):
    with Producer(hub.target, group_id="g", serializer=to_json) as producer:
        stream = producer.stream("s")
        producer.send("s", {"n": 1})
        producer.send_nowait("s", {"n": 2})
        producer.send_nowait("s", "text")
        producer.send_batch("s", [{"n": 3}, [4]])
        producer.send_batch("s", ({"n": n} for n in (5, 6)))
        stream.send(7)
        stream.send_nowait(8)
        stream.send_batch({9})
        assert stream.send(None).result(10)
    wanted = [{"n": 1}, {"n": 2}, "text", {"n": 3}, [4], {"n": 5}, {"n": 6}, 7, 8, 9, None]
    assert sent(hub) == sorted(map(to_json, wanted))


def test_a_body_of_bytes_goes_through_the_serializer_too(hub):
    with Producer(hub.target, group_id="g", serializer=lambda body: b"<" + body + b">") as producer:
        stream = producer.stream("s")
        for _ in range(3):  # the quick way is taken from the second call on
            producer.send_nowait("s", b"a")
            stream.send_nowait(b"b")
    assert sent(hub) == [b"<a>"] * 3 + [b"<b>"] * 3


def test_a_stream_has_its_own(hub):
    with Producer(hub.target, group_id="g", serializer=to_json) as producer:
        producer.stream("s", serializer=str.encode).send("as it is")
        producer.stream("s", serializer=bytes).send(b"bytes")
        producer.stream("s").send("json")
    assert sent(hub) == [b'"json"', b"as it is", b"bytes"]


def test_what_it_returns_may_be_any_buffer(hub):
    with Producer(hub.target, group_id="g", serializer=lambda text: memoryview(bytearray(text.encode()))) as producer:
        producer.send_batch("s", ["a", "b"])
    assert sent(hub) == [b"a", b"b"]


@pytest.mark.parametrize("call", ["send", "send_nowait"])
def test_an_error_names_the_object_and_nothing_is_accepted(hub, call):
    with Producer(hub.target, group_id="g", serializer=to_json) as producer:
        with pytest.raises(InvalidMessageError, match=r"stream 's' raised TypeError: .*\(set \{1\}\)") as caught:
            getattr(producer, call)("s", {1})
        assert caught.value.code == "SERIALIZER" and isinstance(caught.value.__cause__, TypeError)
        assert producer.report().accepted == 0


def test_an_error_of_a_batch_names_the_item_and_its_type(hub):
    with Producer(hub.target, group_id="g", serializer=to_json) as producer:
        with pytest.raises(InvalidMessageError, match=r"item 2, complex 1j") as caught:
            producer.send_batch("s", [1, 2, 1j, 3])
        assert (caught.value.details["item"], caught.value.details["type"]) == (2, "complex")
        assert producer.report().accepted == 0


@pytest.mark.parametrize("made", [None, "text", 5])
def test_what_is_no_bytes_is_refused(hub, made):
    with Producer(hub.target, group_id="g", serializer=lambda _: made) as producer:
        with pytest.raises(InvalidMessageError, match=f"returned '{type(made).__name__}' and no bytes"):
            producer.send("s", 1)
        with pytest.raises(InvalidMessageError, match="item 0, int 1"):
            producer.send_batch("s", [1])


@pytest.mark.parametrize("batch", ["text", b"bytes", {"a": 1}, 5, None])
def test_one_object_is_no_batch(hub, batch):
    with (
        Producer(hub.target, group_id="g", serializer=to_json) as producer,
        pytest.raises(InvalidMessageError, match="a batch is a sequence of objects"),
    ):
        producer.send_batch("s", batch)


@pytest.mark.parametrize("kind", [Producer, AsyncProducer])
def test_what_cannot_be_called_is_no_serializer(kind):
    with pytest.raises(ConfigError, match="a serializer is a function"):
        kind("tcp://127.0.0.1:1", group_id="g", serializer="json")


def test_empty_bytes_and_a_signal_pass_through(hub):
    def interrupted(value):
        raise KeyboardInterrupt

    with Producer(hub.target, group_id="g", serializer=lambda _: b"") as producer:
        with pytest.raises(InvalidMessageError, match="empty"):
            producer.send("s", 1)
        with pytest.raises(KeyboardInterrupt):
            producer.stream("s", serializer=interrupted).send(1)


def test_calls_of_an_event_loop(hub):
    async def main():
        async with AsyncProducer(hub.target, group_id="g", serializer=to_json) as producer:
            await producer.send("s", {"n": 1})
            producer.send_soon("s", {"n": 2})
            producer.send_nowait("s", {"n": 3})
            await producer.send_batch("s", [{"n": 4}])
            await producer.stream("s").send({"n": 5})
            await producer.stream("s", serializer=str.encode).send("six")
            async with producer.batch("s") as batch:
                batch.add({"n": 7})
            with pytest.raises(InvalidMessageError, match="item 0, set"):
                await producer.send_batch("s", [{1}])

    asyncio.run(main())
    assert sent(hub) == sorted([*(to_json({"n": n}) for n in (1, 2, 3, 4, 5, 7)), b"six"])


def test_an_object_that_waits_for_room_is_made_once(hub):
    made = []

    def count(value):
        made.append(value)
        return b"x" * 20_000

    async def main():
        options = {"buffer_bytes": "64KiB", "batch_bytes": "16KiB"}
        async with AsyncProducer(hub.target, group_id="g", serializer=count, **options) as producer:
            await asyncio.gather(*(producer.send("s", n) for n in range(40)))
            async with producer.batch("s") as batch:
                for n in range(40, 60):
                    await batch.add(n)

    asyncio.run(main())
    assert len(sent(hub)) == 60
    assert set(made) == set(range(60))
    assert all(made.count(n) <= 2 for n in range(60))  # once when it found no room, once to wait


def test_records_that_a_handler_ships_are_no_objects_of_the_application(hub):
    with Producer(hub.target, group_id="g", serializer=to_json, on_full="raise") as producer:
        handler = LogHandler(producer=producer)
        handler.emit(logging.LogRecord("app", logging.INFO, __file__, 1, "hello", None, None))
        handler.close()
    assert len(sent(hub)) == 1 and b"hello" in sent(hub)[0]
