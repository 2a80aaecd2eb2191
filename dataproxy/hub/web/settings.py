"""What the Manager answers, and how it is changed while the hub runs: as attributes, or as JSON over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dataproxy.config.suggestion import nearest_name
from dataproxy.errors import ConfigError
from dataproxy.problems import shown

__all__ = ["ManagerCluster", "ManagerSettings"]

_INT_MOST: Final = 2**31 - 1
_NODES_MOST: Final = 1000
_NAMES_MOST: Final = 10_000
_TEXT_MOST: Final = 255


@dataclass(slots=True)
class ManagerCluster:
    """Hold what the Manager's answers say of one cluster; the attributes are those of ``ManagerSettings``."""

    cluster_id: int
    nodes: tuple[tuple[str, int], ...] = ()
    http_nodes: tuple[tuple[str, int], ...] = ()
    is_switch: int | None = None
    max_packet_length: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all values, under the names of the Manager's answer."""
        return {
            "clusterId": self.cluster_id,
            "nodes": _nodes_json(self.nodes),
            "httpNodes": _nodes_json(self.http_nodes),
            "isSwitch": self.is_switch,
            "maxPacketLength": self.max_packet_length,
        }


@dataclass(slots=True)
class ManagerSettings:
    """Hold the values of the Manager's answers; every attribute may be changed while the hub runs.

    ``nodes`` lists (address, port) of the proxies to name, empty for this hub alone; ``http_nodes`` those of the HTTP
    report.  ``clusters`` has other clusters by name, and ``groups`` the name of the cluster of each group that is in
    one of them; all other groups are in the cluster of this hub.  ``denied`` groups get ``success: false``.
    ``secrets`` maps ids to keys for Basic authentication; empty switches it off.  ``max_packet_length`` is in bytes,
    None for no limit.
    """

    cluster_id: int = 1
    is_intranet: int | None = None
    is_switch: int | None = None
    load: int = 20
    max_packet_length: int | None = None
    nodes: tuple[tuple[str, int], ...] = ()
    http_nodes: tuple[tuple[str, int], ...] = ()
    clusters: Mapping[str, ManagerCluster] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    denied: frozenset[str] = frozenset()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return all values but the keys, under the names of the Manager's answer."""
        return {
            "clusterId": self.cluster_id,
            "isIntranet": self.is_intranet,
            "isSwitch": self.is_switch,
            "load": self.load,
            "maxPacketLength": self.max_packet_length,
            "nodes": _nodes_json(self.nodes),
            "httpNodes": _nodes_json(self.http_nodes),
            "clusters": {name: cluster.to_json() for name, cluster in self.clusters.items()},
            "groups": dict(self.groups),
            "denied": sorted(self.denied),
            "secretIds": sorted(self.secrets),
        }

    def change(self, value: object) -> None:
        """Take values from JSON, all or none.  Raises ConfigError."""
        for attribute, given in _read(value, _FIELDS).items():
            setattr(self, attribute, given)


def _read(value: object, fields: dict[str, tuple[str, Callable[[Any], Any]]]) -> dict[str, Any]:
    """Return the attributes that a JSON object gives.  Raises ConfigError that names the setting."""
    if not isinstance(value, dict):
        raise ConfigError("the settings are not a JSON object", hint='send {"isSwitch": 1}')
    found: dict[str, Any] = {}
    for name, given in value.items():
        if name not in fields:
            near = nearest_name(name, list(fields))
            raise ConfigError(
                f"the setting {shown(name)} is unknown",
                hint=f"did you mean {near!r}?" if near else f"known are {', '.join(fields)}",
            )
        attribute, read = fields[name]
        try:
            found[attribute] = read(given)
        except ValueError as error:
            raise ConfigError(f"the setting {name} {error}") from None
    return found


def _nodes_json(nodes: tuple[tuple[str, int], ...]) -> list[dict[str, Any]]:
    return [{"ip": ip, "port": port} for ip, port in nodes]


def _number(low: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= _INT_MOST:
            raise ValueError(f"is {shown(value)}; give a number from {low} to {_INT_MOST}")
        return value

    return read


def _or_none(read: Callable[[Any], int]) -> Callable[[Any], int | None]:
    return lambda value: None if value is None else read(value)


def _nodes(value: Any) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, list) or len(value) > _NODES_MOST:
        raise ValueError(f'is no list of at most {_NODES_MOST} nodes; give [{{"ip": "10.0.0.1", "port": 46801}}]')
    found = []
    for one in value:
        if not isinstance(one, dict) or one.keys() != {"ip", "port"} or not isinstance(one["ip"], str):
            raise ValueError(f'has the node {shown(one)}; give {{"ip": "10.0.0.1", "port": 46801}}')
        port = one["port"]
        if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
            raise ValueError(f"has the port {shown(port)}; give a number from 1 to 65535")
        found.append((_text(one["ip"]), port))
    return tuple(found)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _TEXT_MOST:
        raise ValueError(f"has {shown(value)}; give a text of at most {_TEXT_MOST} characters")
    return value


def _names(value: Any) -> frozenset[str]:
    if not isinstance(value, list) or len(value) > _NAMES_MOST:
        raise ValueError(f"is no list of at most {_NAMES_MOST} names")
    return frozenset(_text(one) for one in value)


def _secrets(value: Any) -> dict[str, str]:
    # Keys are in no text of an error.
    if not isinstance(value, dict) or len(value) > _NAMES_MOST:
        raise ValueError("is no object of ids and keys")
    for name, key in value.items():
        if not 0 < len(name) <= _TEXT_MOST or ":" in name or not isinstance(key, str) or not 0 < len(key) <= _TEXT_MOST:
            raise ValueError(f"has an id without a colon and a key, each of at most {_TEXT_MOST} characters, or none")
    return dict(value)


def _clusters(value: Any) -> dict[str, ManagerCluster]:
    if not isinstance(value, dict) or len(value) > _NODES_MOST:
        raise ValueError(f"is no object of at most {_NODES_MOST} names and clusters")
    found = {}
    for name, given in value.items():
        try:
            found[_text(name)] = ManagerCluster(**{"cluster_id": 1, **_read(given, _CLUSTER_FIELDS)})
        except ConfigError as error:
            raise ValueError(f"has the cluster {shown(name)}, of which {error.message}") from None
    return found


def _groups(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > _NAMES_MOST:
        raise ValueError(f"is no object of at most {_NAMES_MOST} groups and names of clusters")
    return {_text(group): _text(cluster) for group, cluster in value.items()}


_CLUSTER_FIELDS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "clusterId": ("cluster_id", _number(1)),
    "nodes": ("nodes", _nodes),
    "httpNodes": ("http_nodes", _nodes),
    "isSwitch": ("is_switch", _or_none(_number(0))),
    "maxPacketLength": ("max_packet_length", _or_none(_number(-1))),
}
_FIELDS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "clusterId": ("cluster_id", _number(1)),
    "isIntranet": ("is_intranet", _or_none(_number(0))),
    "isSwitch": ("is_switch", _or_none(_number(0))),
    "load": ("load", _number(0)),
    "maxPacketLength": ("max_packet_length", _or_none(_number(-1))),
    "nodes": ("nodes", _nodes),
    "httpNodes": ("http_nodes", _nodes),
    "clusters": ("clusters", _clusters),
    "groups": ("groups", _groups),
    "denied": ("denied", _names),
    "secrets": ("secrets", _secrets),
}
