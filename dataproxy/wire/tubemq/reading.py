"""Messages read from bytes."""

from __future__ import annotations

from typing import Any

from dataproxy.wire.tubemq import messages

__all__ = ["read_message"]


def read_message(name: str, data: bytes) -> Any:
    """Return a message of the schema, or None if the bytes are none, or lack a required field."""
    from google.protobuf.message import DecodeError

    kind: Any = getattr(messages, name)
    try:
        message = kind.FromString(data)
    except DecodeError:
        return None
    return message if message.IsInitialized() else None
