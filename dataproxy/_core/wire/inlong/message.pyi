from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

from typing_extensions import disjoint_base

from dataproxy._core.base.column import Bytes

__all__ = ["Group", "Message", "Records", "Runs", "decode", "encode", "records", "runs"]

class Group(NamedTuple):
    attrs: dict[str, str]
    records: list[bytes]

class Message(NamedTuple):
    version: int
    create_time_ms: int
    record_count: int
    compressed: bool
    groups: list[Group]

@disjoint_base
class Records:
    def __new__(cls, data: bytes, *, skip: int = ..., limit: int = ...) -> Self: ...
    @property
    def create_time_ms(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[bytes, dict[str, str]]]: ...
    def __next__(self) -> tuple[bytes, dict[str, str]]: ...

@disjoint_base
class Runs:
    def __new__(cls, data: bytes, bodies: Bytes, *, limit: int = ...) -> Self: ...
    def __iter__(self) -> Iterator[tuple[dict[str, str], int]]: ...
    def __next__(self) -> tuple[dict[str, str], int]: ...

def decode(data: bytes, *, limit: int = ...) -> Message: ...
def records(data: bytes, *, skip: int = ..., limit: int = ...) -> Records: ...
def runs(data: bytes, bodies: Bytes, *, limit: int = ...) -> Runs: ...
def encode(
    version: int,
    groups: Iterable[tuple[Mapping[str, str] | str, Sequence[bytes | tuple[bytes, Mapping[str, str] | str]]]],
    *,
    create_time_ms: int = ...,
    compress: bool = ...,
    seq: int = ...,
) -> bytes: ...
