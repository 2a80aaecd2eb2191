"""OpenTelemetry meters for a producer.  Needs ``opentelemetry-api`` (and an SDK that exports).

One line shows a producer::

    dataproxy.observe.opentelemetry.watch(producer)
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation, get_meter, get_meter_provider

from dataproxy._version import __version__
from dataproxy.observe.metrics import METRICS, Metric
from dataproxy.observe.watched import Watched

if TYPE_CHECKING:
    from dataproxy.producer.asynchronous import AsyncProducer
    from dataproxy.producer.producer import Producer

__all__ = ["watch"]

#: The producers of each provider: if several instruments have one name, an SDK calls only the first one's callback.
_watched: weakref.WeakKeyDictionary[MeterProvider, Watched] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def watch(producer: Producer | AsyncProducer, name: str = "", *, meter_provider: MeterProvider | None = None) -> None:
    """Show ``producer`` by asynchronous instruments of ``meter_provider`` (None: the global one).

    The statistics are read when the SDK collects; nothing happens in between.  The reference to the producer is weak;
    an AsyncProducer is shown from its opening on.  ``name`` becomes the attribute ``messaging.client.id`` and replaces
    a producer of the same name; where several have none, all but the first are numbered.  The API has no
    asynchronous histogram: durations come as quantiles.  Thread: any.
    """
    provider = get_meter_provider() if meter_provider is None else meter_provider
    with _lock:
        watched = _watched.get(provider)
        if watched is None:
            watched = _watched[provider] = Watched()
            meter = get_meter("dataproxy", __version__, provider)
            for metric in METRICS:
                _instrument(meter, metric, _reader(metric, watched))
        watched.add(producer, name)


def _reader(metric: Metric, watched: Watched) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def read(_options: CallbackOptions) -> Iterator[Observation]:
        for common, stats in watched.snapshots():
            for point in metric.points(stats):
                yield Observation(point.value, {**common, **point.attributes})

    return read


def _instrument(meter: Meter, metric: Metric, read: Callable[[CallbackOptions], Iterable[Observation]]) -> None:
    if metric.counter:
        meter.create_observable_counter(metric.name, [read], metric.unit, metric.help)
    elif metric.unit in ("s", "1"):
        meter.create_observable_gauge(metric.name, [read], metric.unit, metric.help)
    else:
        meter.create_observable_up_down_counter(metric.name, [read], metric.unit, metric.help)
