from typing_extensions import disjoint_base

__all__ = ["CoreHandle"]

@disjoint_base
class CoreHandle:
    @property
    def closed(self) -> bool: ...
    def mark_forked(self) -> None: ...
