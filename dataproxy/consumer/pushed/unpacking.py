"""Bodies that were packed: they are unpacked portion by portion, so that nobody waits long for one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from dataproxy._core.remoting.messages import unpack_more, unpacker_of
from dataproxy.errors import DataProxyError

if TYPE_CHECKING:
    from dataproxy._core.remoting.messages import ReceivedMessage
    from dataproxy.rocketmq.group.backlog import Chunk

__all__ = ["PACK_MOST", "PORTION", "Unpacking"]

PORTION: Final = 1 << 20  #: bytes that are unpacked in one go
PACK_MOST: Final = 16 << 20  #: bytes of unpacked bodies of a pack; the message with which it gets there is its last one


class Unpacking:
    """Unpack the bodies of messages that wait, until there are enough for a pack.

    Any thread.  Locks: ``lock``, which is held while a portion is unpacked, and no other one with it.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.lock = threading.Lock()
        self.done = False  #: a pack can be made of the messages that have a body here
        self.bodies: list[
            bytes | DataProxyError | None
        ] = []  #: errors of those that have none, None: it was not packed
        self.bytes = 0  #: unpacked until now
        self._body: _Body | None = None  # that is being unpacked
        self._whole = True  # nothing was interrupted

    def go_on(self) -> bool:
        """Unpack a portion, and return whether there is enough for a pack."""
        with self.lock:
            return self.done or self._unpack()  # done is for good: who gives the pack out looks at it without the lock

    def _unpack(self) -> bool:
        if not self._whole:  # an exception of a signal handler has left it in the middle
            self.bodies, self.bytes, self._body = [], 0, None
        self._whole = False
        left = PORTION
        while not self.done and left > 0:
            left -= self._one(left)
        self._whole = True
        return self.done

    def _one(self, most: int) -> int:
        """Unpack a body, or so many bytes of it; return how many."""
        if self._body is None:
            self._body = _Body(self.chunk.messages[len(self.bodies)])
        body, before = self._body, self._body.size
        try:
            complete = body.go_on(most)
        except DataProxyError as error:
            self.bytes -= before
            self._take(error)
            return most  # it may have been much
        self.bytes += body.size - before
        if complete:
            self._take(body.found)
        return body.size - before

    def _take(self, body: bytes | DataProxyError | None) -> None:
        self.bodies.append(body)
        self._body = None
        self.done = len(self.bodies) == len(self.chunk.messages) or self.bytes >= PACK_MOST


class _Body:
    """The body of one message."""

    def __init__(self, message: ReceivedMessage) -> None:
        self.size = 0
        self.found: bytes | None = None
        self._message = message
        self._parts: list[bytes] = []
        self._tool: Any = None
        self._packed = b""

    def go_on(self, most: int) -> bool:
        """Unpack so many bytes; return whether it is complete.  Raises RemoteProtocolError."""
        if self._tool is None:
            self._tool = unpacker_of(self._message)
            if self._tool is None:
                return True
            self._packed = self._message.packed_body
        part = unpack_more(self._tool, self._packed, self.size, most)
        self._parts.append(part)
        self.size += len(part)
        self._packed = self._tool.unconsumed_tail
        if self._tool.eof:
            self.found = b"".join(self._parts)
        return self.found is not None
