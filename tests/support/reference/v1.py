"""The V1 protocol in plain Python: protobuf makes the messages of ``tests/data/v1.proto`` and reads them.

The schema is turned into a descriptor here, so there is no generated file that could be older than it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.support.reference.snappy import unpack

__all__ = ["Messages", "PackError", "info", "pack_frame", "read_infos", "read_pack"]

_SCHEMA: Final = Path(__file__).parents[2] / "data" / "v1.proto"
_FIELD: Final = re.compile(r"(required|optional|repeated) (\w+) (\w+) = (\d+);")
_LABELS: Final = {"optional": 1, "required": 2, "repeated": 3}
_TYPES: Final = {"int64": 3, "int32": 5, "string": 9, "bytes": 12}
_MESSAGE, _ENUM = 11, 14


class PackError(ValueError):
    """The bytes are no pack."""


def _described(text: str) -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of a schema: enums, and messages of plain fields."""
    file = descriptor_pb2.FileDescriptorProto(name="v1.proto", package="dataproxy.v1", syntax="proto2")
    blocks = re.findall(r"^(enum|message) (\w+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    enums = {name for kind, name, _ in blocks if kind == "enum"}
    for kind, name, body in blocks:
        if kind == "enum":
            one = file.enum_type.add(name=name)
            for word, number in re.findall(r"(\w+) = (-?\d+);", body):
                one.value.add(name=word, number=int(number))
            continue
        message = file.message_type.add(name=name)
        for label, typed, field, number in _FIELD.findall(body):
            added = message.field.add(name=field, number=int(number), label=_LABELS[label])
            if typed in _TYPES:
                added.type = _TYPES[typed]
            else:
                added.type = _ENUM if typed in enums else _MESSAGE
                added.type_name = f".dataproxy.v1.{typed}"
    return file


_POOL: Final = descriptor_pool.DescriptorPool()
_POOL.Add(_described(_SCHEMA.read_text()))
#: The message classes by name.
Messages: Final[dict[str, Any]] = {
    name: message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"dataproxy.v1.{name}"))
    for name in (
        "MapFieldEntry", "MessagePackHeader", "MessageObj", "MessageObjs", "MessagePack", "ResponseInfo",
    )
}  # fmt: skip


def pack_frame(pack: bytes, *, version: int = 1) -> bytes:
    """Return the frame around a serialised MessagePack."""
    return (len(pack) + 2).to_bytes(4, "big") + bytes([0, version]) + pack


def info(result: int, pack_id: int) -> bytes:
    """Return a serialised ResponseInfo."""
    return bytes(Messages["ResponseInfo"](result=result, packId=pack_id).SerializeToString())


def read_pack(frame: bytes) -> tuple[Any, list[Any]]:
    """Return header and messages of one frame.  Raises PackError."""
    if int.from_bytes(frame[:4], "big") != len(frame) - 4 or frame[4:6] != b"\0\1":
        raise PackError("no V1 frame")
    try:
        pack = Messages["MessagePack"].FromString(frame[6:])
        content = pack.compressBytes
        if pack.header.compressType == 2:
            content = unpack(content)
        return pack.header, list(Messages["MessageObjs"].FromString(content).msgs)
    except Exception as error:
        raise PackError(str(error)) from error


def read_infos(data: bytes) -> list[tuple[int | None, int]]:
    """Return (result, pack id) of ResponseInfos that stand one behind the other; None for an unknown result."""
    found = []
    while data:
        end = 1
        for _ in range(2):
            while data[end] >= 0x80:
                end += 1
            end += 2
        end -= 1
        one = Messages["ResponseInfo"].FromString(data[:end])
        found.append((one.result if one.HasField("result") else None, one.packId))
        data = data[end:]
    return found
