from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, final

from _typeshed import ReadableBuffer as Buffer
from typing_extensions import disjoint_base

from dataproxy._core.producer.aio.notifier import Notifier
from dataproxy._core.producer.handle import CoreHandle
from dataproxy._core.producer.ingest.stream import Stream
from dataproxy._core.producer.producer import ProducerCore
from dataproxy._core.producer.results.delivery import BatchDelivery, Delivery
from dataproxy.outcomes import BatchDelivered, Delivered, DeliveryResult, Sent

__all__ = [
    "AsyncCore",
    "AsyncStream",
    "checked_body",
    "grow_batch",
    "new_batch",
    "room",
    "seal_all",
    "seal_idle",
    "turns",
    "waiting_args",
    "waiting_body",
]

@disjoint_base
class AsyncCore:
    @property
    def _queueing(self) -> int: ...
    @property
    def _notifiers(self) -> dict[int, Notifier]: ...
    @property
    def _inner(self) -> Any: ...
    @property
    def _is_inherited(self) -> bool: ...
    @property
    def _is_open(self) -> bool: ...
    def __init__(self) -> None: ...
    def _attach(self, target: CoreHandle) -> None: ...
    def _check(self) -> None: ...
    def _check_process(self) -> None: ...
    def _join_queue(self) -> None: ...
    def _leave_queue(self) -> None: ...
    def _watch(self) -> Notifier: ...
    def _let_go(self) -> None: ...
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
    ) -> Coroutine[Any, Any, Delivered | Sent]: ...
    def send_soon(
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
    ) -> Coroutine[Any, Any, BatchDelivered]: ...
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
    ) -> Coroutine[Any, Any, BatchDelivered]: ...

@final
class AsyncStream:
    @property
    def group_id(self) -> str: ...
    @property
    def stream_id(self) -> str: ...
    def __init__(self, producer: AsyncCore, plain: Stream) -> None: ...
    def send(
        self,
        body: Any,
        *,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_id: str | None = None,
        key: str | Buffer | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
    ) -> Coroutine[Any, Any, Delivered | Sent]: ...
    def send_soon(
        self,
        body: Any,
        *,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_id: str | None = None,
        key: str | Buffer | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
    ) -> Delivery: ...
    def send_nowait(
        self,
        body: Any,
        *,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_id: str | None = None,
        key: str | Buffer | None = None,
    ) -> None: ...
    def send_batch(
        self,
        bodies: Iterable[Any] | Buffer,
        *,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_ids: Sequence[str | bytes] | None = None,
        key: str | Buffer | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
    ) -> Coroutine[Any, Any, BatchDelivered]: ...
    def send_arrow(
        self,
        data: Any,
        *,
        column: str | None = None,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        id_column: str | None = None,
        key: str | Buffer | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
    ) -> Coroutine[Any, Any, BatchDelivered]: ...
    def batch(self) -> Any: ...

def turns(core: CoreHandle) -> int: ...
def room(core: CoreHandle) -> tuple[int, int]: ...
def seal_all(core: CoreHandle) -> int: ...
def seal_idle(core: CoreHandle) -> None: ...
def checked_body(
    stream: Stream,
    body: Any,
    *,
    attrs: Mapping[str, str] | None = None,
    dt: int | datetime | None = None,
    message_id: str | None = None,
    key: str | Buffer | None = None,
    on_delivery: Callable[[DeliveryResult], object] | None = None,
) -> bytes: ...
def waiting_body(stream: Stream, body: bytes) -> Any: ...
def waiting_args(core: ProducerCore, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]: ...
def new_batch(core: CoreHandle) -> BatchDelivery: ...
def grow_batch(batch: BatchDelivery, delivery: Delivery) -> None: ...
