"""The nodes in which TubeMQ keeps positions: ``<root>/consumers-v3/<group>/offsets/<topic>/<broker>-<partition>``."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dataproxy.errors import ConfigError
from dataproxy.wire.tubemq.texts import read_offset, write_offset

__all__ = ["Nodes", "Place", "plain", "position_text", "read_position"]

#: Characters that ZooKeeper refuses in a name, or that have a meaning there, and the one that escapes them here.
_UNSAFE: Final = re.compile("[%/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")
_ESCAPED: Final = re.compile(r"((?:%[0-9A-F]{2})+)")
_LARGEST_PARTITION: Final = 2**31 - 1
_PART: Final = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")
_NO_MESSAGE: Final = 0  # as the message's id, which nobody reads


class Place(NamedTuple):
    """What a position belongs to."""

    group: str
    topic: str
    partition: int


def position_text(position: int) -> bytes:
    """Return what a node holds for a position: ``<message id>-<offset>``."""
    return write_offset(_NO_MESSAGE, position).encode()


def read_position(text: bytes) -> int | None:
    """Return the position that a node holds, None if it holds none; a text without "-" is the offset alone."""
    try:
        position = read_offset(text.decode("ascii"))[1]
    except ValueError:
        return None
    return position if position >= 0 else None


class Nodes:
    """The nodes of one broker below ``root``, which may lack its first ``/``.  Raises ConfigError if it is no path.

    Names that TubeMQ allows stand in a path as they are.  In others, which a hub may have, what ZooKeeper does not
    allow is written as ``%`` and two digits for each byte in UTF-8, so that a name is always one part of the path.
    """

    def __init__(self, root: str, broker: int) -> None:
        parts = root.strip("/").split("/")
        if not all(parts) or any(_escaped(one) != one for one in parts):
            raise ConfigError(f"the path {root!r} is none of ZooKeeper's", hint="write it as /tubemq")
        self.groups = f"/{'/'.join(parts)}/consumers-v3"  #: the node whose children are groups
        self._broker = broker

    def topics(self, group: str) -> str:
        """Return the node whose children are the topics of a group."""
        return f"{self.groups}/{_escaped(group)}/offsets"

    def partitions(self, group: str, topic: str) -> str:
        """Return the node whose children are the partitions of a topic."""
        return f"{self.topics(group)}/{_escaped(topic)}"

    def path(self, place: Place) -> str:
        """Return the node of a position."""
        return f"{self.partitions(place.group, place.topic)}/{self._broker}-{place.partition}"

    def partition(self, name: str) -> int | None:
        """Return the partition of a node below a topic, None if it is not one of this broker's."""
        found = _PART.fullmatch(name)
        if found is None or int(found[1]) != self._broker or int(found[2]) > _LARGEST_PARTITION:
            return None
        return int(found[2])


def _escaped(name: str) -> str:
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), name)


def plain(name: str) -> str:
    """Return the name that a part of a path stands for."""
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[1].replace("%", "")).decode("utf-8", "replace"), name)
