"""Messages read from bytes."""

from __future__ import annotations

from typing import Any

from dataproxy.wire.tubemq import messages

__all__ = ["has_texts", "read_message"]


def read_message(name: str, data: bytes) -> Any:
    """Return a message of the schema, or None: the bytes are none, lack a required field, or have a text without UTF-8.

    protobuf gives such a text as bytes, which nobody expects.
    """
    from google.protobuf.message import DecodeError

    kind: Any = getattr(messages, name)
    try:
        message = kind.FromString(data)
    except DecodeError:
        return None
    return message if message.IsInitialized() and has_texts(message) else None


def has_texts(message: Any) -> bool:
    """Tell whether all texts of a message are texts."""
    for field, value in message.ListFields():
        several = value if hasattr(value, "append") else (value,)
        if field.type == field.TYPE_STRING and any(isinstance(one, bytes) for one in several):
            return False
        if field.type == field.TYPE_MESSAGE and not all(map(has_texts, several)):
            return False
    return True
