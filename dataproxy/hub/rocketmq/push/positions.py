"""Where groups are, by node, group and topic: what a front node keeps for its back nodes.

Here the back node is the hub itself, so that the rows are those of the store, which all protocols of the hub share.
Keys are tuples: names may have any characters.
"""

from __future__ import annotations

from typing import Final

from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.topics.remoting import Remoting
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.codes import Answer

__all__ = ["Positions"]

_GROUP_MOST: Final = 255  # bytes of a name


class Positions:
    """Offsets of groups.  One thread; other protocols set them at the same time, each under its own mutex.

    ``node``: the name of the only broker there is.
    """

    def __init__(self, remoting: Remoting, node: str) -> None:
        self._remoting, self.node = remoting, node

    def create(self, node: str, group: str, topic: str, queue: int, offset: int) -> int:
        """Let a group begin at an offset, unless it has one, and return the one it has.  Raises RefusedError."""
        self._check(node, group)
        found = self._remoting.create(group, topic, queue, offset)
        if found < 0:
            raise _full(group)
        return found

    def commit(self, node: str, group: str, topic: str, queue: int, offset: int) -> None:
        """Set the offset of a group.  Raises RefusedError."""
        self._check(node, group)
        if not self._remoting.commit(group, topic, queue, offset):
            raise _full(group)

    def committed(self, node: str, group: str, topic: str, queue: int) -> int | None:
        """Return the offset of a group, None if it has none.  Raises RefusedError for a node that is not there."""
        self._check(node, group)
        found = self._remoting.committed(group, topic, queue)
        return None if found < 0 else found

    def table(self, node: str, group: str, topic: str) -> dict[int, int]:
        """Return the offsets of a group in a topic, by queue.  Raises RefusedError for a node that is not there."""
        self._check(node, group)
        return {queue: offset for *of, queue, offset in self._remoting.offsets() if of == [group, topic]}

    def _check(self, node: str, group: str) -> None:
        if node != self.node:
            raise RefusedError(Answer.SYSTEM_ERROR, f"there is no node {shown(node)}; the node here is {self.node}")
        if len(group.encode()) > _GROUP_MOST:
            text = f"the group {shown(group)} has {len(group.encode())} bytes; at most {_GROUP_MOST} are possible"
            raise RefusedError(Answer.SYSTEM_ERROR, text)


def _full(group: str) -> RefusedError:
    return RefusedError(Answer.SYSTEM_ERROR, f"there is no room for offsets of the group {shown(group)}")
