"""OpenTelemetry spans for sent messages.  Needs ``opentelemetry-api``.

::

    traced = dataproxy.observe.tracing.TracedProducer(producer)
    traced.send("clicks", b"...")

Each message carries the W3C ``traceparent`` of its send span as an attribute, so that it leaves in the per-item
form.  When its result is known, a second span ``settle <stream>`` is made with a link to the send span: the time
between the two is spent without holding a span open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import propagate
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TracerProvider, get_tracer

from dataproxy._version import __version__
from dataproxy.errors import DataProxyError, DeliveryError

if TYPE_CHECKING:
    from dataproxy.client import Delivery, Producer

__all__ = ["TracedProducer"]


class TracedProducer:
    """Send through ``producer`` with a span and a ``traceparent`` for each message.

    The other calls of the producer are reached through ``producer``.  ``tracer_provider``: None for the global
    one.  Thread: any.
    """

    def __init__(self, producer: Producer, *, tracer_provider: TracerProvider | None = None) -> None:
        self.producer = producer
        self._tracer = get_tracer("dataproxy", __version__, tracer_provider)

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
        common = _attributes(group, stream_id)
        with self._tracer.start_as_current_span(
            f"send {stream_id}", kind=SpanKind.PRODUCER, attributes={**common, "messaging.operation.type": "send"}
        ) as span:
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            shared = {key: value for key, value in carrier.items() if key == "traceparent"}
            delivery = self.producer.send(
                stream_id, body, group_id=group_id, attrs={**(attrs or {}), **shared}, **options
            )
            context = span.get_span_context()
        delivery.add_done_callback(lambda done: self._settled(done, context, stream_id, common))
        return delivery

    def _settled(self, delivery: Delivery, sent: SpanContext, stream_id: str, common: dict[str, str]) -> None:
        """Make the span of the result.  Dispatcher's thread."""
        with self._tracer.start_as_current_span(
            f"settle {stream_id}",
            kind=SpanKind.CLIENT,
            links=[Link(sent)],
            attributes={**common, "messaging.operation.type": "settle"},
            record_exception=False,
        ) as span:
            _tell(span, delivery)


def _tell(span: Span, delivery: Delivery) -> None:
    try:
        result = delivery.result(0)
    except DeliveryError as error:
        span.set_attribute("error.type", str(error.code))
        span.set_status(Status(StatusCode.ERROR, str(error)))
    except DataProxyError as error:
        span.set_status(Status(StatusCode.ERROR, str(error)))
    else:
        span.set_attribute("server.address", result.node)
        span.set_attribute("dataproxy.attempts", result.attempts)


def _attributes(group_id: str, stream_id: str) -> dict[str, str]:
    return {
        "messaging.system": "inlong",
        "messaging.operation.name": "send",
        "messaging.destination.name": f"{group_id}/{stream_id}",
    }
