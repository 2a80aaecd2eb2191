"""Times and bounds of a master."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MasterLimits"]


@dataclass(frozen=True)
class MasterLimits:
    """Times in seconds, memory in bytes.

    The defaults are TubeMQ's shipped ones, but for the balance: TubeMQ looks at its groups every 30 s, this master as
    soon as something has changed.  ``soon_s=None`` is TubeMQ's way.
    """

    producer_s: float = 45.0  #: without a heartbeat, until a producer is forgotten
    consumer_s: float = 30.0  #: the same of a group's member
    broker_s: float = 25.0  #: the same of a broker
    balance_s: float = 5.0  #: a period of the balance, in which unanswered events are counted
    soon_s: float | None = 0.5  #: from a change to the balance; None: a change waits for the period
    alone_s: float | None = None  #: the same for a group's first member, which takes from nobody; None: `soon_s`
    first_balance_s: float = 0.0  #: from the master's start on, in which nothing is divided
    event_cycles: int = 10  #: periods in which an event may stay unanswered
    brokers_a_member: int = 1000  #: a group with fewer members is given nothing
    clocks_apart_s: float = 20.0  #: at most, between a signature's clock and ours
    token_s: float = 300.0  #: how long all clients get the same token
    memory_bytes: int = 64 << 20  #: for groups, members and producers
