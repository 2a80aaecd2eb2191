"""Pages of rows in an order that does not depend on when they are asked for: a page begins behind a row's key."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable
from typing import TypeVar

from dataproxy.hub.clients import Identity
from dataproxy.problems import shown

__all__ = ["Key", "cut", "key_of", "read_key", "write_key"]

T = TypeVar("T")
Key = tuple[str | int, ...]
"""What rows are ordered by; the empty one is before all."""


def key_of(who: Identity) -> Key:
    """Return the key of a client."""
    return who.protocol, who.role, who.group, who.client, who.address


def cut(rows: Iterable[T], key: Callable[[T], Key], start: Key, most: int) -> list[T]:
    """Return the first ``most`` rows behind a key, in their order."""
    return heapq.nsmallest(most, (row for row in rows if key(row) > start), key=key)


def write_key(key: Key) -> str:
    """Return a key as a text for a URL."""
    return json.dumps(key, ensure_ascii=True, separators=(",", ":"))


def read_key(text: str, kinds: tuple[type, ...]) -> Key:
    """Return the key of a text, the empty one for an empty text.  Raises ValueError."""
    if not text:
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or [type(one) for one in found] != list(kinds):
        raise ValueError(f"the parameter start={shown(text)} is not a place: leave it out, or give the value of next")
    return tuple(found)
