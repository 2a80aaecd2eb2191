"""What a test may choose of a server."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

__all__ = ["Settings"]


@dataclass
class Settings:
    """Settings of a master and its broker; some may be changed while they run, which counts from the next call on."""

    topics: Mapping[str, int]  #: partitions of each, all in one store; `TubeServer.open_topic` adds some
    closed: Collection[str] = ()  #: topics that are there, and that producers are not told of
    broker_id: int = 1
    #: Brokers beside the first one, with the same topics and stores of their own: for producers alone.
    more_brokers: int = 0
    balance_s: float = 0.2  #: time between two balances; 0: a member finds its partitions in its first heartbeat
    event_limit_s: float = 60.0  #: after which an event without a result is forgotten, and ten balances at least
    member_limit_s: float = 30.0  #: without a heartbeat, at the master
    producer_limit_s: float = 45.0
    lock_limit_s: float = 35.0  #: without any call, at the broker
    #: A pack ends with the message that reaches it; each counts with its record of 52 bytes.  The real one reads so
    #: much from its memory, and 320 KiB from its files.
    pack_bytes: int = 524_288
    scan_entries: int = 10_000  #: index entries that one request looks through
    empty_wait_ms: int = 0  #: ``minLimitTime`` of a 404
    max_body_bytes: int | None = None  #: told to producers, who know 1 MiB otherwise; 10 KiB more are taken
    groups: Collection[str] | None = None  #: which may register (450); None: all
    require_auth: bool = False  #: 415 for who tells no user; passwords are not looked at, as by the real ones
    cluster_rules: str = ""  #: flow rules, a text of JSON; they are sent, not obeyed
    group_rules: str = ""  #: the same, of every group
    seed: int = 0  #: of the divisions of partitions that are left to chance
