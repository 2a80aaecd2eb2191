"""The producers that are watched: held weakly, told apart by a name, read when somebody asks."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dataproxy.errors import ForkedError, LocalProtocolError
from dataproxy.observe.metrics import common_attributes

if TYPE_CHECKING:
    from dataproxy.client.asynchronous import AsyncProducer
    from dataproxy.client.producer import Producer
    from dataproxy.client.stats import ProducerStats

__all__ = ["Watched"]


class Watched:
    """Hold producers weakly, by name.  Thread: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._producers: dict[str, weakref.ref[Producer | AsyncProducer]] = {}

    def add(self, producer: Producer | AsyncProducer, name: str = "") -> None:
        """Watch ``producer``; it replaces one of the same ``name``.

        Without a name it is numbered where another one has none: two of them must not have the same labels.
        """
        with self._lock:
            name = name or self._free_name(producer)
            self._producers[name] = weakref.ref(producer)

    def _free_name(self, producer: Producer | AsyncProducer) -> str:
        """Return "", "2", "3", ...: the first that belongs to this producer, or to none that lives.  Needs the lock."""
        for number in itertools.count(1):
            name = "" if number == 1 else str(number)
            known = self._producers.get(name)
            if known is None or known() in (None, producer):
                return name
        raise AssertionError

    def snapshots(self) -> Iterator[tuple[dict[str, str], ProducerStats]]:
        """Yield the common attributes and one snapshot of each producer that can give one.

        Left out are producers that are gone, an AsyncProducer that is not open yet, and in a forked child the
        producers of its parent: none of them may keep the others from being seen.
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
