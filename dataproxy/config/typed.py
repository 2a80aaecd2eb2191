"""Options as keyword arguments, for type checkers.  Written by ``python -m dataproxy.config.render``; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from dataproxy.config.secret import Secret

__all__ = ["ConsumerOptions", "HubOptions", "ProducerOptions"]


class ProducerOptions(TypedDict, total=False):
    """Options that a Producer takes by keyword."""

    group_ids: str | list[str] | tuple[str, ...] | None
    executors: int | str | None
    busy_poll: float | str | timedelta | None
    connections: int | str | None
    active_proxies: int | str | None
    standby_proxies: int | str | None
    eject_outliers: bool | str | None
    buffer_bytes: int | str | None
    buffer_messages: int | str | None
    on_full: Literal["block", "raise", "drop_newest", "drop_oldest"] | None
    ordering: Literal["none", "key"] | None
    key_buckets: int | str | None
    max_block: float | str | timedelta | None
    batch_bytes: int | str | None
    batch_messages: int | str | None
    linger: float | str | timedelta | None
    max_open_packs: int | str | None
    pack_seconds: int | str | None
    exact_time: bool | str | None
    attribute_escape: Literal["none", "percent"] | None
    delivery_timeout: float | str | timedelta | None
    ack_timeout: float | str | timedelta | None
    connect_timeout: float | str | timedelta | None
    close_timeout: float | str | timedelta | None
    start: Literal["resolve", "connect", "lazy"] | None
    close_on: str | list[str] | tuple[str, ...] | None
    warn_at_exit: bool | str | None
    undelivered_bytes: int | str | None
    retry_backoff: float | str | timedelta | None
    retry_backoff_max: float | str | timedelta | None
    retry_budget: int | str | None
    unknown_group_timeout: float | str | timedelta | None
    reconnect_backoff: float | str | timedelta | None
    reconnect_backoff_max: float | str | timedelta | None
    heartbeat: Literal["binary", "message", "off"] | None
    heartbeat_interval: float | str | timedelta | None
    heartbeat_retries: int | str | None
    compression: Literal["none", "snappy"] | None
    compression_min_bytes: int | str | None
    protocol: Literal["tcp", "v1", "http"] | None
    message_type: Literal[7, 6, 5, 3, 2] | None
    joined_lines: bool | str | None
    trace_address: str | None
    ack: Literal["source", "sink", "none"] | None
    max_frame_bytes: int | str | None
    nagle: bool | str | None
    user: str | None
    password: str | Secret | Callable[[], str | bytes] | None
    discovery_interval: float | str | timedelta | None
    manager_timeout: float | str | timedelta | None
    manager_secret_id: str | None
    manager_secret_key: str | Secret | Callable[[], str | bytes] | None
    tls: bool | str | None
    tls_ca: str | None
    tls_verify: Literal["full", "chain", "none"] | None
    tls_server_name: str | None
    tls_certificate: str | None
    tls_key: str | None
    tls_key_password: str | Secret | Callable[[], str | bytes] | None
    tls_min_version: Literal["1.2", "1.3"] | None
    manager_tls_ca: str | None
    manager_tls_certificate: str | None
    manager_tls_key: str | None
    manager_tls_key_password: str | Secret | Callable[[], str | bytes] | None
    manager_secret_file: str | None
    manager_header_file: str | None
    manager_tenant: str | None
    cache_dir: str | None
    cache_max_age: float | str | timedelta | None
    empty_value: Literal["fail", "skip"] | None
    null_value: Literal["fail", "skip", "empty"] | None


class ConsumerOptions(TypedDict, total=False):
    """Options that a Consumer takes by keyword."""

    start: Literal["earliest", "latest", "end"] | None
    offsets: str | list[str] | Mapping[str, int] | None
    session: str | None
    larger_offset: bool | str | None
    balance: Literal["master", "client"] | None
    members: int | str | None
    node: int | str | None
    prefetch_bytes: int | str | None
    auto_confirm: bool | str | None
    confirm_timeout: float | str | timedelta | None
    release_wait: float | str | timedelta | None
    not_found_wait: float | str | timedelta | None
    call_timeout: float | str | timedelta | None
    connect_timeout: float | str | timedelta | None
    close_timeout: float | str | timedelta | None
    heartbeat_interval: float | str | timedelta | None
    master_retry_max: float | str | timedelta | None
    register_retries: int | str | None
    register_retry_wait: float | str | timedelta | None
    dns_interval: float | str | timedelta | None
    user: str | None
    password: str | Secret | Callable[[], str | bytes] | None
    tls: bool | str | None
    tls_ca: str | None
    tls_verify: Literal["full", "chain", "none"] | None
    tls_server_name: str | None
    tls_certificate: str | None
    tls_key: str | None
    tls_key_password: str | Secret | Callable[[], str | bytes] | None
    tls_min_version: Literal["1.2", "1.3"] | None


class HubOptions(TypedDict, total=False):
    """Options that a Hub takes by keyword."""

    host: str | None
    port: int | str | None
    manager_port: int | str | None
    http_port: int | str | None
    tubemq_port: int | str | None
    rocketmq_port: int | str | None
    rocketmq_vip: bool | str | None
    tubemq_cluster: str | None
    tubemq_broker: int | str | None
    tubemq_session: float | str | timedelta | None
    tubemq_zookeeper: str | None
    tubemq_zookeeper_root: str | None
    nodes: int | str | None
    threads: int | str | None
    retention_bytes: int | str | None
    retention_age: float | str | timedelta | None
    max_store_bytes: int | str | None
    queue_bytes: int | str | None
    max_frame_bytes: int | str | None
    max_connections: int | str | None
    read_idle: float | str | timedelta | None
    profile: Literal["strict", "compat"] | None
    load: str | None
    compress_entries: bool | str | None
    partitions: int | str | None
    node_ip: str | None
    topics: str | list[str] | tuple[str, ...] | None
    numeric_ids: str | list[str] | tuple[str, ...] | None
    dedupe: Literal["off", "ids"] | None
    dedupe_conflict: Literal["first", "both"] | None
    dedupe_window: float | str | timedelta | None
    dedupe_rows_window: float | str | timedelta | None
    dedupe_memory: int | str | None
    secret_id: str | None
    secret_key: str | Secret | Callable[[], str | bytes] | None
    tls_certificate: str | None
    tls_key: str | None
    tls_key_password: str | Secret | Callable[[], str | bytes] | None
    tls_client_ca: str | None
    tls_min_version: Literal["1.2", "1.3"] | None
    insecure: bool | str | None
    allowed_hosts: str | list[str] | tuple[str, ...] | None
    token: str | Secret | Callable[[], str | bytes] | None
    token_file: str | None
    fault_api: Literal["on", "off"] | None
    cluster_id: int | str | None
