"""Names and ids: of messages, clients, topics and groups, and the hashes of tags."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final, NamedTuple, Self

__all__ = [
    "DEAD_LETTERS",
    "RETRIES",
    "TEMPLATE",
    "ClientId",
    "MessageId",
    "dead_letter_topic",
    "is_name",
    "retry_topic",
    "tag_hash",
]

RETRIES: Final = "%RETRY%"
DEAD_LETTERS: Final = "%DLQ%"
TEMPLATE: Final = "TBW102"  #: the topic that others are made after
_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]{1,127}")
_SHOWN: Final = 80


class MessageId(NamedTuple):
    """A message's id that tells where it lies: the address of its broker, and its physical offset."""

    host: str
    port: int
    offset: int

    @classmethod
    def read(cls, text: str) -> Self:
        """Read an id of 32 (IPv4) or 56 (IPv6) hex digits; raises ValueError."""
        size = {32: 4, 56: 16}.get(len(text))
        digits = text.isascii() and text.isalnum()
        try:
            data = bytes.fromhex(text) if size and digits else b""
        except ValueError:
            data = b""
        if not data or size is None:
            raise ValueError(f"{text[:_SHOWN]!r} is no message id: expected 32 or 56 hex digits")
        port, offset = data[size : size + 4], data[size + 4 :]
        return cls(str(ip_address(data[:size])), int.from_bytes(port, signed=True), int.from_bytes(offset, signed=True))

    def __str__(self) -> str:
        rest = self.port.to_bytes(4, signed=True) + self.offset.to_bytes(8, signed=True)
        return (ip_address(self.host).packed + rest).hex().upper()


class ClientId(NamedTuple):
    """A client's id, ``ip@instance[@unit][@STREAM]``; one of C++ has ``pid-ip`` in front.  It need not be unique."""

    address: str
    instance: str
    unit: str = ""
    stream: bool = False

    @classmethod
    def read(cls, text: str) -> Self:
        """Read an id; one without an instance is an address alone."""
        parts = text.split("@")
        stream = len(parts) > 2 and parts[-1] == "STREAM"
        rest = parts[2 : len(parts) - stream]
        return cls(parts[0], parts[1] if len(parts) > 1 else "", "@".join(rest), stream)

    def __str__(self) -> str:
        return "@".join(filter(None, (self.address, self.instance, self.unit, "STREAM" if self.stream else "")))


def is_name(text: str) -> bool:
    """Tell whether topics and groups may have this name: 1 to 127 letters of ASCII, digits, and ``%|_-``."""
    return _NAME.fullmatch(text) is not None


def retry_topic(group: str) -> str:
    """Return the topic of a group's messages that come again."""
    return RETRIES + group


def dead_letter_topic(group: str) -> str:
    """Return the topic of a group's messages that come no more."""
    return DEAD_LETTERS + group


def tag_hash(tag: str) -> int:
    """Return Java's hash of a tag, which brokers compare."""
    value = 0
    data = tag.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (31 * value + int.from_bytes(data[at : at + 2])) & 0xFFFFFFFF
    return value - (value >> 31 << 32)
