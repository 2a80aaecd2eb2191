from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from inspect import Signature
from typing import Any, Self, final

from _typeshed import ReadableBuffer as Buffer

from dataproxy._core.producer.ingest.fastcall import SendMethod
from dataproxy._core.producer.results.delivery import BatchDelivery, Delivery
from dataproxy.outcomes import DeliveryResult

__all__ = ["BoundSend", "SendPolicy", "Stream"]

@final
class SendPolicy:
    def __init__(
        self,
        *,
        family: int,
        skip_null: bool,
        skip_empty: bool,
        item_text: Callable[[Mapping[str, str] | None, object, Collection[str]], tuple[int, bytes]],
    ) -> None: ...

@final
class BoundSend:
    def __init__(self) -> None: ...
    def __call__(
        self,
        body: Buffer,
        *,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_id: str | None = None,
        key: str | Buffer | None = None,
    ) -> None: ...
    def __get__(self, instance: object, kind: type | None = None, /) -> Self: ...
    @property
    def __self__(self) -> Stream: ...
    @property
    def __func__(self) -> SendMethod: ...
    @property
    def __signature__(self) -> Signature: ...
    def __getattr__(self, name: str) -> Any: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Stream:
    def __init__(self) -> None: ...
    @property
    def group_id(self) -> str: ...
    @property
    def stream_id(self) -> str: ...
    def send_nowait(
        self,
        body: Any,
        *,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_id: str | None = None,
        key: str | Buffer | None = None,
    ) -> None: ...
    def send(
        self,
        body: Any,
        *,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_id: str | None = None,
        key: str | Buffer | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
    ) -> Delivery: ...
    def send_batch(
        self,
        bodies: Iterable[Any] | Buffer,
        *,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_ids: Sequence[str | bytes] | None = None,
        key: str | Buffer | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
    ) -> BatchDelivery: ...
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
    ) -> BatchDelivery: ...
