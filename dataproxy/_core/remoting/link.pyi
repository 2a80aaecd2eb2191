from typing import Any, Protocol, final

from typing_extensions import disjoint_base

from dataproxy._core.remoting.answers import Incoming

__all__ = ["Link", "Request"]

class _Seal(Protocol):
    def seal(self, plain: bytes, /) -> bytes: ...
    def open(self, data: bytes, /) -> bytes | None: ...

@disjoint_base
class Request:
    _until: float

@final
class Link:
    def __new__(cls, fd: int, seal: _Seal | None = None) -> Link: ...
    @property
    def requests(self) -> dict[int, Request]: ...
    @property
    def sends(self) -> int: ...
    @property
    def sent_bytes(self) -> int: ...
    @property
    def read_bytes(self) -> int: ...
    @property
    def errno(self) -> int: ...
    @property
    def unsent(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def fileno(self) -> int: ...
    def call(self, request: Request | None, code: int, fields: dict[str, str], body: bytes) -> None: ...
    def answer(self, incoming: Incoming, code: int, remark: str, body: bytes) -> None: ...
    def send(
        self,
        request: Request | None,
        group: bytes,
        topic: bytes,
        queue: int,
        properties: bytes,
        body: bytes,
        sys_flag: int,
        born_ms: int,
        flag: int,
        default_queues: int,
        batch: bool,
        attempts: int,
        most_attempts: int,
    ) -> None: ...
    def pull(
        self,
        request: Request,
        group: bytes,
        topic: bytes,
        queue: int,
        offset: int,
        *,
        most: int,
        sys_flag: int,
        commit: int,
        suspend_ms: int,
        subscription: bytes,
        version: int,
        kind: bytes,
        broker: str,
    ) -> None: ...
    def forget(self, number: int) -> Request | None: ...
    def flush(self) -> bool: ...
    def receive(self) -> list[tuple[Request | None, Any]] | None: ...
    def close(self) -> list[Request]: ...
