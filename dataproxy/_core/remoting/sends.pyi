from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from dataproxy._core.remoting.link import Link, Request
from dataproxy._core.remoting.outgoing import Encoded

__all__ = ["NO_QUEUE", "Send", "Sends"]

NO_QUEUE: object

@disjoint_base
class Send(Request):
    _handler: Any
    _topic: str
    _id: str
    _content: Encoded
    _count: int
    _size: int
    _begun: float
    _deadline: float
    _ended: float
    _number: int
    _attempts: int
    _refusals: int
    _by: int
    _bucket: int | None
    _fixed: int | None
    _queue: Any
    _avoided: str
    _why: str
    _batch: bool
    _written: bool
    _maybe: bool
    _result: Any
    _event: Any
    _callbacks: list[Callable[[Any], object]] | None
    def __init__(self, topic: str, content: Encoded, count: int, handler: Sends) -> None: ...
    def _answered(self, answer: Any) -> None: ...
    def _lost(self, error: Any) -> None: ...

@disjoint_base
class Sends:
    _lock: Any
    _last: int
    _open: dict[Any, bool]
    _counts: dict[str, int]
    _flushes: list[Any]
    _bytes: int
    _awaited: bool
    _looking: bool
    _over: bool
    _unrouted: dict[str, Any]
    _held: dict[Any, Any]
    _away: dict[Any, float]
    def __init__(self, client: Any, group: bytes, limits: Any, lock: Any) -> None: ...
    def accept(self, delivery: Send) -> None: ...
    def dispatch(self, delivery: Send) -> None: ...
    def pump(self, address: Any, link: Link) -> None: ...
    def _fits(self, size: int) -> bool: ...
    def _place(self, delivery: Send, now: float) -> Any: ...
    def _pick(self, delivery: Send, route: Any) -> Any: ...
    def _settle(self, delivery: Send, outcome: str, result: Any) -> int: ...
    def settle_all(self, found: list[tuple[Request | None, Any]]) -> list[tuple[Request | None, Any]]: ...
