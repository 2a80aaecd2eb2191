from typing_extensions import disjoint_base

from dataproxy._core.server.store.view import StoreView

@disjoint_base
class StoreCore(StoreView):
    def __init__(
        self,
        path: str | None = None,
        *,
        max_bytes: int = 0,
        retention_bytes: int = 0,
        retention_ms: int = 0,
        queue_bytes: int = 67108864,
        commit_bytes: int = 33554432,
        retain_every_ms: int = 1000,
        map_bytes: int = 1073741824,
        dedupe_ms: int = 600000,
        dedupe_ids: int = 0,
        dedupe_rows_ms: int = 604800000,
        dedupe_blocks: int = 1000,
        first_wins: bool = False,
    ) -> None: ...
    def run_committer(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def stats(self) -> dict[str, int | str]: ...
