from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self, final, overload

from _typeshed import ReadableBuffer as Buffer

from dataproxy._core.producer.ingest.stream import BoundSend, Stream

__all__ = ["SendMethod"]

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
