"""Ends of processes and of the interpreter: drained in time, silent, and without new threads."""

import signal
from pathlib import Path

import pytest

from tests.process.programs import finish, ready, start
from tests.support.scripted import Scripted, only_accept, silent

BEGIN = """
    import atexit, os, signal, sys, threading, time
    def last():
        report = p.report()
        assert report.balanced and report.accepted == report.delivered == 1000, report
        assert not [t for t in threading.enumerate() if t.name.startswith("dataproxy")]
    atexit.register(last)               # before the import: so it runs after the package's own
    import dataproxy
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=60)
    def work():
        for i in range(1000):
            p.send_nowait("s", b"%d" % i)
"""
ENDINGS = {
    "return": ("work()", 0),
    "sys.exit": ("work(); sys.exit(3)", 3),
    "exception": ("sys.excepthook = lambda *_: None; work(); raise ValueError('the application')", 1),
    "thread": ("t = threading.Thread(target=work); t.start()", 0),
    "daemon": ("t = threading.Thread(target=work, daemon=True); t.start(); t.join()", 0),
    "with": ("with p: work()", 0),
    "exit in with": ("\n    with p:\n        work()\n        sys.exit(3)", 3),
    "_exit after flush": ("work(); assert p.flush().ok; os._exit(4)", 4),
    "_exit after close": ("work(); assert p.close().ok; os._exit(4)", 4),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending_delivers(ending: str) -> None:
    code, status = ENDINGS[ending]
    with Scripted() as server:
        assert finish(start(BEGIN + f"    {code}\n", server.target)) == (status, "", "")
        assert server.bodies() == [b"%d" % i for i in range(1000)]


def test_sigterm_with_a_handler_delivers() -> None:
    with Scripted() as server:
        process = start(
            BEGIN
            + """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
    work()
    print("ready", flush=True)
    while True:     # a signal that comes just before the system call does not end that sleep
        time.sleep(0.05)
            """,
            server.target,
        )
        ready(process)
        process.send_signal(signal.SIGTERM)
        assert finish(process) == (5, "", "")
        assert len(server.bodies()) == 1000


def test_a_daemon_thread_that_goes_on_sending_is_not_heard_of() -> None:
    with Scripted() as server:
        process = start(
            """
            import sys, threading, dataproxy
            p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0.001, buffer_bytes=4096)
            begun = threading.Event()
            def work():
                while True:
                    p.send_nowait("s", b"x")
                    p.send_batch("s", [b"y"] * 100)
                    begun.set()
            for _ in range(3):
                threading.Thread(target=work, daemon=True).start()
            begun.wait()
            """,
            server.target,
        )
        assert finish(process) == (0, "", "")
        assert server.bodies()


def test_a_daemon_thread_can_be_joined_by_the_last_handlers() -> None:
    """A handler from before the import runs when the producers are closed; the thread it waits for is told so."""
    with Scripted() as server:
        process = start(
            """
            import atexit, sys, threading
            told = []
            def last():
                thread.join()
                assert told == ["closed"], told
            atexit.register(last)
            import dataproxy
            p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0.001)
            begun = threading.Event()
            def work():
                try:
                    while True:
                        p.send_nowait("s", b"x")
                        begun.set()
                except dataproxy.ClosedError:
                    told.append("closed")
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            begun.wait()
            """,
            server.target,
        )
        assert finish(process) == (0, "", "")
        assert server.bodies()


def test_callbacks_that_send_at_exit_hold_up_nobody() -> None:
    """They run on a thread of the producer's own, which has more results to tell."""
    with Scripted() as server:
        process = start(
            """
            import atexit, sys
            told = []
            def last():
                assert told == ["closed"] * 3, told
            atexit.register(last)
            import dataproxy
            def again(result):
                try:
                    p.send_nowait("s", b"again")
                except dataproxy.ClosedError:
                    told.append("closed")
            p = dataproxy.Producer(sys.argv[1], group_id="g", linger=50, on_delivery=again, close_timeout=50)
            for _ in range(3):
                p.send_nowait("s", b"x")
            """,
            server.target,
        )
        assert finish(process) == (0, "", "")
        assert server.bodies() == [b"x"] * 3


def test_threads_are_told_once_the_user_has_closed() -> None:
    with Scripted() as server:
        process = start(
            """
            import sys, threading, dataproxy
            p = dataproxy.Producer(sys.argv[1], group_id="g")
            p.close()
            told = []
            def work():
                try:
                    p.send_nowait("s", b"x")
                except dataproxy.ClosedError:
                    told.append(True)
            for daemon in (True, False):
                thread = threading.Thread(target=work, daemon=daemon)
                thread.start()
                thread.join()
            assert told == [True, True]
            """,
            server.target,
        )
        assert finish(process) == (0, "", "")


def test_several_producers_share_the_time_at_exit() -> None:
    with only_accept() as target:
        process = start(
            """
            import atexit, sys, time
            def last():
                took = time.monotonic() - began
                assert all(p.report().failed == 1 for p in ps)
                print(took)
            atexit.register(last)
            import dataproxy
            ps = [dataproxy.Producer(sys.argv[1], group_id="g", close_timeout=1.0) for _ in range(20)]
            for p in ps:
                p.send_nowait("s", b"x")
            began = time.monotonic()
            """,
            target,
        )
        status, took, err = finish(process)
        assert status == 0
        assert err.startswith("dataproxy: the process ended with 20 producers open, and 20 of 20 messages were not")
        assert err.count("\n") == 1
        assert float(took) < 15.0  # one after the other it would be 20


LOST = "dataproxy: the process ended with a producer open, and 2 of 2 messages were not delivered (2 CLOSED);"


@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize("warns", [False, True])
def test_what_was_left_behind_is_logged_once_and_said_in_a_line_on_stderr(logs: bool, warns: bool) -> None:
    with Scripted(silent) as server:
        process = start(
            """
            import logging, sys, dataproxy
            warns, logs = [word == "True" for word in sys.argv[2:]]
            p = dataproxy.Producer(sys.argv[1], group_id="g", close_timeout=0.1, linger=0, warn_at_exit=warns)
            if logs:
                logging.basicConfig(stream=sys.stdout, level=logging.ERROR, format="%(name)s %(message)s")
            p.send_batch("s", [b"x", b"y"])
            """,
            server.target,
            str(warns),
            str(logs),
        )
        status, out, err = finish(process)
    assert status == 0
    assert (err.startswith(LOST), err.count("\n")) == (warns, int(warns)), err
    assert out.count("\n") == int(logs)
    if logs:
        assert out.startswith("dataproxy a producer was still open when the process ended, and 2 of its 2 messages")


@pytest.mark.parametrize("stream", ["sys.stderr = None", "sys.stderr.close()", "sys.stderr = open('/dev/full', 'w')"])
def test_a_stderr_that_cannot_be_written_changes_nothing(stream: str) -> None:
    with Scripted(silent) as server:
        process = start(
            f"""
            import sys, dataproxy
            p = dataproxy.Producer(sys.argv[1], group_id="g", close_timeout=0.1, linger=0)
            p.send_nowait("s", b"x")
            {stream}
            """,
            server.target,
        )
        status, _, err = finish(process)
    assert (status, err) == (0, "")


def test_an_exit_handler_may_be_the_last_to_send() -> None:
    """It was registered after the import, so it runs before the package closes."""
    with Scripted() as server:
        process = start(
            """
            import atexit, sys, dataproxy
            import multiprocessing.util          # whose exit handler runs earlier
            p = dataproxy.Producer(sys.argv[1], group_id="g")
            atexit.register(p.send_nowait, "s", b"last words")
            """,
            server.target,
        )
        assert finish(process) == (0, "", "")
        assert server.bodies() == [b"last words"]


def test_a_producer_that_was_forgotten_still_delivers() -> None:
    with Scripted() as server:
        process = start(
            """
            import gc, sys, dataproxy
            def work():
                dataproxy.Producer(sys.argv[1], group_id="g").send_nowait("s", b"x")
            work()
            gc.collect()
            """,
            server.target,
        )
        assert finish(process) == (0, "", "")
        assert server.bodies() == [b"x"]


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_a_store_that_is_left_to_the_end_of_the_interpreter_ends_silently(place: str, tmp_path: Path) -> None:
    """It was freed when the names of its module were gone, and said so in a traceback without text."""
    program = """
        import sys
        from dataproxy._core.server.store import core
        class Keeper: pass
        core.keeper = keeper = Keeper()
        keeper.own, keeper.store = keeper, core.StoreCore(sys.argv[1] or None)
    """
    path = str(tmp_path / "store") if place == "disk" else ""
    assert finish(start(program, path)) == (0, "", "")
