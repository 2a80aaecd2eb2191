from typing import TypeAlias

from typing_extensions import disjoint_base

STORE_FORMAT: int

def checksum(data: bytes, before: int = 0) -> int: ...

_Header: TypeAlias = tuple[int, int, int, str, str, str]

@disjoint_base
class StoreView:
    path: str | None
    @staticmethod
    def open(path: str) -> StoreView: ...
    def close(self) -> None: ...
    def read(
        self,
        topic: str,
        partition: int,
        offset: int,
        max_entries: int = 1024,
        max_bytes: int = 1048576,
        stream: str | None = None,
    ) -> list[tuple[int, _Header, bytes]]: ...
    def stream_offsets(self, topic: str, partition: int, stream: str, start: int, n: int) -> list[int]: ...
    def logs(self, topic: str | None = None) -> list[tuple[str, int, int, int, int, int, int]]: ...
    def stream_page(
        self, after: tuple[int, int, int, str, str] | None, most: int
    ) -> tuple[list[tuple[str, int, str, int, int, int]], tuple[int, int, int, str, str] | None]: ...
    def counts(self) -> dict[tuple[str, str], tuple[int, int, int]]: ...
