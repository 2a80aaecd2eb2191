"""Where partitions begin and end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from dataproxy.consumer.ranges.registering import FOUND, reader_name
from dataproxy.errors import DataProxyError

if TYPE_CHECKING:
    from dataproxy.consumer.ranges.places import Place
    from dataproxy.consumer.ranges.registering import Client

__all__ = ["Bounds", "find_bounds"]


class Bounds(NamedTuple):
    """The offset of the oldest message of a partition's store, and the one that the next message will have."""

    first: int
    end: int


def find_bounds(client: Client, group: str, places: Iterable[Place]) -> dict[str, Bounds]:
    """Return the bounds of partitions by their keys; all brokers are asked at once.

    Each partition is registered for a moment, under a name beside ``group``.  Raises TransportError, DataProxyError.
    """
    name = reader_name(group, 0)
    numbers = [(place, client.post_register(place, name, 0)) for place in places]
    found: dict[str, Bounds] = {}
    left = []
    failure: DataProxyError | None = None
    for place, number in numbers:
        try:
            got = client.registered(number, name)
            if got.code != FOUND:  # somebody reads under this name
                got = client.take(place, 0)
        except DataProxyError as error:
            failure = failure or error
            continue
        found[place.key] = Bounds(got.offset, got.end)
        left.append(client.post_unregister(place, got.group))
    for number in left:
        try:
            client.calls.wait(number)
        except DataProxyError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return found
