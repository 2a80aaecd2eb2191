from collections.abc import Iterable
from typing import Any, final

from dataproxy._core.hub.faultcore import FaultCore
from dataproxy._core.hub.storecore import StoreCore

CLOSE_NAMES: tuple[str, ...]
COUNTERS: tuple[str, ...]

@final
class HubCore:
    threads: int
    port: int
    ports: tuple[int, ...]

    def __init__(
        self,
        store: StoreCore,
        faults: FaultCore | None = None,
        *,
        host: str,
        port: int,
        listeners: int = 1,
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
    ) -> None: ...
    def open(self) -> int: ...
    def run_door(self, i: int) -> None: ...
    def stop(self, drain: float) -> None: ...
    def close_listener(self) -> None: ...
    def refuse(self, listener: int, kill: bool) -> None: ...
    def resume(self, listener: int) -> None: ...
    def refuses(self, listener: int) -> bool: ...
    def accepted(self, listener: int) -> int: ...
    def follow(self) -> None: ...
    def wake(self) -> None: ...
    def set_service(self, code: int) -> None: ...
    def set_load(self, load: int | str | None) -> None: ...
    def advance_clock(self, seconds: float) -> None: ...
    def stats(self) -> dict[str, Any]: ...
