"""What a member asks of masters and brokers, and what it says to the part that reads packs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dataproxy.masters.target import Address
from dataproxy.wire.tubemq.texts import BROKER_PORT, Partition

__all__ = [
    "EARLIEST",
    "LATEST",
    "Address",
    "Ask",
    "Drop",
    "Fault",
    "Hold",
    "Known",
    "MemberOptions",
    "Order",
    "Refusal",
    "Release",
    "Reply",
    "Untaken",
]

#: Places to read from, beside offsets.
EARLIEST, LATEST = -1, -2


class Ask(NamedTuple):
    """A call to be made; its end is told to the member by ``answered`` or ``failed``, once."""

    number: int
    address: Address
    name: str  #: of the request's message
    message: Any
    timeout_s: float


class Fault(NamedTuple):
    """Why a call has no answer: the network, or an exception of the server (its class, without the package)."""

    text: str
    exception: str = ""
    sent: bool = True  #: the server may have it


class Hold(NamedTuple):
    """Read packs of a partition from now on, beginning at ``offset``; its store ends at ``end``, -1: not known."""

    partition: Partition
    offset: int
    end: int = -1


class Release(NamedTuple):
    """Give out nothing more of a partition; tell the member by ``released`` when its last pack has its end.

    At ``until`` a pack that is out is taken away.  ``moves``: it stays this member's, and ``Hold`` comes again, with
    the place where it is read then; a second ``Release`` in between says that it does not.
    """

    partition: Partition
    until: float
    moves: bool = False


class Drop(NamedTuple):
    """A partition is another's by now, or nobody's: read nothing more, confirm nothing."""

    partition: Partition
    code: int


class Reply(NamedTuple):
    """The end of what the application asked for under a number.

    ``problem``: "" without one, else a word.  ``offset``: where reading goes on; ``end``: that of the store.
    """

    number: int
    problem: str = ""
    offset: int = -1
    end: int = -1
    keys: tuple[str, ...] = ()  #: of partitions that the problem is about


class Known(NamedTuple):
    """What can be read of the topics, for a member that chooses by itself."""

    partitions: tuple[Partition, ...]


class Untaken(NamedTuple):
    """A broker does not give a partition; it is asked again, or the master is told that it is not held."""

    partition: Partition
    code: int
    why: str = ""  #: what the broker said, or why it did not answer


class Refusal(NamedTuple):
    """A master does not let this member into its group: a setting differs, a right is missing, a topic is unknown."""

    code: int
    text: str


Order = Hold | Release | Drop | Refusal | Reply | Known | Untaken


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """Settings of a member; times in s."""

    masters: tuple[Address, ...]
    client: str  #: id, which nobody else has
    group: str
    topics: dict[str, tuple[str, ...]]  #: filter items of each; none: all messages
    host: str = "127.0.0.1"  #: this machine's own address
    broker_port: int = BROKER_PORT  #: of brokers for which a master writes none
    user: str = ""
    password: str = field(default="", repr=False)
    #: readStatus of a partition's first registration by this member: 0 stored offset or first, 1 stored or end, 2 end.
    #: With 2 a member skips what was sent while a partition changed hands.
    first_read: int = 0
    heartbeat_s: float = 10.0  #: at most a third of what servers wait
    slow_s: float = 60.0  #: longest wait while no master answers at all
    confirm_wait_s: float = 3.0  #: for packs that are out when their partition is taken away
    register_rounds: int = 5  #: of a partition that its old owner still has
    register_pause_s: float = 1.0
    timeout_s: float = 10.0
    full_report_every: int = 6
    offsets: dict[str, int] = field(default_factory=dict)  #: of partitions (keys) in a bound group: where each begins
    bound: bool = False
    session: str = ""
    members: int = 0  #: of a bound group, or of one whose members choose by themselves
    larger_wins: bool = False
    node: int = 0  #: of a member that chooses by itself: which one of ``members`` it is
    topics_s: float = 10.0  #: between two questions of such a member what there is of its topics
