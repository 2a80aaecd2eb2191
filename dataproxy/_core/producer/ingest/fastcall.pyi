from collections.abc import Mapping
from datetime import datetime
from inspect import Signature
from typing import Any, Self, final, overload

from _typeshed import ReadableBuffer as Buffer

from dataproxy._core.producer.ingest.stream import Stream

__all__ = ["BoundSend", "SendMethod"]

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
class SendMethod:
    def __call__(
        self,
        stream: Stream,
        body: Buffer,
        *,
        attrs: Mapping[str, str] | None = None,
        dt: int | datetime | None = None,
        message_id: str | None = None,
        key: str | Buffer | None = None,
    ) -> None: ...
    @overload
    def __get__(self, instance: None, kind: type | None = None, /) -> Self: ...
    @overload
    def __get__(self, instance: Stream, kind: type | None = None, /) -> BoundSend: ...
    @property
    def __wrapped__(self) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
