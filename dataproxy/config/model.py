"""Settled configurations: frozen objects with one typed attribute for each option."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from dataproxy.config.hub import HUB
from dataproxy.config.loader import settle
from dataproxy.config.producer import PRODUCER
from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dataproxy.config.option import OptionTable

__all__ = ["Config", "HubConfig", "ProducerConfig"]


class Config:
    """Give every configuration its common behaviour: origins, texts without secrets, changed copies."""

    table: ClassVar[OptionTable]
    _origins: Mapping[str, str]

    def origin(self, name: str) -> str:
        """Return where the value of an option comes from, e.g. ``default`` or ``file producer.toml``.

        Raises ConfigError for a name that is no option.
        """
        if name not in self.table.by_name:
            raise ConfigError(f"there is no option {name!r} to ask the origin of", code="UNKNOWN_OPTION")
        return self._origins.get(name, "default")

    def as_dict(self) -> dict[str, Any]:
        """Return every option with its value in base units, secrets included."""
        return {option.name: getattr(self, option.name) for option in self.table.options}

    def shown(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, value as text (secrets as stars) and origin of every option."""
        for option in self.table.options:
            yield option.name, option.format(getattr(self, option.name)), self.origin(option.name)

    def replace(self, **options: Any) -> Self:
        """Return a copy with other values, checked like new ones.

        Raises ConfigError.
        """
        values, origins = settle(self.table, [("argument", options)], base=(self.as_dict(), self._origins))
        kind: Any = type(self)
        copy: Self = kind(**values, _origins=origins)
        return copy

    def __repr__(self) -> str:
        changed = ", ".join(
            f"{option.name}={option.format(getattr(self, option.name))!r}"
            for option in self.table.options
            if getattr(self, option.name) != option.default
        )
        return f"{type(self).__name__}({changed})"


@dataclass(frozen=True, repr=False, kw_only=True)
class ProducerConfig(Config):
    """Hold the settled options of a producer: seconds as float, sizes in bytes.  See CONFIGURATION.md."""

    table: ClassVar[OptionTable] = PRODUCER

    target: str = ""
    group_id: str = ""
    executors: int = 1
    connections: int = 0
    buffer_bytes: int = 64 << 20
    buffer_messages: int = 0
    on_full: Literal["block", "raise"] = "block"
    max_block: float = 60.0
    batch_bytes: int = 256 << 10
    batch_messages: int = 65535
    linger: float = 0.005
    max_open_packs: int = 16
    pack_seconds: int = 1
    exact_time: bool = False
    delivery_timeout: float = 120.0
    ack_timeout: float = 10.0
    connect_timeout: float = 5.0
    close_timeout: float = 30.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 5.0
    reconnect_backoff: float = 0.1
    reconnect_backoff_max: float = 10.0
    heartbeat: Literal["binary", "message", "off"] = "binary"
    heartbeat_interval: float = 30.0
    heartbeat_retries: int = 3
    compression: Literal["none", "snappy"] = "none"
    compression_min_bytes: int = 512
    message_type: Literal[7, 5, 3] = 7
    ack: Literal["source"] = "source"
    max_frame_bytes: int = 512 << 10
    nagle: bool = False
    discovery_interval: float = 120.0
    manager_timeout: float = 5.0
    manager_secret_id: str = ""
    manager_secret_key: str = ""
    empty_value: Literal["fail", "skip"] = "fail"
    null_value: Literal["fail", "skip", "empty"] = "fail"
    _origins: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, repr=False, kw_only=True)
class HubConfig(Config):
    """Hold the settled options of a hub: seconds as float, sizes in bytes.  See CONFIGURATION.md."""

    table: ClassVar[OptionTable] = HUB

    store: str = ""
    host: str = "127.0.0.1"
    port: int = 0
    manager_port: int = 0
    threads: int = 1
    retention_bytes: int = 0
    retention_age: float = 0.0
    max_store_bytes: int = 1 << 40
    queue_bytes: int = 64 << 20
    max_frame_bytes: int = 512 << 10
    max_connections: int = 30000
    read_idle: float = 180.0
    profile: Literal["strict", "compat"] = "strict"
    load: str = "auto"
    compress_entries: bool = True
    partitions: int = 1
    node_ip: str = "127.0.0.1"
    topics: tuple[str, ...] = ()
    cluster_id: int = 1
    _origins: Mapping[str, str] = field(default_factory=dict, compare=False)
