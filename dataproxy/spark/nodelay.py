"""Socket options so that small writes between Spark's JVM and this worker process do not wait for acknowledgements.

By Nagle's algorithm (RFC 896) a second small write waits for the acknowledgement of the first, and the kernel keeps
that back for 40 ms while the receiver has nothing to send (RFC 1122, 4.2.3.2).  The JVM writes the head of an Arrow
stream and then its batches, the worker its result and then its counters: each costs a task with few rows 40 ms.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from typing import Final

__all__ = ["no_delay"]

_QUICKACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)  # Linux alone has it
_DESCRIPTORS: Final = "/proc/self/fd"
_WITHIN: Final = ("127.0.0.1", "::1", "::ffff:127.0.0.1")


def no_delay() -> None:
    """Set TCP_QUICKACK and TCP_NODELAY on all connections of this process to this machine.

    The connection to the JVM is one of them; Spark does not say which, and the options do no harm to the others.
    TCP_QUICKACK holds only until the process answers, so call this for each task.  Does nothing on systems other than
    Linux.  Thread rule: any thread.
    """
    if _QUICKACK is None:
        return
    with suppress(FileNotFoundError):
        for name in os.listdir(_DESCRIPTORS):  # noqa: PTH208 - each task calls this
            with suppress(OSError):  # closed in the meantime, not connected, or not TCP
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    _set(int(name), _QUICKACK)


def _set(descriptor: int, quickack: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        peer = connection.getpeername()  # a text for Unix sockets
        if isinstance(peer, tuple) and peer[0] in _WITHIN:
            connection.setsockopt(socket.IPPROTO_TCP, quickack, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
