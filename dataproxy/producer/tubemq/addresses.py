"""Addresses of brokers: their names are looked up side by side, and again from time to time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from dataproxy.errors import DataProxyError
from dataproxy.producer.discovery.limited import side_by_side
from dataproxy.producer.discovery.targets import is_numeric, resolve
from dataproxy.types import Endpoint, ResolvedEndpoint

if TYPE_CHECKING:
    from dataproxy.wire.tubemq.texts import Broker

__all__ = ["BrokerAddresses"]

_AGAIN_SECONDS: Final = 60.0  # between two look-ups of a name that has an address
_LIMIT_SECONDS: Final = 16.0  # a little more than one look-up takes


class BrokerAddresses:
    """Know the addresses of the brokers in use.  One thread.  ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Endpoint, tuple[float, list[ResolvedEndpoint]]] = {}
        self._faults: dict[Endpoint, str] = {}

    def look_up(self, brokers: Iterable[Broker]) -> None:
        """Look up names that are new, have no address, or were looked up a minute ago; forget all other brokers.

        Blocks for up to 16 s.  A name that cannot be looked up any more keeps its addresses.
        """
        now = self._clock()
        wanted = {Endpoint(one.host, one.port) for one in brokers}
        self._known = {one: found for one, found in self._known.items() if one in wanted}
        due = [one for one in wanted if one not in self._known or now - self._known[one][0] >= _AGAIN_SECONDS]
        names = [one for one in due if not is_numeric(one.host)]
        answers = dict(side_by_side("dataproxy-broker-names", _LIMIT_SECONDS, self._found, names))
        self._faults = {}
        for one in due:
            answer = self._found(one) if one not in names else answers.get(one, TimeoutError("no answer in time"))
            if not isinstance(answer, BaseException):
                self._known[one] = (now, answer)
            elif one not in self._known:
                self._faults[one] = answer.message if isinstance(answer, DataProxyError) else str(answer)

    def of(self, broker: Broker) -> list[ResolvedEndpoint]:
        """Return the addresses of a broker, none if its name has none."""
        return self._known.get(Endpoint(broker.host, broker.port), (0.0, []))[1]

    def fault(self, broker: Broker) -> str:
        """Return why a broker has no address."""
        return self._faults.get(Endpoint(broker.host, broker.port), "")

    def _found(self, endpoint: Endpoint) -> list[ResolvedEndpoint]:
        """Look up one name.  Raises DiscoveryError if it has no address."""
        return resolve([endpoint], strict=True)
