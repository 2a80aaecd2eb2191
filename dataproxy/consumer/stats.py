"""Snapshots of a consumer as typed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Amounts", "ConsumerStats", "Lag", "lag_of", "make_stats"]


@dataclass(frozen=True, slots=True)
class Amounts:
    """Count packs, or messages: ``fetched = confirmed + rolled_back + expired + held``, at any moment."""

    fetched: int
    confirmed: int
    rolled_back: int
    expired: int
    held: int


@dataclass(frozen=True, slots=True)
class Lag:
    """Say how far a partition is behind: ``position`` is where its next pack begins.

    ``messages`` are those of the partition's store, which other partitions may share; ``bytes`` are of their data.
    None: the broker has not said it yet; hubs that push never say bytes.
    """

    position: int | None
    messages: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class ConsumerStats:
    """Describe a consumer since it was opened.

    ``state``: joining, member, leaving or closed.  ``bytes``: of payloads.  ``broken``: messages with a wrong checksum,
    which are skipped; ``filtered``: messages that a broker sent though no filter item is theirs; ``empty``: answers
    without messages; ``refused``: requests for packs that were answered with an error.  ``lags`` by partition.
    ``trouble``: the newest fault of a call to a master, or why there are no queues of RocketMQ; "" without one.
    """

    state: str
    client: str
    packs: Amounts
    messages: Amounts
    bytes: int
    broken: int
    filtered: int
    empty: int
    refused: int
    sent_bytes: int
    read_bytes: int
    connects: int
    lags: dict[str, Lag]
    trouble: str


def lag_of(position: int, max_offset: int, backlog: int, unit: int) -> Lag:
    """Return a partition's lag; values below 0 are not known.  ``unit``: of offsets, for one message."""
    return Lag(
        position if position >= 0 else None,
        max(max_offset - position, 0) // unit if position >= 0 and max_offset >= 0 else None,
        backlog if backlog >= 0 else None,
    )


def make_stats(state: str, client: str, tally: dict[str, Any], lags: dict[str, Lag], trouble: str) -> ConsumerStats:
    """Return the statistics of what the core has counted."""
    counts: dict[str, Any] = {name: Amounts(**tally.pop(name)) for name in ("packs", "messages")}
    return ConsumerStats(state=state, client=client, lags=lags, trouble=trouble, **counts, **tally)
