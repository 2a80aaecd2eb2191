"""Settled configurations: frozen objects with one typed attribute for each option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from dataproxy.config.loader import conceal, settle
from dataproxy.config.tables.consumer import CONSUMER
from dataproxy.config.tables.hub import HUB
from dataproxy.config.tables.producer import PRODUCER
from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dataproxy.config.option import OptionTable
    from dataproxy.config.secret import Secret

__all__ = ["Config", "ConsumerConfig", "HubConfig", "ProducerConfig"]


class Config:
    """Give every configuration its common behaviour: origins, texts without secrets, changed copies."""

    table: ClassVar[OptionTable]
    _origins: Mapping[str, str]

    def __init__(self, values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
        """Take settled values of every option (the functions ``load_..._config`` make them)."""
        self.__dict__.update(values, _origins=origins)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; make a copy by replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; {name} stays")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.as_dict().values()))

    def origin(self, name: str) -> str:
        """Return where the value of an option comes from, e.g. ``default`` or ``file producer.toml``.

        Raises ConfigError for a name that is no option.
        """
        if name not in self.table.by_name:
            raise ConfigError(f"there is no option {name!r}", code="UNKNOWN_OPTION")
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
        conceal(self.table, options)
        values, origins = settle(self.table, [("argument", options)], base=(self.as_dict(), self._origins))
        return type(self)(values, origins)

    def __repr__(self) -> str:
        changed = ", ".join(
            f"{option.name}={option.format(getattr(self, option.name))!r}"
            for option in self.table.options
            if getattr(self, option.name) != option.default
        )
        return f"{type(self).__name__}({changed})"


class ProducerConfig(Config):
    """Hold the settled options of a producer: seconds as float, sizes in bytes.  See CONFIGURATION.md."""

    table: ClassVar[OptionTable] = PRODUCER

    target: str
    group_id: str
    group_ids: tuple[str, ...]
    executors: int
    busy_poll: float
    connections: int
    active_proxies: int
    standby_proxies: int
    eject_outliers: bool
    buffer_bytes: int
    buffer_messages: int
    on_full: Literal["block", "raise", "drop_newest", "drop_oldest"]
    ordering: Literal["none", "key"]
    key_buckets: int
    max_block: float
    batch_bytes: int
    batch_messages: int
    linger: float
    max_open_packs: int
    pack_seconds: int
    exact_time: bool
    attribute_escape: Literal["none", "percent"]
    delivery_timeout: float
    ack_timeout: float
    connect_timeout: float
    close_timeout: float
    start: Literal["resolve", "connect", "lazy"]
    close_on: tuple[str, ...]
    warn_at_exit: bool
    undelivered_bytes: int
    retry_backoff: float
    retry_backoff_max: float
    retry_budget: int
    unknown_group_timeout: float
    reconnect_backoff: float
    reconnect_backoff_max: float
    heartbeat: Literal["binary", "message", "off"]
    heartbeat_interval: float
    heartbeat_retries: int
    compression: Literal["none", "snappy"]
    compression_min_bytes: int
    protocol: Literal["tcp", "v1", "http"]
    message_type: Literal[7, 6, 5, 3, 2]
    joined_lines: bool
    trace_address: str
    ack: Literal["source", "sink", "none"]
    max_frame_bytes: int
    nagle: bool
    user: str
    password: Secret
    discovery_interval: float
    manager_timeout: float
    manager_secret_id: str
    manager_secret_key: Secret
    tls: bool
    tls_ca: str
    tls_verify: Literal["full", "chain", "none"]
    tls_server_name: str
    tls_certificate: str
    tls_key: str
    tls_key_password: Secret
    tls_min_version: Literal["1.2", "1.3"]
    manager_tls_ca: str
    manager_tls_certificate: str
    manager_tls_key: str
    manager_tls_key_password: Secret
    manager_secret_file: str
    manager_header_file: str
    manager_tenant: str
    cache_dir: str
    cache_max_age: float
    empty_value: Literal["fail", "skip"]
    null_value: Literal["fail", "skip", "empty"]


class ConsumerConfig(Config):
    """Hold the settled options of a consumer: seconds as float, sizes in bytes.  See CONFIGURATION.md.

    ``topics`` has pairs of a topic and its filter items; ``dict(config.topics)`` is the mapping of both.  ``offsets``
    has pairs of a partition and its offset.
    """

    table: ClassVar[OptionTable] = CONSUMER

    target: str
    group: str
    topics: tuple[tuple[str, tuple[str, ...]], ...]
    start: Literal["earliest", "latest", "end"]
    offsets: tuple[tuple[str, int], ...]
    session: str
    larger_offset: bool
    balance: Literal["master", "client"]
    members: int
    node: int
    prefetch_bytes: int
    auto_confirm: bool
    confirm_timeout: float
    release_wait: float
    not_found_wait: float
    call_timeout: float
    connect_timeout: float
    close_timeout: float
    heartbeat_interval: float
    master_retry_max: float
    register_retries: int
    register_retry_wait: float
    dns_interval: float
    user: str
    password: Secret
    tls: bool
    tls_ca: str
    tls_verify: Literal["full", "chain", "none"]
    tls_server_name: str
    tls_certificate: str
    tls_key: str
    tls_key_password: Secret
    tls_min_version: Literal["1.2", "1.3"]


class HubConfig(Config):
    """Hold the settled options of a hub: seconds as float, sizes in bytes.  See CONFIGURATION.md."""

    table: ClassVar[OptionTable] = HUB

    store: str
    host: str
    port: int
    manager_port: int
    http_port: int
    tubemq_port: int
    rocketmq_port: int
    rocketmq_vip: bool
    tubemq_cluster: str
    tubemq_broker: int
    tubemq_session: float
    tubemq_zookeeper: str
    tubemq_zookeeper_root: str
    nodes: int
    threads: int
    retention_bytes: int
    retention_age: float
    max_store_bytes: int
    queue_bytes: int
    max_frame_bytes: int
    max_connections: int
    read_idle: float
    profile: Literal["strict", "compat"]
    load: str
    compress_entries: bool
    partitions: int
    node_ip: str
    topics: tuple[str, ...]
    numeric_ids: tuple[str, ...]
    dedupe: Literal["off", "ids"]
    dedupe_conflict: Literal["first", "both"]
    dedupe_window: float
    dedupe_rows_window: float
    dedupe_memory: int
    secret_id: str
    secret_key: Secret
    tls_certificate: str
    tls_key: str
    tls_key_password: Secret
    tls_client_ca: str
    tls_min_version: Literal["1.2", "1.3"]
    insecure: bool
    allowed_hosts: tuple[str, ...]
    token: Secret
    token_file: str
    fault_api: Literal["on", "off"]
    cluster_id: int
