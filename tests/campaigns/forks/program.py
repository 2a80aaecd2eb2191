"""The processes of one round: a parent that sends without a pause, and the children it makes meanwhile.

``python -m tests.campaigns.forks.program KIND PREFIX CHILDREN MESSAGES`` prints the counts of the parent.  KIND is
``fork``, ``forkserver``, ``spawn`` or ``prefork`` (a server that opens its producer, forks its
workers and ends them by SIGTERM).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings

from tests.campaigns.forks.served import HANG_SECONDS, PRODUCER, STREAM, work

__all__: list[str] = []

warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of forks with threads


def _fork(name: str, messages: int, leave: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            work(name, messages, leave)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        sys.exit(0)
    return child


def _serve(name: str, messages: int) -> int:
    """Fork one worker of a server: it sends, then waits for the SIGTERM that ends it."""
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        work(name, messages, 2)
        os.write(told, b".")
        while True:
            time.sleep(HANG_SECONDS)
    os.close(told)
    if os.read(ready, 1) == b".":
        os.kill(child, signal.SIGTERM)
    os.close(ready)
    return child


def _children(kind: str, prefix: str, children: int, messages: int) -> int:
    """Make the children and return how many of them failed."""
    names = [f"{prefix}-c{n}" for n in range(children)]
    if kind == "fork":
        pids = [_fork(name, messages, n % 3) for n, name in enumerate(names)]
        return sum(os.waitpid(pid, 0)[1] != 0 for pid in pids)
    if kind == "prefork":
        return sum(os.waitpid(_serve(name, messages), 0)[1] != 0 for name in names)
    context = multiprocessing.get_context(kind)
    if kind == "forkserver":
        context.set_forkserver_preload(["tests.campaigns.forks.served"])
    processes = [context.Process(target=work, args=(name, messages, n % 3)) for n, name in enumerate(names)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(2 * HANG_SECONDS)
    return sum(process.exitcode != 0 for process in processes)


def main(kind: str, prefix: str, children: int, messages: int) -> None:
    """Run the parent's side."""
    stop = threading.Event()
    sent = [0, 0]

    def send(thread: int) -> None:
        while not stop.is_set():
            STREAM.send_nowait(f"{prefix}-p{thread}-{sent[thread]}".encode())
            sent[thread] += 1
            if sent[thread] % 100 == 0:
                time.sleep(0.01)  # the machine has other work too

    threads = [threading.Thread(target=send, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    try:
        failed = _children(kind, prefix, children, messages)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    report = PRODUCER.close()
    print(json.dumps({"sent": sent, "accepted": report.accepted, "delivered": report.delivered, "failed": failed}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
