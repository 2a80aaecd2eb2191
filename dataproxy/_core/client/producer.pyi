from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from _typeshed import ReadableBuffer as Buffer
from typing_extensions import disjoint_base

from dataproxy._core.client.delivery import BatchDelivery, Delivery
from dataproxy._core.client.handle import CoreHandle
from dataproxy._core.client.sending import SendPolicy, Stream
from dataproxy.outcomes import DeliveryResult

__all__ = ["ProducerCore"]

@disjoint_base
class ProducerCore(CoreHandle):
    def __init__(self, options: dict[str, Any], policy: SendPolicy) -> None: ...
    @property
    def policy(self) -> SendPolicy: ...
    def bind_stream(self, group_id: str, stream_id: str, attrs: bytes, frame_keys: Collection[str]) -> Stream: ...
    def open_again(self) -> None: ...
    def adopt(self, running: bool) -> None: ...
    def give_up(self) -> None: ...
    def set_endpoints(self, endpoints: list[tuple[str, str, int, int, str]], links: list[int]) -> None: ...
    def limit_frames(self, size: int) -> None: ...
    def run_executor(self, index: int) -> None: ...
    def wait_settled(self, seconds: float) -> bool: ...
    def refuse_inside_callback(self, what: str) -> None: ...
    def check_open(self) -> None: ...
    def begin_close(self) -> None: ...
    def abandon_open(self) -> None: ...
    def stop(self) -> None: ...
    def end_completions(self, ended: bool = True) -> None: ...
    def counts(self) -> dict[str, Any]: ...
    def latency_steps(self) -> dict[int, int]: ...
    def links(self) -> list[dict[str, Any]]: ...
    def age(self) -> float: ...
    def send_nowait(
        self,
        stream_id: str,
        body: Buffer,
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
        body: Buffer,
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
        bodies: Iterable[Buffer] | Buffer,
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
