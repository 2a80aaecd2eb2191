"""Interrupts, forks and interpreter exit, each in a process of its own."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.io.scripted import Scripted, only_accept, silent

SECONDS = 60


def start(code: str, *args: str) -> subprocess.Popen[str]:
    """Start Python on some code; a line on its stdout says that it is ready."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *args],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end and return status, stdout, stderr."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"the process did not end: {out!r} {err!r}")
    return process.returncode, out, err


WAIT = """
    import sys, time, dataproxy
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0.001, buffer_bytes=2048)
    d = p.send("s", b"x" * 1500)
    b = p.send_batch("s", [b"y"])
    try:
        print("ready", flush=True)
        {call}
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
    p.close(0)
"""
CALLS = {
    "flush": "p.flush()",
    "result": "d.result()",
    "batch": "b.result()",
    "send": "p.send('s', b'z' * 1500)",
    "send_batch": "p.send_batch('s', [b'z' * 500] * 9)",
    "close": "p.close()",
}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_every_wait(call: str) -> None:
    with Scripted(silent) as server:
        process = start(WAIT.format(call=CALLS[call]), server.target)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        server.wait_frames(1)
        before = time.monotonic()
        process.send_signal(signal.SIGINT)
        said = process.stdout.readline()
        status, _, err = finish(process)
        assert (status, err) == (0, "")
        assert float(said) - before < 5.0  # 0.2 s is what is promised; this bound tells a hang


def test_exit_without_close_delivers() -> None:
    with Scripted() as server:
        process = start(
            """
            import sys, dataproxy
            p = dataproxy.Producer(sys.argv[1], group_id="g", linger=60)
            for i in range(1000):
                p.send_nowait("s", b"%d" % i)
            """,
            server.target,
        )
        assert finish(process) == (0, "", "")
        assert server.bodies() == [b"%d" % i for i in range(1000)]


def test_exit_without_close_ends_in_time_when_nobody_answers() -> None:
    with only_accept() as target:
        process = start(
            """
            import sys, dataproxy
            p = dataproxy.Producer(sys.argv[1], group_id="g", close_timeout=0.2)
            p.send_nowait("s", b"x")
            """,
            target,
        )
        assert finish(process) == (0, "", "")


def test_exit_with_an_exception_in_a_block() -> None:
    with Scripted() as server:
        process = start(
            """
            import sys, dataproxy
            with dataproxy.Producer(sys.argv[1], group_id="g") as p:
                p.send_nowait("s", b"x")
                raise SystemExit(3)
            """,
            server.target,
        )
        assert finish(process) == (3, "", "")
        assert server.bodies() == [b"x"]


FORK = """
    import os, sys, warnings, dataproxy
    warnings.simplefilter("ignore")
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0.001)
    h = p.stream("s")
    d = p.send("s", b"parent before")
    d.result(30)
    child = os.fork()
    if child == 0:
        wrong = []
        for call in (lambda: p.send("s", b"x"), lambda: p.send_nowait("s", b"x"), lambda: h.send_batch([b"x"]),
                     lambda: h.send(b"x"), p.flush, p.stats, lambda: p.stream("t")):
            try:
                call()
                wrong.append("accepted")
            except dataproxy.ForkedError:
                pass
            except BaseException as error:
                wrong.append(repr(error))
        p.close()
        with dataproxy.Producer(sys.argv[1], group_id="g") as own:
            own.send_nowait("s", b"child")
        if wrong:
            print("child:", wrong, flush=True)
        {exit}
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    p.send("s", b"parent after").result(30)
    assert p.close().ok
"""


@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(0)"])
def test_a_fork_is_refused_in_the_child_and_harmless_to_the_parent(leave: str) -> None:
    with Scripted() as server:
        assert finish(start(FORK.format(exit=leave), server.target)) == (0, "", "")
        assert sorted(server.bodies()) == [b"child", b"parent after", b"parent before"]


def test_a_fork_in_the_middle_of_sending_harms_nobody() -> None:
    with Scripted() as server:
        process = start(
            """
            import os, sys, threading, warnings, dataproxy
            warnings.simplefilter("ignore")
            p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0.001)
            stop = threading.Event()
            def work():
                while not stop.is_set():
                    p.send_nowait("s", b"x")
            thread = threading.Thread(target=work)
            thread.start()
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    try:
                        p.send("s", b"x")
                    except dataproxy.ForkedError:
                        os._exit(0)
                    os._exit(1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            stop.set()
            thread.join()
            report = p.close()
            assert report.ok and report.balanced, report
            """,
            server.target,
        )
        assert finish(process) == (0, "", "")


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
