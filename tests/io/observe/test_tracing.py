"""Spans of sent messages: the traceparent travels, and the span of the result links to that of the send."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from dataproxy import DeliveryExpired, Producer
from dataproxy.hub import Hub
from dataproxy.observe.tracing import TracedProducer


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
