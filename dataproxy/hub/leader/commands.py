"""What a seat asks of ZooKeeper, and how that ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

__all__ = ["Command", "End", "Kind", "Outcome", "Seen"]


class Kind(Enum):
    """Each is one request, or several that ZooKeeper answers in order; what writes is one transaction."""

    ENROL = "enrol"  #: create the node of this hub, which goes with its session
    LOOK = "look"  #: after a sync: the leader's node, the version of the epoch's and the document's, the hubs
    READ = "read"  #: after a sync: the document
    RUN = "run"  #: raise the epoch from the given one, and create the leader's node, which goes with the session
    TOUCH = "touch"  #: write something, if the epoch is the given one and the leader's node is there
    WRITE = "write"  #: write the document, if the epoch is the given one and the document's version, too
    RESIGN = "resign"  #: delete the leader's node, if the epoch is the given one


class End(Enum):
    """How a command ended."""

    DONE = "done"
    REFUSED = "refused"  #: it has had no effect, and cannot have one later
    UNKNOWN = "unknown"  #: it may have had its effect, or have it yet


@dataclass(eq=False)  # two commands are never the same
class Command:
    """A command that is to be carried out now."""

    kind: Kind
    began: float
    epoch: int = 0
    version: int = 0  #: of the document
    data: bytes = field(default=b"", repr=False)


class Seen(NamedTuple):
    """What a look finds."""

    leader: bytes | None  #: the text of its node; None: there is none
    epoch: int
    version: int  #: of the document
    hubs: Mapping[int, bytes]  #: texts of their nodes


class Outcome(NamedTuple):
    """The end of a command with what it found."""

    end: End
    seen: Seen | None = None  #: of LOOK
    data: bytes = b""  #: of READ
    version: int = 0  #: of READ
