from collections.abc import Sequence
from typing import Self

from typing_extensions import disjoint_base

__all__ = ["RowKeys"]

@disjoint_base
class RowKeys:
    def __new__(cls, prefix: bytes, columns: Sequence[int]) -> Self: ...
