from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, final

from _typeshed import ReadableBuffer as Buffer

from dataproxy._core.producer.results.delivery import BatchDelivery, Delivery
from dataproxy.outcomes import DeliveryResult

__all__ = ["SendPolicy", "Stream"]

@final
class SendPolicy:
    def __init__(
        self,
        *,
        message_type: int,
        skip_null: bool,
        skip_empty: bool,
        item_text: Callable[[Mapping[str, str] | None, object, Collection[str]], tuple[int, bytes]],
    ) -> None: ...

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
