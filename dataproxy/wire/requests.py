"""Requests written in plain Python: heartbeats, as the producer sends them, and a frame with one marked message."""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["BINARY", "MESSAGE", "calling_heartbeat", "heartbeat", "marked_frame", "wide_heartbeat"]

BINARY: Final = 8  #: message type of heartbeats that are answered with the load
MESSAGE: Final = 1  #: message type of heartbeats without contents
_MAGIC: Final = 0xEE01
_LINES: Final = 3
_TYPE_BINARY: Final = 7
_NAMES: Final = 4  # extField: the attributes name group and stream


def heartbeat(kind: int, now: float) -> bytes:
    """Return a heartbeat of type 8 or 1, the producer's to the byte; ``now`` is in seconds since 1970."""
    if kind == MESSAGE:
        return struct.pack(">IB", 1, MESSAGE)
    return struct.pack(">IBIBIHH", 14, BINARY, int(now), 1, 0, 0, _MAGIC)


def calling_heartbeat() -> bytes:
    """Return a heartbeat of type 1 that holds two line ends.

    A DataProxy does not look at its contents.  A program that waits for lines (HTTP, SMTP, Redis) answers it, so that
    it can be told from a DataProxy that hangs.
    """
    return struct.pack(">IB", 5, MESSAGE) + b"\r\n\r\n"


def wide_heartbeat(size: int) -> bytes:
    """Return a heartbeat of type 1 whose frame has ``size`` bytes: the contents are zeros, which nobody stores."""
    return struct.pack(">IB", size - 4, MESSAGE) + bytes(size - 5)


def marked_frame(
    message_type: int, group_id: str, stream_id: str, body: bytes, *, mark: str, sequence: int, now: float
) -> bytes:
    """Return a frame with one message, whose attribute ``doctor`` is ``mark``.

    ``message_type`` is 7, 5 or 3; the other arguments keep to the producer's rules.
    """
    names = f"groupId={group_id}&streamId={stream_id}&doctor={mark}"
    packed = body if message_type == _LINES else struct.pack(">I", len(body)) + body
    if message_type != _TYPE_BINARY:
        attrs = f"{names}&dt={int(now * 1000)}&mid={sequence}&cnt=1".encode()
        content = struct.pack(">BI", message_type, len(packed)) + packed + struct.pack(">I", len(attrs)) + attrs
        return struct.pack(">I", len(content)) + content
    attrs = names.encode()
    head = struct.pack(">BHHHIHII", _TYPE_BINARY, 0, 0, _NAMES, int(now), 1, sequence, len(packed))
    content = head + packed + struct.pack(">H", len(attrs)) + attrs + struct.pack(">H", _MAGIC)
    return struct.pack(">I", len(content)) + content
