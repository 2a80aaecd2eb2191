"""The producers that are shown in monitoring: weak references with a name, read on demand."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dataproxy.errors import ForkedError, LocalProtocolError
from dataproxy.observe.metrics import common_attributes

if TYPE_CHECKING:
    from dataproxy.producer.asynchronous import AsyncProducer
    from dataproxy.producer.producer import Producer
    from dataproxy.producer.stats import ProducerStats

__all__ = ["Watched"]


class Watched:
    """Hold producers weakly, by name.  Thread: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._producers: dict[str, weakref.ref[Producer | AsyncProducer]] = {}

    def add(self, producer: Producer | AsyncProducer, name: str = "") -> None:
        """Watch ``producer``; it replaces one of the same ``name``.

        Several producers without a name are numbered, because no two may have the same labels.
        """
        with self._lock:
            name = name or self._free_name(producer)
            self._producers[name] = weakref.ref(producer)

    def _free_name(self, producer: Producer | AsyncProducer) -> str:
        """Return the first of "", "2", "3", ... that is this producer's, or no living producer's.  Needs the lock."""
        for number in itertools.count(1):
            name = "" if number == 1 else str(number)
            known = self._producers.get(name)
            if known is None or known() in (None, producer):
                return name
        raise AssertionError

    def snapshots(self) -> Iterator[tuple[dict[str, str], ProducerStats]]:
        """Yield the common attributes and one snapshot of each producer that can give one.

        Left out are producers that no longer exist, an AsyncProducer that is not open yet, and in a forked child the
        parent's producers: an error of one of them must not hide the others.
        """
        with self._lock:
            known = list(self._producers.items())
        for name, reference in known:
            producer = reference()
            if producer is None:
                continue
            try:
                stats = producer.stats()
            except (ForkedError, LocalProtocolError):
                continue
            yield common_attributes(producer.config.group_id, name), stats
