from collections.abc import Iterator
from typing import Self, final

from dataproxy._core.producer.handle import CoreHandle
from dataproxy.outcomes import Undelivered

__all__ = ["UndeliveredMessages"]

@final
class UndeliveredMessages(Iterator[Undelivered]):
    def __init__(self, core: CoreHandle) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Undelivered: ...
