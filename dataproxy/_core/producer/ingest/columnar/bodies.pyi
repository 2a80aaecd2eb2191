from collections.abc import Callable, Sequence
from typing import Any, Self

from typing_extensions import disjoint_base

__all__ = ["BodyEncoder"]

@disjoint_base
class BodyEncoder:
    def __new__(
        cls,
        form: str,
        columns: Sequence[int],
        *,
        zone_table: Callable[[str], tuple[bytes, bytes, int]],
        times: str = "iso",
        leave_nulls_out: bool = True,
        null_text: str = "",
        tells_nulls: bool = False,
        separator: str = ",",
        joint: str = "=",
        escape: str = "\\",
        quote: str = "",
        line_separator: str = "",
    ) -> Self: ...
    def measure(self, batch: Any) -> int: ...
    def texts(self, batch: Any) -> list[bytes | None]: ...
