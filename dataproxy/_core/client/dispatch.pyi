from dataproxy._core.client.handle import CoreHandle
from dataproxy.outcomes import Facts, Watch

__all__ = ["next_batch"]

def next_batch(
    core: CoreHandle, seconds: float
) -> (
    tuple[
        list[tuple[str, str, int, int, Facts, list[str | None] | None]],
        list[tuple[Watch, Facts]],
        list[tuple[int, str, int, str]],
        int,
    ]
    | None
): ...
