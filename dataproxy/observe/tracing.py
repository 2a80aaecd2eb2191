"""OpenTelemetry spans for sent messages.  Needs ``opentelemetry-api``.

::

    traced = dataproxy.observe.tracing.TracedProducer(producer)
    traced.send("clicks", b"...")

    traced = dataproxy.observe.tracing.TracedAsyncProducer(async_producer)
    await traced.send("clicks", b"...")

Each message carries the W3C ``traceparent`` of its send span as an attribute, so that it leaves in the per-item
form.  When its result is known, a second span ``settle <stream>`` is made with a link to the send span: the time
between the two is spent without holding a span open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import propagate
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TracerProvider, get_tracer

from dataproxy._core.producer.results.delivery import Delivery
from dataproxy._version import __version__
from dataproxy.errors import ConfigError, DataProxyError, DeliveryError
from dataproxy.outcomes import Delivered, Sent
from dataproxy.producer.asynchronous import AsyncProducer
from dataproxy.producer.producer import Producer

__all__ = ["TracedAsyncProducer", "TracedProducer"]


class _Spans:
    """Make the two spans of a message."""

    def __init__(self, tracer_provider: TracerProvider | None) -> None:
        self._tracer = get_tracer("dataproxy", __version__, tracer_provider)

    @contextmanager
    def sending(
        self, group_id: str, stream_id: str, attrs: Mapping[str, str] | None
    ) -> Iterator[tuple[SpanContext, dict[str, str]]]:
        """Open the send span for a ``with`` block; yield its context, and the attributes with the ``traceparent``."""
        with self._tracer.start_as_current_span(
            f"send {stream_id}", kind=SpanKind.PRODUCER, attributes=_attributes(group_id, stream_id, "send")
        ) as span:
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            shared = {key: value for key, value in carrier.items() if key == "traceparent"}
            yield span.get_span_context(), {**(attrs or {}), **shared}

    @contextmanager
    def settling(self, sent: SpanContext, group_id: str, stream_id: str) -> Iterator[Span]:
        """Open the span of the result, linked to the send span, for a ``with`` block; it records its exception."""
        with self._tracer.start_as_current_span(
            f"settle {stream_id}",
            kind=SpanKind.CLIENT,
            links=[Link(sent)],
            attributes=_attributes(group_id, stream_id, "settle"),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except DataProxyError as error:
                if isinstance(error, DeliveryError):
                    span.set_attribute("error.type", str(error.code))
                span.set_status(Status(StatusCode.ERROR, str(error)))
                raise
            except asyncio.CancelledError:
                span.add_event("wait cancelled")  # the message is still in flight; its result is in the report
                raise


class TracedProducer:
    """Send through ``producer`` with a span and a ``traceparent`` for each message.

    Use ``producer`` for its other calls.  ``tracer_provider``: None for the global
    one.  Raises ConfigError for an AsyncProducer.  Thread: any.
    """

    def __init__(self, producer: Producer, *, tracer_provider: TracerProvider | None = None) -> None:
        if not isinstance(producer, Producer):
            raise ConfigError("no Producer was given", hint="use TracedAsyncProducer for an AsyncProducer")
        self.producer = producer
        self._spans = _Spans(tracer_provider)

    def send(
        self,
        stream_id: str,
        body: Any,
        *,
        group_id: str | None = None,
        attrs: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Delivery:
        """Accept one message and return its Delivery; arguments and errors as for ``Producer.send``."""
        group = self.producer.config.group_id if group_id is None else group_id
        with self._spans.sending(group, stream_id, attrs) as (sent, shared):
            delivery = self.producer.send(stream_id, body, group_id=group_id, attrs=shared, **options)
        delivery.add_done_callback(lambda done: self._settled(done, sent, group, stream_id))
        return delivery

    def _settled(self, delivery: Delivery, sent: SpanContext, group_id: str, stream_id: str) -> None:
        """Make the span of the result.  Dispatcher's thread."""
        try:
            with self._spans.settling(sent, group_id, stream_id) as span:
                _tell(span, delivery.result(0))
        except DataProxyError:
            pass  # recorded in the span; the waiter for the delivery gets it too


class TracedAsyncProducer:
    """Send through an AsyncProducer with a span and a ``traceparent`` for each message.

    Use ``producer`` for its other calls.  ``tracer_provider``: None for the global
    one.  Raises ConfigError for a Producer.  Thread: that of a running event loop.
    """

    def __init__(self, producer: AsyncProducer, *, tracer_provider: TracerProvider | None = None) -> None:
        if not isinstance(producer, AsyncProducer):
            raise ConfigError("no AsyncProducer was given", hint="use TracedProducer for a Producer")
        self.producer = producer
        self._spans = _Spans(tracer_provider)

    def send(
        self,
        stream_id: str,
        body: Any,
        *,
        group_id: str | None = None,
        attrs: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Coroutine[Any, Any, Delivered | Sent]:
        """Accept one message; the await ends with its ack.  Arguments and errors as for ``AsyncProducer.send``.

        If the wait is cancelled, the settle span has the event "wait cancelled" instead of a result.
        """
        group = self.producer.config.group_id if group_id is None else group_id
        with self._spans.sending(group, stream_id, attrs) as (sent, shared):
            result = self.producer.send(stream_id, body, group_id=group_id, attrs=shared, **options)
        return self._settled(result, sent, group, stream_id)

    async def _settled(
        self, result: Awaitable[Delivered | Sent], sent: SpanContext, group_id: str, stream_id: str
    ) -> Delivered | Sent:
        """Wait for the result, then make its span; as for a Delivery, no span is open during the wait."""
        try:
            delivered = await result
        except BaseException as error:
            with self._spans.settling(sent, group_id, stream_id):
                raise error
        with self._spans.settling(sent, group_id, stream_id) as span:
            _tell(span, delivered)
        return delivered


def _tell(span: Span, result: Delivered | Sent) -> None:
    span.set_attribute("server.address", result.node)
    span.set_attribute("dataproxy.attempts", result.attempts)


def _attributes(group_id: str, stream_id: str, operation: str) -> dict[str, str]:
    return {
        "messaging.system": "inlong",
        "messaging.operation.name": "send",
        "messaging.destination.name": f"{group_id}/{stream_id}",
        "messaging.operation.type": operation,
    }
