from dataproxy._core.producer.handle import CoreHandle
from dataproxy.outcomes import ResultFields, Watch

__all__ = ["let_go", "next_batch"]

def next_batch(
    core: CoreHandle, seconds: float
) -> (
    tuple[
        list[tuple[str, str, int, int, ResultFields, list[str | None] | None, int]],
        list[tuple[Watch, ResultFields, int]],
        list[tuple[int, str, int, str]],
        int,
        tuple[int, int, int, int],
    ]
    | None
): ...
def let_go(core: CoreHandle, size: int) -> bool: ...
