"""What messages of each message type can carry: the one place above the wires that names message types."""

from __future__ import annotations

from dataproxy.numbers import TYPE_BINARY, TYPE_LINES

__all__ = ["ascii_only", "has_item_attributes", "has_item_ids"]


def ascii_only(message_type: int) -> bool:
    """Tell whether names and attributes of frames of this type must be ASCII."""
    return message_type == TYPE_BINARY


def has_item_attributes(message_type: int) -> bool:
    """Tell whether single messages can have attributes; otherwise they are lines of one text."""
    return message_type != TYPE_LINES


def has_item_ids(message_type: int) -> bool:
    """Tell whether single messages can have ids that the caller chooses."""
    return message_type == TYPE_BINARY
