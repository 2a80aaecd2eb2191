from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dataproxy._core.base.column import Bytes

__all__ = ["Group", "Message", "decode", "encode", "records", "runs"]

class Group(NamedTuple):
    attrs: dict[str, str]
    records: list[bytes]

class Message(NamedTuple):
    version: int
    create_time_ms: int
    record_count: int
    compressed: bool
    groups: list[Group]

def decode(data: bytes, *, limit: int = ...) -> Message: ...
def records(data: bytes, *, limit: int = ...) -> list[tuple[bytes, dict[str, str]]]: ...
def runs(data: bytes, bodies: Bytes, *, limit: int = ...) -> list[tuple[dict[str, str], int]]: ...
def encode(
    version: int,
    groups: Iterable[tuple[Mapping[str, str] | str, Sequence[bytes | tuple[bytes, Mapping[str, str] | str]]]],
    *,
    create_time_ms: int = ...,
    compress: bool = ...,
    seq: int = ...,
) -> bytes: ...
