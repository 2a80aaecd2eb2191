"""What happened, as two independent witnesses tell it: the callers of the client, and the readers of the hubs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Accounting", "Close", "Dip", "History", "Idle", "Result", "Stored", "Told", "Violation"]


class Result(NamedTuple):
    """One result of one message: delivered, sent, failed, expired or dropped."""

    outcome: str
    at: float
    maybe: bool = False  # the client says that it may be stored all the same
    id: str = ""
    refused: int = 0  # the code of a hub that does not take this message


class Told(NamedTuple):
    """What a caller knows of one message that ``send`` accepted; times in seconds."""

    producer: str
    sequence: int
    key: str
    digest: int
    accepted_at: float
    results: tuple[Result, ...] = ()
    watched: bool = True  # False: sent without asking for a result
    stream: str = ""
    limit: float = 0.0  # the delivery timeout it was sent with, 0: not judged
    guilty: int = 0  # the code that every hub refuses it with


class Stored(NamedTuple):
    """One copy of one message at a hub.

    ``log`` names the log, ``place`` is (offset, index) in it; ``at`` orders copies of different logs, where two
    equal values say nothing.
    """

    producer: str
    sequence: int
    key: str
    digest: int
    intact: bool
    log: str
    place: tuple[int, int]
    at: float
    id: str = ""
    stream: str = ""


class Accounting(NamedTuple):
    """One look at a producer's own counts."""

    producer: str
    at: float
    accepted: int
    delivered: int
    failed: int
    expired: int
    dropped: int
    pending: int
    buffered: int = 0
    limit: int = 0
    final: bool = False  # nothing was accepted afterwards
    sent: int = 0


class Close(NamedTuple):
    """One close of a producer; ``written_after`` counts bytes that left it after the call had returned."""

    producer: str
    called_at: float
    returned_at: float
    timeout: float
    written_after: int = 0


class Dip(NamedTuple):
    """The rate around one fault: what it was before, and when it was back at nine tenths of it."""

    fault_at: float
    recovered_at: float | None


class Idle(NamedTuple):
    """Processor time of a process that had nothing to do."""

    seconds: float
    cpu: float


class Violation(NamedTuple):
    """One law that does not hold, and where."""

    law: str
    text: str


@dataclass
class History:
    """Everything one run has seen; what is left empty is not judged."""

    told: list[Told] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    foreign: int = 0  # bodies at the hubs that nobody of the run made
    accounting: list[Accounting] = field(default_factory=list)
    closes: list[Close] = field(default_factory=list)
    dips: list[Dip] = field(default_factory=list)
    idle: list[Idle] = field(default_factory=list)
    grace: float = 0.25  # how much later than its limit a result may come
    close_grace: float = 1.0
    with_ids: bool = True  # the hubs were told ids
    most_duplicates: int | None = None  # messages that may have a second copy: those in flight at the faults
    extra_frames: int = 0  # stored beyond the first copy of each
    resent_frames: int | None = None  # that the clients count as sent once more
