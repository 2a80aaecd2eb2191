"""Prometheus collector for producers.  Needs ``prometheus-client``.

One line shows a producer, another line the next one::

    dataproxy.observe.prometheus.watch(producer, "web")
    dataproxy.observe.prometheus.watch(other, "jobs")
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from dataproxy.observe.metrics import DURATION, METRICS, Metric
from dataproxy.observe.watched import Watched

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

    from dataproxy.producer.asynchronous import AsyncProducer
    from dataproxy.producer.producer import Producer
    from dataproxy.producer.stats import ProducerStats

__all__ = ["ProducerCollector", "watch"]

_UNITS: Final = {"By": "_bytes", "s": "_seconds"}


#: The collector of each registry: families of one name must come from one collector.
_collectors: weakref.WeakKeyDictionary[CollectorRegistry, ProducerCollector] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class ProducerCollector(Collector):
    """Collect the statistics of producers at each scrape; it does nothing in between.

    The collector has a weak reference to each producer: one that no longer exists is not shown any more.  An
    AsyncProducer is shown from its opening on.  Thread: any.
    """

    def __init__(self) -> None:
        self._watched = Watched()

    def add(self, producer: Producer | AsyncProducer, name: str = "") -> None:
        """Show ``producer``; ``name`` becomes the label ``messaging_client_id``, and replaces one of the same name.

        Where several producers have no name, all but the first are numbered: "2", "3", and so on.
        """
        self._watched.add(producer, name)

    def describe(self) -> list[Family]:
        """Return no families ahead of the first scrape: their labels depend on the connections."""
        return []

    def collect(self) -> Iterator[Family]:
        """Yield all families, from one snapshot of each producer."""
        snapshots = list(self._watched.snapshots())
        for metric in METRICS:
            yield _family(metric, snapshots)
        yield _histogram(snapshots)


def watch(
    producer: Producer | AsyncProducer, name: str = "", *, registry: CollectorRegistry = REGISTRY
) -> ProducerCollector:
    """Show ``producer`` in ``registry``; return the registry's collector; ``name`` as for its ``add``.

    All producers of a registry share one collector, so that each family occurs once.  Thread: any.
    """
    with _lock:
        collector = _collectors.get(registry)
        if collector is None:
            collector = _collectors[registry] = ProducerCollector()
        collector.add(producer, name)
        registry.register(collector)  # it may be registered already, or the application has removed it
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
