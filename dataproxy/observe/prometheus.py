"""Prometheus collector for producers.  Needs ``prometheus-client``.

One line makes a producer visible::

    dataproxy.observe.prometheus.watch(producer)
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from dataproxy.observe.metrics import DURATION, METRICS, Metric, common_attributes

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

    from dataproxy.client import Producer
    from dataproxy.client.stats import ProducerStats

__all__ = ["ProducerCollector", "watch"]

_UNITS: Final = {"By": "_bytes", "s": "_seconds"}


class ProducerCollector(Collector):
    """Collect the statistics of producers at each scrape; nothing is done in between.

    A producer is held weakly: one that is gone is not shown any more, and its counters end.  Thread: any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._producers: dict[str, weakref.ref[Producer]] = {}

    def add(self, producer: Producer, name: str = "") -> None:
        """Show ``producer``; ``name`` becomes the label ``messaging_client_id``, and replaces one of the same name."""
        with self._lock:
            self._producers[name] = weakref.ref(producer)

    def describe(self) -> list[Family]:
        """Return no families ahead of the first scrape: their labels depend on the connections."""
        return []

    def collect(self) -> Iterator[Family]:
        """Yield all families, from one snapshot of each producer."""
        snapshots = list(self._snapshots())
        for metric in METRICS:
            yield _family(metric, snapshots)
        yield _histogram(snapshots)

    def _snapshots(self) -> Iterator[tuple[dict[str, str], ProducerStats]]:
        with self._lock:
            known = list(self._producers.items())
        for name, reference in known:
            producer = reference()
            if producer is not None:
                yield common_attributes(producer.config.group_id, name), producer.stats()


def watch(producer: Producer, name: str = "", *, registry: CollectorRegistry = REGISTRY) -> ProducerCollector:
    """Show ``producer`` in ``registry`` and return the collector, which takes further producers with ``add``.

    Raises ValueError when the registry holds such metrics already.  Thread: any.
    """
    collector = ProducerCollector()
    collector.add(producer, name)
    registry.register(collector)
    return collector


def _plain(name: str) -> str:
    return name.replace(".", "_")


def _labels(snapshots: list[tuple[dict[str, str], ProducerStats]], metric: Metric) -> list[str]:
    keys: dict[str, None] = {}
    for common, stats in snapshots:
        keys.update(dict.fromkeys(common))
        for point in metric.points(stats):
            keys.update(dict.fromkeys(point.attributes))
    return list(keys)


def _family(metric: Metric, snapshots: list[tuple[dict[str, str], ProducerStats]]) -> Family:
    keys = _labels(snapshots, metric)
    kind = CounterMetricFamily if metric.counter else GaugeMetricFamily
    family = kind(_plain(metric.name) + _UNITS.get(metric.unit, ""), metric.help, labels=[_plain(key) for key in keys])
    for common, stats in snapshots:
        for point in metric.points(stats):
            attributes = {**common, **point.attributes}
            family.add_metric([attributes.get(key, "") for key in keys], point.value)
    return family


def _histogram(snapshots: list[tuple[dict[str, str], ProducerStats]]) -> Family:
    keys = list(dict.fromkeys(key for common, _ in snapshots for key in common))
    family = HistogramMetricFamily(_plain(DURATION.name) + "_seconds", DURATION.help, labels=[_plain(k) for k in keys])
    for common, stats in snapshots:
        latency = stats.latency
        buckets = [(str(bound), float(count)) for bound, count in latency.buckets]
        buckets.append(("+Inf", float(latency.count)))
        family.add_metric([common.get(key, "") for key in keys], buckets, latency.sum)
    return family
