from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, final

from _typeshed import ReadableBuffer as Buffer
from typing_extensions import disjoint_base

from dataproxy._core.net.tlscontext import TlsContexts
from dataproxy._core.producer.handle import CoreHandle
from dataproxy._core.producer.ingest.stream import SendPolicy, Stream
from dataproxy._core.producer.results.delivery import BatchDelivery, Delivery
from dataproxy.outcomes import DeliveryResult

__all__ = ["CompletionsWait", "ExecutorLoop", "ProducerCore"]

@final
class ExecutorLoop:
    def __call__(self) -> None: ...

@final
class CompletionsWait:
    def wait(self, seconds: float) -> bool: ...

@disjoint_base
class ProducerCore(CoreHandle):
    def __init__(self, options: dict[str, Any], policy: SendPolicy) -> None: ...
    def _bind_stream(
        self,
        group_id: str,
        stream_id: str,
        attrs: bytes,
        frame_keys: Collection[str],
        serializer: Callable[[Any], Buffer] | None = None,
    ) -> Stream: ...
    def _open_again(self, tls: TlsContexts | None, sender: str = "") -> None: ...
    def _adopt(self, running: bool) -> None: ...
    def _give_up(self) -> None: ...
    def _add_group(self, group_id: str, number: int) -> None: ...
    def _set_clusters(
        self,
        clusters: Sequence[tuple[int, list[tuple[Any, ...]], Sequence[tuple[int, int, int, int, int]]]],
        groups: tuple[int, ...] | None,
        fixed: tuple[int, ...] | None = None,
        admission: tuple[int, bytes] | None = None,
    ) -> None: ...
    def _active_clusters(self) -> set[int]: ...
    def _set_frame_limit(self, size: int) -> None: ...
    def _executor_loop(self, index: int) -> ExecutorLoop: ...
    def _completions_wait(self) -> CompletionsWait: ...
    def _poke(self) -> None: ...
    def _keeps_names(self, forget: bool) -> bool: ...
    def _wait_settled(self, seconds: float) -> bool: ...
    def _refuse_inside_callback(self, what: str) -> None: ...
    def _check_open(self) -> None: ...
    def _begin_close(self) -> None: ...
    def _abandon_open(self) -> None: ...
    def _stop_executors(self) -> None: ...
    def _end_completions(self, ended: bool = True) -> None: ...
    def _counts(self) -> dict[str, Any]: ...
    def _note_trouble(self, kind: int, text: str) -> None: ...
    def _latency_steps(self) -> dict[int, int]: ...
    def _take_reach(self) -> int | None: ...
    def _connections(self) -> list[dict[str, Any]]: ...
    def _age(self) -> float: ...
    def send_nowait(
        self,
        stream_id: str,
        body: Any,
        *,
        group_id: str | None = None,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_id: str | None = None,
        key: str | Buffer | None = None,
    ) -> None: ...
    def send(
        self,
        stream_id: str,
        body: Any,
        *,
        group_id: str | None = None,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_id: str | None = None,
        key: str | Buffer | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
    ) -> Delivery: ...
    def send_batch(
        self,
        stream_id: str,
        bodies: Iterable[Any] | Buffer,
        *,
        group_id: str | None = None,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_ids: Sequence[str | bytes] | None = None,
        key: str | Buffer | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
    ) -> BatchDelivery: ...
    def send_arrow(
        self,
        stream_id: str,
        data: Any,
        *,
        group_id: str | None = None,
        column: str | None = None,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        id_column: str | None = None,
        key: str | Buffer | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
    ) -> BatchDelivery: ...
