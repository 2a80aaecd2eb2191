"""Spans of sent messages: the traceparent travels, and the span of the result links to that of the send."""

import asyncio

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from dataproxy import AsyncProducer, ConfigError, DeliveryExpired, Producer
from dataproxy.hub import Hub
from dataproxy.observe.tracing import TracedAsyncProducer, TracedProducer


@pytest.fixture
def hub():
    with Hub() as running:
        yield running


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider, exporter
    provider.shutdown()


def by_name(exporter):
    return {span.name: span for span in exporter.get_finished_spans()}


def test_traceparent_travels_and_the_result_links_back(hub, spans):
    provider, exporter = spans
    with Producer(hub.target, group_id="g") as producer:
        traced = TracedProducer(producer, tracer_provider=provider)
        traced.send("s", b"body", attrs={"app": "web"}).result()
    found = by_name(exporter)
    sent, settled = found["send s"], found["settle s"]
    (record,) = hub.records("g", "s")
    _, trace_id, span_id, _ = record.attrs["traceparent"].split("-")
    assert (int(trace_id, 16), int(span_id, 16)) == (sent.context.trace_id, sent.context.span_id)
    assert record.attrs["app"] == "web"
    (link,) = settled.links
    assert link.context.span_id == sent.context.span_id
    assert settled.attributes["dataproxy.attempts"] == 1
    assert settled.status.status_code is StatusCode.UNSET
    assert sent.attributes["messaging.destination.name"] == "g/s"


def test_a_message_that_expires_leaves_an_error(hub, spans):
    provider, exporter = spans
    hub.set_service("not_ready")
    producer = Producer(hub.target, group_id="g", delivery_timeout=0.2)
    delivery = TracedProducer(producer, tracer_provider=provider).send("s", b"body")
    with pytest.raises(DeliveryExpired) as caught:
        delivery.result()
    producer.close()
    settled = by_name(exporter)["settle s"]
    assert settled.status.status_code is StatusCode.ERROR
    assert settled.attributes["error.type"] == str(caught.value.code)


def test_the_caller_s_span_is_the_parent(hub, spans):
    provider, exporter = spans
    with Producer(hub.target, group_id="g") as producer:
        with provider.get_tracer("app").start_as_current_span("request") as request:
            TracedProducer(producer, tracer_provider=provider).send("s", b"body").result()
        producer.flush()
    sent = by_name(exporter)["send s"]
    assert sent.parent.span_id == request.get_span_context().span_id


def test_async_sends_are_settled_without_an_error(hub, spans):
    provider, exporter = spans

    async def run():
        async with AsyncProducer(hub.target, group_id="g") as producer:
            traced = TracedAsyncProducer(producer, tracer_provider=provider)
            first, second = await asyncio.gather(traced.send("s", b"1"), traced.send("t", b"2", attrs={"app": "web"}))
            assert first.attempts == second.attempts == 1

    asyncio.run(run())
    found = by_name(exporter)
    for stream in ("s", "t"):
        sent, settled = found[f"send {stream}"], found[f"settle {stream}"]
        assert settled.status.status_code is StatusCode.UNSET
        assert settled.attributes["dataproxy.attempts"] == 1
        assert settled.links[0].context.span_id == sent.context.span_id
        (record,) = hub.records("g", stream)
        assert int(record.attrs["traceparent"].split("-")[2], 16) == sent.context.span_id
        assert sent.parent is None
    assert record.attrs["app"] == "web"


def test_an_async_send_that_must_wait_for_the_opening_and_for_room_is_traced_too(hub, spans):
    provider, exporter = spans
    body = bytes(60_000)

    async def run():
        producer = AsyncProducer(hub.target, group_id="g", buffer_bytes=100_000, batch_bytes=65_536, on_full="block")
        traced = TracedAsyncProducer(producer, tracer_provider=provider)
        await asyncio.gather(*(traced.send("s", body) for _ in range(4)))
        await producer.close()

    asyncio.run(run())
    finished = exporter.get_finished_spans()
    assert sorted(span.name for span in finished) == ["send s"] * 4 + ["settle s"] * 4
    assert {span.status.status_code for span in finished} == {StatusCode.UNSET}
    assert len(list(hub.records("g", "s"))) == 4


def test_an_async_send_that_expires_leaves_an_error(hub, spans):
    provider, exporter = spans
    hub.set_service("not_ready")

    async def run():
        producer = await AsyncProducer(hub.target, group_id="g", delivery_timeout=0.2).open()
        with pytest.raises(DeliveryExpired) as caught:
            await TracedAsyncProducer(producer, tracer_provider=provider).send("s", b"body")
        await producer.close()
        return caught.value

    error = asyncio.run(run())
    settled = by_name(exporter)["settle s"]
    assert settled.status.status_code is StatusCode.ERROR
    assert settled.attributes["error.type"] == str(error.code)


def test_an_async_wait_that_is_cancelled_says_so_and_is_no_error(hub, spans):
    provider, exporter = spans
    hub.set_service("not_ready")

    async def run():
        producer = await AsyncProducer(hub.target, group_id="g").open()
        sending = TracedAsyncProducer(producer, tracer_provider=provider).send("s", b"body")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await sending
        hub.set_service("running")
        await producer.close(30)

    asyncio.run(run())
    settled = by_name(exporter)["settle s"]
    assert settled.status.status_code is StatusCode.UNSET
    assert [event.name for event in settled.events] == ["wait cancelled"]


def test_each_kind_of_producer_has_its_own_class_of_traces(hub):
    with pytest.raises(ConfigError, match="TracedAsyncProducer"):
        TracedProducer(AsyncProducer(hub.target, group_id="g"))
    with Producer(hub.target, group_id="g") as plain, pytest.raises(ConfigError, match="TracedProducer"):
        TracedAsyncProducer(plain)
