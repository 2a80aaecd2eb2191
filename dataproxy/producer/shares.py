"""How many proxies a producer uses at once, and which part of them each of its executors gets."""

from __future__ import annotations

from typing import Final, NamedTuple

from dataproxy.config import ProducerConfig

__all__ = ["Share", "active_of", "shares"]

_ALL_OF: Final = 8  # proxies: all of so few are in use
_MOST: Final = 64


class Share(NamedTuple):
    """Describe the connections that one executor keeps.

    ``connections`` take frames, of at most ``proxies`` different proxies; ``standbys`` are further ones that are only
    connected.  Both begin at a place in the list of proxies and take the following ones.
    """

    connections: int
    proxies: int
    standbys: int
    offset: int
    standby_offset: int


def active_of(wanted: int, proxies: int) -> int:
    """Return how many of ``proxies`` are in use; 0 ``wanted``: all of up to 8, else two thirds, from 8 to 64."""
    return min(proxies, wanted or (proxies if proxies <= _ALL_OF else min(max(_ALL_OF, 2 * proxies // 3), _MOST)))


def _parts(total: int, executors: int) -> list[int]:
    return [total // executors + (1 if i < total % executors else 0) for i in range(executors)]


def shares(config: ProducerConfig, proxies: int) -> list[Share]:
    """Return the share of each executor in ``proxies`` proxies.

    The producer as a whole has ``active_proxies`` proxies in use and ``standby_proxies`` behind them; each executor
    has at least one connection, to as many of these proxies as it has connections, and one standby if there are any.
    """
    executors = config.executors
    active = active_of(config.active_proxies, proxies)
    total = max(executors, config.connections or active)
    standbys = min(config.standby_proxies, proxies - active)
    active = min(active, total)
    spare = _parts(max(standbys, executors if standbys else 0), executors)
    own = _parts(total, executors)
    out = []
    begun, standby_offset = 0, active
    for i in range(executors):
        different = min(own[i], active)
        out.append(Share(own[i], different, spare[i], min(begun % active, active - different), standby_offset))
        begun += own[i]
        standby_offset += spare[i]
    return out
