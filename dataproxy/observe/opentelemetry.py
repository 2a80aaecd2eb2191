"""OpenTelemetry meters for a producer.  Needs ``opentelemetry-api`` (and an SDK that exports).

One line makes a producer visible::

    dataproxy.observe.opentelemetry.watch(producer)
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation, get_meter

from dataproxy._version import __version__
from dataproxy.observe.metrics import METRICS, Metric, common_attributes

if TYPE_CHECKING:
    from dataproxy.client import Producer

__all__ = ["watch"]


def watch(producer: Producer, name: str = "", *, meter_provider: MeterProvider | None = None) -> None:
    """Give ``producer`` asynchronous instruments in ``meter_provider`` (None: the global one).

    The statistics are read when the SDK collects, nothing is done in between.  The producer is held weakly.
    ``name`` becomes the attribute ``messaging.client.id``.  The API has no asynchronous histogram: durations come
    as quantiles.  Thread: any.
    """
    meter = get_meter("dataproxy", __version__, meter_provider)
    reference = weakref.ref(producer)
    common = common_attributes(producer.config.group_id, name)
    for metric in METRICS:
        _instrument(meter, metric, _reader(metric, reference, common))


def _reader(
    metric: Metric, reference: weakref.ref[Producer], common: dict[str, str]
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def read(_options: CallbackOptions) -> Iterator[Observation]:
        producer = reference()
        if producer is not None:
            for point in metric.points(producer.stats()):
                yield Observation(point.value, {**common, **point.attributes})

    return read


def _instrument(meter: Meter, metric: Metric, read: Callable[[CallbackOptions], Iterable[Observation]]) -> None:
    if metric.counter:
        meter.create_observable_counter(metric.name, [read], metric.unit, metric.help)
    elif metric.unit in ("s", "1"):
        meter.create_observable_gauge(metric.name, [read], metric.unit, metric.help)
    else:
        meter.create_observable_up_down_counter(metric.name, [read], metric.unit, metric.help)
