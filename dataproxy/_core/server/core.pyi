from collections.abc import Iterable
from typing import Any, TypeAlias, final

from dataproxy._core.net.tlscontext import TlsContexts
from dataproxy._core.server.faults.core import FaultCore
from dataproxy._core.server.rocketmq.core import RemotingCore
from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.server.tubemq.callcore import CallsCore
from dataproxy._core.server.tubemq.core import RegistrationsCore

CLOSE_NAMES: tuple[str, ...]
COUNTERS: tuple[str, ...]

_ProducerRow: TypeAlias = tuple[int, str, str, int, int, int, int, tuple[tuple[str, str], ...], int, str | None]

@final
class HubCore:
    threads: int
    port: int
    nodes: int
    tubemq: int
    rocketmq: int
    ports: tuple[int, ...]

    def __init__(
        self,
        store: StoreCore,
        faults: FaultCore | None = None,
        *,
        host: str,
        other_host: str = "",
        port: int,
        http_port: int = -1,
        nodes: int = 1,
        threads: int,
        max_frame: int,
        max_connections: int,
        read_idle: float,
        reply_bytes: int,
        queue_bytes: int,
        compat: bool,
        compress_entries: bool,
        node_ip: str,
        partitions: int,
        topics: Iterable[str],
        numbers: Iterable[tuple[int, int, str]] = (),
        tls: TlsContexts | None = None,
        calls: CallsCore | None = None,
        tubemq_port: int = -1,
        tubemq_message: int = 0,
        tubemq_partitions: int = 1,
        remoting: RemotingCore | None = None,
        rocketmq_port: int = -1,
        rocketmq_second_port: int = -1,
        rocketmq_message: int = 4194304,
    ) -> None: ...
    def serve_data(self, broker: RegistrationsCore) -> None: ...
    def open(self) -> int: ...
    def run_loop(self, i: int) -> None: ...
    def stop(self, drain: float) -> None: ...
    def close_listener(self) -> None: ...
    def release(self) -> None: ...
    def refuse(self, listener: int, kill: bool) -> None: ...
    def resume(self, listener: int) -> None: ...
    def refuses(self, listener: int) -> bool: ...
    def accepted(self, listener: int) -> int: ...
    def follow(self) -> None: ...
    def wake(self) -> None: ...
    def set_service(self, code: int, node: int = -1) -> None: ...
    def set_load(self, load: int | str | None, node: int = -1) -> None: ...
    def set_compat(self, compat: bool, listener: int) -> None: ...
    def settings(self, listener: int) -> tuple[bool, int, int | str | None]: ...
    def clock_us(self) -> int: ...
    def set_tokens(self, least: int, most: int) -> None: ...
    def let_name(self, partitions: int) -> None: ...
    def advance_clock(self, seconds: float) -> None: ...
    def producers(self) -> tuple[list[_ProducerRow], list[_ProducerRow], int]: ...
    def stats(self) -> dict[str, Any]: ...
