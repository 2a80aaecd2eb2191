"""Times and bounds of a registry."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Hold times in seconds, and bounds.

    ``client``: without a heartbeat that names a group, until a client is out of it; ``filter_server``: the same.
    ``notice``: from a change of a group until its members are told, together with what changes meanwhile.
    ``tombstone``: for so long a heartbeat that was on its way cannot bring back who has left.

    ``returns``: for so long a client that was lost may come back with offsets of before a reset.

    ``idle``: without a pull, until a member that holds queues with messages is an alarm.

    ``lease``: of a lock.  ``belief``: for so long a client counts a lock as its own without asking again: 30 s from
    the answer, which it waits 1 s for; so a lock whose owner's connection is gone is free after ``grace``, but not
    before that.  ``quiet``: at the start of a hub
    nobody gets a lock for so long; with ``belief``, no client is left that has one of an earlier hub.

    ``status`` and ``relay``: for a client to answer a question; ``reply``: to take a reply, of whose sender the answer
    is awaited for 3 s.  ``check``: between two questions how a transaction
    ends; ``young``: until the first one; ``checks``: so many at most; ``abandoned``: until a half message is put aside
    for which no producer ever came.

    ``push_messages``, ``push_bytes``, ``push_age``: what a push session may have without acknowledgement before it is
    paused; it goes on at half of that.  ``push_tell``: so long a pause lasts before the member is told of it, and
    ``push_grace``: so long it may acknowledge nothing after that before it is evicted, and ``push_cut``: so long it may
    read what it was sent before its connection is cut.  ``push_line_bytes``: what all
    sessions of a connection may have without acknowledgement.  ``pushes``: sessions of a connection, and ``all_pushes``
    of all.

    ``records``: groups of all clients, one for each group of each connection.  ``groups``: of one heartbeat.
    ``bytes``: of all heartbeats that are kept.  ``locks``: of all groups.  ``questions``: that wait for an answer.
    ``halves``: messages of transactions.
    """

    client: float = 120.0
    filter_server: float = 30.0
    notice: float = 0.1
    tombstone: float = 10.0
    returns: float = 600.0
    idle: float = 90.0
    lease: float = 60.0
    belief: float = 32.0
    grace: float = 5.0
    quiet: float = 0.0
    status: float = 5.0
    relay: float = 10.0
    reply: float = 2.5
    check: float = 60.0
    young: float = 6.0
    checks: int = 15
    abandoned: float = 72 * 3600.0
    push_messages: int = 1024
    push_bytes: int = 4 << 20
    push_age: float = 30.0
    push_tell: float = 1.0
    push_grace: float = 300.0
    push_cut: float = 5.0
    push_line_bytes: int = 16 << 20
    pushes: int = 1024
    all_pushes: int = 100_000
    records: int = 200_000
    groups: int = 1024
    bytes: int = 256 << 20
    locks: int = 1_000_000
    questions: int = 10_000
    halves: int = 1_000_000
