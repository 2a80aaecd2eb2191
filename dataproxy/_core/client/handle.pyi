from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

__all__ = ["CoreHandle"]

@disjoint_base
class CoreHandle:
    callback_failed: Callable[[Callable[[Any], object]], None] | None
    @property
    def closed(self) -> bool: ...
    @property
    def callers(self) -> set[int]: ...
    @property
    def inherited(self) -> bool: ...
    def begin_again(self) -> None: ...
    def refuse_closed(self) -> None: ...
