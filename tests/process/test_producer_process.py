"""What one process must not do to itself, each in a process of its own."""

import os

from tests.process.programs import finish, start
from tests.support.scripted import Scripted


def test_a_kill_of_the_peer_does_not_kill_us() -> None:
    """A write to a connection that was reset raises no SIGPIPE, whatever the process has set."""
    with Scripted() as server:
        server.on_connect = lambda peer: peer.reset() if peer.number < 5 else None
        process = start(
            """
            import signal, sys, dataproxy
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            with dataproxy.Producer(sys.argv[1], group_id="g", reconnect_backoff_max=0.01) as p:
                for i in range(50):
                    p.send("s", b"x" * 10000).result(30)
            """,
            server.target,
        )
        assert finish(process) == (0, "", "")


def test_a_slow_callback_does_not_keep_the_buffers() -> None:
    with Scripted() as server:
        process = start(
            """
            import resource, sys, threading, dataproxy
            go, blocked = threading.Event(), threading.Event()
            def slow(result):
                blocked.set()
                go.wait(60)
            p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0, on_delivery=slow, buffer_bytes="4MiB")
            p.send_nowait("s", b"first")
            blocked.wait(60)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for _ in range(400):
                p.send_nowait("s", b"x" * 250_000)
            p.flush(60)
            print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
            go.set()
            assert p.close().delivered == 401
            """,
            server.target,
        )
        status, grown, err = finish(process)
        assert (status, err) == (0, "")
        assert int(grown) < (64 if not os.environ.get("DATAPROXY_SANITIZER") else 2048)  # 100 MB were sent
