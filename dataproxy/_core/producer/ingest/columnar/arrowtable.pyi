from typing import Any, Self

from typing_extensions import disjoint_base

__all__ = ["ArrowTable"]

@disjoint_base
class ArrowTable:
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def formats(self) -> tuple[str, ...]: ...
    @property
    def encoded(self) -> tuple[bool, ...]: ...
    def __new__(cls, data: Any) -> Self: ...
