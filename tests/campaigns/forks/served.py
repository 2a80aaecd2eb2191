"""What children inherit or import: a producer at the top of a module, as servers with --preload have it."""

from __future__ import annotations

import signal

import dataproxy

__all__ = ["HANG_SECONDS", "PRODUCER", "STREAM", "work"]

HANG_SECONDS = 60
PRODUCER = dataproxy.Producer(group_id="g", linger=0.005, executors=2)
STREAM = PRODUCER.stream("s")


def work(name: str, messages: int, leave: int) -> None:
    """Send numbered messages in a child, and come to an end in one of three ways."""
    signal.alarm(HANG_SECONDS)
    for i in range(messages):
        if i % 3:
            STREAM.send_nowait(f"{name}-{i}".encode())
        else:
            PRODUCER.send_batch("s", [f"{name}-{i}".encode()])
    if leave == 0:
        report = PRODUCER.close()
        assert report.ok, report
        assert report.accepted == messages, report
    elif leave == 1:
        assert PRODUCER.flush().ok
    # else nothing: the end of the process delivers
