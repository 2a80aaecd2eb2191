"""Small types that several parts of the package share."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DnsTarget", "Endpoint", "FileTarget", "ManagerTarget", "ProxyList", "ResolvedEndpoint", "StaticTarget"]


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
    tried in turn with an IPv4 ``address``, or "".  ``node`` is the id that a Manager or a file gives to the proxy, or
    "": another id at the same address is another proxy.
    """

    host: str
    port: int
    family: int
    address: str
    label: str
    other: str = ""
    node: str = ""


class StaticTarget(NamedTuple):
    """Hold the proxies that a ``tcp://`` or ``tls://`` target names; ``tls``: it was ``tls://``."""

    endpoints: tuple[Endpoint, ...]
    tls: bool = False


class ManagerTarget(NamedTuple):
    """Hold the base URL of a Manager, without the path of the ``getIpList`` call and without a final slash.

    ``others`` are the base URLs of other Managers, which are asked if this one does not answer.  With ``cluster`` they
    are asked for the proxies of the cluster with this name, whatever the group.
    """

    url: str
    others: tuple[str, ...] = ()
    cluster: str = ""

    def __str__(self) -> str:
        from urllib.parse import quote

        end = f"/getIpListByClusterName/{quote(self.cluster, safe='')}" if self.cluster else ""
        return ",".join(url + end for url in (self.url, *self.others))


class FileTarget(NamedTuple):
    """Hold the absolute path of a file that lists the proxies."""

    path: str

    def __str__(self) -> str:
        from urllib.parse import quote

        return f"file://{quote(self.path)}"


class DnsTarget(NamedTuple):
    """Hold a name whose addresses, of both families, are the proxies, and their port."""

    endpoint: Endpoint

    def __str__(self) -> str:
        return f"dns://{self.endpoint}"


class ProxyList(NamedTuple):
    """Hold what a Manager, or a file, says about the proxies of one group.

    ``cluster_id`` is None when the Manager gave none.  ``load`` is the balance threshold 0..200.  ``is_switch``
    changes when clients must move.  ``max_packet_length`` is in bytes, 0 for no limit.  ``ids`` has the id of each
    proxy as text, "" where there is none; empty: no proxy has one.  ``ignored`` says which entries are not used.
    """

    cluster_id: int | None
    endpoints: tuple[Endpoint, ...]
    load: int = 20
    is_switch: int = 0
    max_packet_length: int = 0
    ids: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
