"""The program that ends: sends numbered messages and leaves in one of six ways.

``python program.py TARGET STREAM ENDING MESSAGES CLOSE_TIMEOUT`` prints its accounting and the moment it began to end.
"""

import atexit
import json
import os
import signal
import sys
import threading
import time

__all__: list[str] = []

target, stream, ending = sys.argv[1:4]
messages, close_timeout = int(sys.argv[4]), float(sys.argv[5])
ended_at = 0.0


def tell() -> None:
    """Print the accounting; the only thing that goes to stdout beside 'ready'."""
    report = producer.report()
    counts = {
        name: getattr(report, name) for name in ("accepted", "delivered", "failed", "expired", "dropped", "pending")
    }
    print(json.dumps({**counts, "ended_at": ended_at, "closed_at": time.monotonic()}), flush=True)


def end() -> None:
    """Note the moment."""
    global ended_at
    ended_at = time.monotonic()


def leave(*_: object) -> None:
    """Handle SIGTERM as servers do."""
    end()
    sys.exit(0)


def work() -> None:
    """Send everything."""
    for i in range(messages):
        handle.send_nowait(b"%d" % i)


atexit.register(tell)  # before the import, so that it runs after the package has closed

import dataproxy  # noqa: E402

producer = dataproxy.Producer(target, group_id="g", close_timeout=close_timeout)
handle = producer.stream(stream)

if ending == "daemon":
    sent = threading.Event()

    def serve() -> None:
        """Send, and wait for a result while the interpreter ends."""
        work()
        sent.set()
        producer.flush()

    threading.Thread(target=serve, daemon=True).start()
    sent.wait()
elif ending == "sigterm":
    signal.signal(signal.SIGTERM, leave)
    work()
    print("ready", flush=True)
    while True:  # a signal that comes just before the system call does not end that sleep
        time.sleep(0.05)
else:
    work()
end()
if ending == "sys.exit":
    sys.exit(0)
elif ending == "exception":
    raise RuntimeError("the application's own error")
elif ending == "_exit":
    producer.close()
    tell()
    os._exit(0)
