"""The check whether the rows of a task have ended, or were cut off.

When the source of a task's rows fails (an operator in the JVM, another Python worker, a fetch), Spark shuts down its
side of the connection to this worker.  Arrow and pickle both take this for the end of the rows.  Spark then fails the
task, and its rows are sent again.  The rows that were sent are correct, unless the id of a row depends on the rows
after it, as with the digest of a block: the last block of a cut partition differs from that of the next attempt.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from dataproxy.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    import pyarrow as pa

__all__ = ["to_the_end", "worker_input"]

_PEEK: Final = socket.MSG_PEEK | getattr(socket, "MSG_DONTWAIT", 0)
_WORKERS: Final = ("pyspark.worker", "__main__")


def to_the_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield all batches.  Raises TransportError after the last one if Spark has cut the rows off.

    If this cannot be found out, as in a worker that is not PySpark's, the end of the input is the end of the rows.
    Thread rule: the worker's one task thread.
    """
    yield from batches
    source = worker_input()
    if source is not None and is_cut_off(source):
        raise TransportError(
            "Spark ended the input of this task early, because the task's input failed",
            hint="see the error of the task before this one",
        )


def worker_input() -> Any:
    """Return the file from which PySpark's worker reads Spark's data; None if it is not found.

    Spark has no API for it, so this function searches the variables of the worker's main function.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and frame.f_globals.get("__name__") in _WORKERS:
            return frame.f_locals.get("infile")
        frame = frame.f_back
    return None


def is_cut_off(source: Any) -> bool:
    """Tell whether the other side has closed the connection, and all its data have been read.

    After rows that have ended normally, Spark sends an end mark and keeps the connection for the next task.
    """
    if _PEEK == socket.MSG_PEEK:  # this system cannot peek without waiting
        return False
    with suppress(OSError):  # no data yet
        descriptor = os.dup(source.fileno())
        try:
            connection = socket.socket(fileno=descriptor)
        except OSError:  # not a connection
            os.close(descriptor)
            return False
        with connection:
            ended = connection.recv(1, _PEEK) == b""
        return ended and not source.peek(1)
    return False
