"""What messages of each message type can carry: the one place above the wires that names message types."""

from __future__ import annotations

from dataproxy.numbers import FAMILY_BINARY_LINES, FAMILY_REPORT, FAMILY_V1, TYPE_BINARY, TYPE_COMMON, TYPE_LINES

__all__ = [
    "REPORT_TYPE", "ascii_only", "frame_family", "has_item_attributes", "has_item_ids", "is_report", "joins_lines",
]  # fmt: skip

REPORT_TYPE = TYPE_LINES
"""What a pack is over HTTP: lines of one text."""

_BARE = (TYPE_COMMON, TYPE_LINES, FAMILY_BINARY_LINES, FAMILY_V1, FAMILY_REPORT)


def frame_family(message_type: int, joined_lines: bool, protocol: str) -> int:
    """Return the core's number for the layout of frames that these options choose."""
    if protocol != "tcp":
        return FAMILY_V1 if protocol == "v1" else FAMILY_REPORT
    return FAMILY_BINARY_LINES if joined_lines and message_type == TYPE_BINARY else message_type


def is_report(message_type: int) -> bool:
    """Tell whether packs of this type are what an HTTP report carries."""
    return message_type == REPORT_TYPE


def joins_lines(family: int) -> bool:
    """Tell whether a whole frame is one record for readers: its messages are lines."""
    return family in (TYPE_COMMON, TYPE_LINES, FAMILY_BINARY_LINES, FAMILY_REPORT)


def ascii_only(family: int) -> bool:
    """Tell whether names and attributes of frames of this type or layout must be ASCII."""
    return family in (TYPE_BINARY, FAMILY_BINARY_LINES)


def has_item_attributes(family: int) -> bool:
    """Tell whether single messages can have attributes; lines of one text and V1 messages have none."""
    return family not in _BARE


def has_item_ids(family: int) -> bool:
    """Tell whether single messages can have ids that the caller chooses."""
    return family == TYPE_BINARY
