from collections.abc import Callable
from typing import Protocol, final

from dataproxy._core.remoting.messages import ReceivedMessage

__all__ = ["Batches"]

class _Closes(Protocol):
    _closed: bool

@final
class Batches:
    def __new__(
        cls, listener: Callable[[list[ReceivedMessage]], object], messages: list[ReceivedMessage], size: int
    ) -> Batches: ...
    @property
    def at(self) -> int: ...
    def last(self) -> list[ReceivedMessage]: ...
    def hear(self, consumer: _Closes) -> None: ...
