"""Socket options so that small writes between Spark's JVM and this worker process do not wait for acknowledgements.

By Nagle's algorithm (RFC 896) a second small write waits for the acknowledgement of the first, and the kernel keeps
that back for 40 ms while the receiver has nothing to send (RFC 1122, 4.2.3.2).  The JVM writes the head of an Arrow
stream and then its batches, the worker its result and then its counters: each costs a task with few rows 40 ms.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Final

from dataproxy.spark.writing.inputs import worker_input

__all__ = ["no_delay"]

_QUICKACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)  # Linux alone has it


def no_delay() -> None:
    """Set TCP_QUICKACK and TCP_NODELAY on this worker's connection to the JVM.

    TCP_QUICKACK holds only until the process answers, so call this for each task.  Does nothing outside of PySpark's
    worker, where the connection is not TCP, and on systems other than Linux.  Thread rule: the worker's one task
    thread.
    """
    source = worker_input()
    if _QUICKACK is None or source is None:
        return
    with suppress(OSError):  # a file, or no TCP
        _set(os.dup(source.fileno()), _QUICKACK)


def _set(descriptor: int, quickack: int) -> None:
    """Set both options on a connection, whose copy of the descriptor is closed."""
    try:
        connection = socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        return
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, quickack, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
