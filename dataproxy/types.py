"""Small types that several parts of the package share."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Endpoint", "ManagerTarget", "ProxyList", "ResolvedEndpoint", "StaticTarget"]


class Endpoint(NamedTuple):
    """Name one proxy: host (name or address, IPv6 without brackets) and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ResolvedEndpoint(NamedTuple):
    """Hold one address of a proxy.

    ``host`` and ``port`` are as configured, ``family`` is ``socket.AF_INET`` or ``AF_INET6``, ``address`` is the
    numeric address, ``label`` is what logs and statistics show.  ``other`` is an IPv6 address of the same proxy that is
    tried in turn with an IPv4 ``address``, or "".
    """

    host: str
    port: int
    family: int
    address: str
    label: str
    other: str = ""


class StaticTarget(NamedTuple):
    """Hold the proxies that a ``tcp://`` target names."""

    endpoints: tuple[Endpoint, ...]


class ManagerTarget(NamedTuple):
    """Hold the base URL of a Manager, without the path of the ``getIpList`` call and without a final slash.

    ``others`` are the base URLs of other Managers, which are asked if this one does not answer.
    """

    url: str
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ",".join((self.url, *self.others))


class ProxyList(NamedTuple):
    """Hold what a Manager says about the proxies of one group.

    ``cluster_id`` is None when the Manager gave none.  ``load`` is the balance threshold 0..200.  ``is_switch``
    changes when clients must move.  ``max_packet_length`` is in bytes, 0 for no limit.
    """

    cluster_id: int | None
    endpoints: tuple[Endpoint, ...]
    load: int
    is_switch: int
    max_packet_length: int
