from collections.abc import Iterator, Mapping
from typing import final

__all__ = ["DELAY_LEVELS", "Encoded", "Ids", "check_size", "encode", "encode_batch"]

DELAY_LEVELS: tuple[int, ...]

@final
class Ids(Iterator[str]):
    def __new__(cls, head: str, first: int) -> Ids: ...
    def __next__(self) -> str: ...

@final
class Encoded:
    sys_flag: int
    @property
    def id(self) -> str: ...
    @property
    def body(self) -> bytes: ...
    @property
    def properties(self) -> bytes: ...
    @property
    def flag(self) -> int: ...

def encode(
    id_: str,
    body: bytes | bytearray | memoryview,
    tag: str,
    keys: tuple[str, ...],
    properties: Mapping[str, str],
    delay_level: int,
    flag: int,
    compress_above: int,
    more: Mapping[str, str] | None = None,
) -> Encoded: ...
def encode_batch(id_: str, body: bytes) -> Encoded: ...
def check_size(what: str, size: int, hint: str) -> None: ...
