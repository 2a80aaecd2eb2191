"""Whether the rows of a task have come to their end, or were cut off.

When what feeds a task fails (an operator in the JVM, another Python worker, a fetch), Spark shuts down its side of the
connection to this worker, which Arrow and pickle alike take for the end of the rows.  Spark fails the task then, and
its rows are sent again.  Nothing is wrong with those that were sent, unless what is sent of one row hangs on those
behind it, as the digest of a block does: the last block of a cut partition would be another one than in the next
attempt.
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

__all__ = ["to_the_end"]

_PEEK: Final = socket.MSG_PEEK | getattr(socket, "MSG_DONTWAIT", 0)
_WORKERS: Final = ("pyspark.worker", "__main__")


def to_the_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hand on all batches.  Raises TransportError behind the last one where Spark has cut the rows off.

    Where it cannot be told, as in a worker that is not PySpark's, what looks like the end is taken for it.
    Thread rule: the worker's one task thread.
    """
    yield from batches
    source = _worker_input()
    if source is not None and is_cut_off(source):
        raise TransportError(
            "Spark ended the input of this task early, because the task's input failed",
            hint="see the error of the task before this one",
        )


def _worker_input() -> Any:
    """Return the file from which PySpark's worker reads what Spark sends to it; None where there is none.

    Spark hands it to nobody, so it is looked for among the variables of the worker's main function.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and frame.f_globals.get("__name__") in _WORKERS:
            return frame.f_locals.get("infile")
        frame = frame.f_back
    return None


def is_cut_off(source: Any) -> bool:
    """Tell whether a connection's other side has ended it, and all that it sent has been read.

    Behind rows that have come to their end Spark says so, and keeps the connection for the next task.
    """
    if _PEEK == socket.MSG_PEEK:  # no way to look without waiting
        return False
    with suppress(OSError):  # nothing there yet
        descriptor = os.dup(source.fileno())
        try:
            connection = socket.socket(fileno=descriptor)
        except OSError:  # no connection
            os.close(descriptor)
            return False
        with connection:
            ended = connection.recv(1, _PEEK) == b""
        return ended and not source.peek(1)
    return False
