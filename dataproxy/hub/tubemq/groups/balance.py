"""How the partitions of a group are divided among its members: who shall hold what.

A division is a dictionary of sets of partitions by member.  All that is left open is drawn from a given source of
random numbers: the same input has the same division.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from dataproxy.wire.tubemq.texts import Partition

__all__ = ["Division", "Share", "as_named", "blocks", "keep_and_even"]

Division = dict[str, set[Partition]]


class Share(NamedTuple):
    """A member, and what it holds as far as the master knows; in a bound group, the offsets it names by key."""

    client: str
    held: frozenset[Partition]
    named: Mapping[str, int]


def blocks(members: Sequence[Share], partitions: Sequence[Partition]) -> Division:
    """Divide for the first time: the partitions of each topic in blocks, by the order of the members' ids.

    ``partitions`` are in order of topic, broker and number, as for all functions here.
    """
    clients = sorted(one.client for one in members)
    found: Division = {client: set() for client in clients}
    for _, of_topic in groupby(partitions, key=lambda one: one.topic):
        left = list(of_topic)
        base, extra = divmod(len(left), len(clients))
        at = 0
        for i, client in enumerate(clients):
            size = base + (i < extra)
            found[client].update(left[at : at + size])
            at += size
    return found


def as_named(
    members: Sequence[Share], partitions: Sequence[Partition], *, larger_wins: bool, source: random.Random
) -> Division:
    """Give each partition to who named it, and what nobody named to anybody.

    Of several who named it the offset decides; of equal ones the later member's if the larger wins, else the
    earlier's.  ``members`` are in the order in which they registered.
    """
    found: Division = {one.client: set() for one in members}
    for partition in partitions:
        naming = [one for one in members if partition.key in one.named]
        if not naming:
            found[source.choice(members).client].add(partition)
            continue
        winner = naming[0]
        for one in naming[1:]:
            before, after = winner.named[partition.key], one.named[partition.key]
            if after >= before if larger_wins else after < before:
                winner = one
        found[winner.client].add(partition)
    return found


def keep_and_even(
    members: Sequence[Share],
    partitions: Sequence[Partition],
    *,
    moves: Mapping[Partition, str],
    source: random.Random,
) -> Division:
    """Let everybody keep what is held and still there; give out what nobody holds, or else even the shares.

    A partition that two members hold stays with the first, by id.  ``moves``: partitions that shall go to a member.
    What nobody holds goes to who has the least then.  Only when nothing had to be given out, members above the even
    share give to those below it.
    """
    there = set(partitions)
    owners: dict[Partition, str] = {}
    for one in sorted(members):
        for partition in one.held & there:
            owners.setdefault(partition, one.client)
    clients = {one.client for one in members}
    owners.update(
        {partition: client for partition, client in moves.items() if partition in there and client in clients}
    )
    found: Division = {client: set() for client in sorted(clients)}
    for partition, client in owners.items():
        found[client].add(partition)
    free = [partition for partition in partitions if partition not in owners]
    if free:
        _give_out(found, free, source)
    else:
        _even(found, set(moves), len(partitions))
    return found


def _give_out(found: Division, free: list[Partition], source: random.Random) -> None:
    """Give each partition to one of those who have the fewest."""
    by_count: dict[int, list[str]] = {}
    for client, held in found.items():
        by_count.setdefault(len(held), []).append(client)
    least = min(by_count)
    for partition in free:
        while not by_count.get(least):
            least += 1
        clients = by_count[least]
        i = source.randrange(len(clients))
        clients[i], clients[-1] = clients[-1], clients[i]
        client = clients.pop()
        found[client].add(partition)
        by_count.setdefault(least + 1, []).append(client)


def _even(found: Division, moved: set[Partition], n: int) -> None:
    """Move as few partitions as possible until the shares differ by one at most; what was just moved stays."""
    base, extra = divmod(n, len(found))
    order = sorted(found, key=lambda client: (-len(found[client]), client))
    quota = {client: base + (i < extra) for i, client in enumerate(order)}
    surplus: list[Partition] = []
    for client in order:
        over = len(found[client]) - quota[client]
        if over > 0:  # the last ones, by order: what a seed plays must not hang on the order of a set
            given = sorted(found[client] - moved, reverse=True)[:over]
            found[client].difference_update(given)
            surplus += given
    for client in order:
        while surplus and len(found[client]) < quota[client]:
            found[client].add(surplus.pop())
