from collections.abc import Callable
from typing import Any

from dataproxy._core.client.delivery import Delivery
from dataproxy._core.client.handle import CoreHandle
from dataproxy.outcomes import Facts

__all__ = ["next_batch"]

def next_batch(
    core: CoreHandle, seconds: float
) -> (
    tuple[
        list[tuple[str, str, int, Facts, list[str | None] | None]],
        list[tuple[Callable[[Any], object], Delivery]],
        list[tuple[int, str, int]],
        int,
    ]
    | None
): ...
