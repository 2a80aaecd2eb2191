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
    def mark_forked(self) -> None: ...
