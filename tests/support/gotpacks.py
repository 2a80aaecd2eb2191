"""Answers of a broker and their packs, without a broker."""

from __future__ import annotations

import zlib
from typing import Any

from dataproxy._core.consumer.gotpack import read_pack
from dataproxy._core.consumer.pack import Pack
from dataproxy.wire.tubemq import messages

__all__ = ["answer", "message", "pack"]

_HAS_ATTRIBUTE = 1


def message(body: bytes, attribute: str = "", number: int = 1, spoiled: bool = False) -> Any:
    """Return a message with an attribute text; ``spoiled``: its checksum is wrong."""
    text = attribute.encode()
    payload = len(text).to_bytes(4) + text + body if text else body
    checksum = (zlib.crc32(payload) + spoiled) & 0x7FFFFFFF
    return messages.TransferedMessage(
        messageId=number, checkSum=checksum, payLoadData=payload, flag=_HAS_ATTRIBUTE if text else 0
    )


def answer(*found: Any, code: int = 200, offset: int | None = 280, **fields: Any) -> bytes:
    """Return the bytes of an answer with messages."""
    made = messages.GetMessageResponseB2C(
        success=code == 200, errCode=code, errMsg="text", messages=found, currOffset=offset, **fields
    )
    return bytes(made.SerializeToString())


def pack(*found: Any) -> Pack:
    """Return a pack of messages of partition ``1:t:0`` that begins at 280."""
    got = read_pack(answer(*found), "t", "1:t:0", [])
    assert got is not None
    made = got[-1]
    assert made is not None
    return made
