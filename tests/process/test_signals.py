"""Signals: Ctrl-C ends every wait, handlers may close, and no disposition or mask is changed by this package."""

import signal
import time

import pytest

from tests.process.programs import finish, ready, start
from tests.support.scripted import Scripted, ack, silent

WAIT = """
    import sys, time, dataproxy
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0.001, buffer_bytes=2048)
    d = p.send("s", b"x" * 1500)
    b = p.send_batch("s", [b"y"])
    h = p.stream("s")
    try:
        print("ready", flush=True)
        {call}
    except KeyboardInterrupt:
        said = time.monotonic()
    report = p.close(0)
    assert report.balanced and report.pending == 0 and report.accepted >= 2, report
    assert report.failed == report.accepted and report.errors == {{"CLOSED": report.accepted}}, report
    print(said)
"""
CALLS = {
    "flush": "p.flush()",
    "result": "d.result()",
    "exception": "d.exception()",
    "batch": "b.result()",
    "send": "p.send('s', b'z' * 1500)",
    "stream": "h.send_nowait(b'z' * 1500)",
    "send_batch": "p.send_batch('s', [b'z' * 500] * 9)",
    "send_arrow": "import pyarrow; p.send_arrow('s', pyarrow.record_batch({'v': [b'z' * 500] * 9}))",
    "close": "p.close()",
    "with": "p.__exit__(None, None, None)",
}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_every_wait(call: str) -> None:
    with Scripted(silent) as server:
        process = start(WAIT.format(call=CALLS[call]), server.target)
        assert ready(process) == "ready\n"
        server.wait_frames(1)
        before = time.monotonic()
        process.send_signal(signal.SIGINT)
        status, said, err = finish(process)
        assert (status, err) == (0, "")
        assert float(said) - before < 5.0  # 0.2 s is what is promised; this bound tells a hang


def test_ctrl_c_in_close_says_what_was_lost() -> None:
    with Scripted(silent) as server:
        process = start(
            """
            import sys, dataproxy
            got = []
            p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0.001, on_delivery=got.append)
            d = p.send("s", b"x")
            try:
                with p:
                    print("ready", flush=True)
            except KeyboardInterrupt:
                report = p.report()
            assert (report.accepted, report.failed, report.pending) == (1, 1, 0), report
            assert p.close() == p.close(60) == report and p.closed
            assert d.exception(0).code == "CLOSED" and d.exception(0).details["maybe_delivered"]
            assert [r.error.code for r in got] == ["CLOSED"]
            """,
            server.target,
        )
        ready(process)
        server.wait_frames(1)
        process.send_signal(signal.SIGINT)
        assert finish(process) == (0, "", "")


def test_ctrl_c_at_exit_ends_the_waiting() -> None:
    with Scripted(silent) as server:
        process = start(
            """
            import atexit, logging, sys, threading
            import dataproxy
            atexit.unregister(logging.shutdown)
            said = []
            class Keep(logging.Handler):
                emit = lambda self, record: said.append(record.getMessage())
            logging.getLogger("dataproxy").addHandler(Keep(logging.ERROR))
            ps = [dataproxy.Producer(sys.argv[1], group_id="g", linger=0, close_timeout=50) for _ in range(3)]
            for p in ps:
                p.send_nowait("s", b"x")
            def last():
                assert len(said) == 3 and all("1 of its 1 messages were not delivered" in text for text in said), said
            import dataproxy.producer.lifecycle as life
            atexit.unregister(life._close_all)
            atexit.register(last)
            atexit.register(life._close_all)
            def watch():
                while not ps[0].closed:
                    threading.Event().wait(0.001)
                print("ready", flush=True)
            threading.Thread(target=watch, daemon=True).start()
            """,
            server.target,
        )
        ready(process)
        server.wait_frames(3)
        process.send_signal(signal.SIGINT)
        status, out, err = finish(process)
        assert (status, out) == (0, "")
        assert err.startswith(
            "dataproxy: the process ended with 3 producers open, and 3 of 3 messages were not deliver"
        )
        assert err.count("\n") == 1


def test_sigterm_at_exit_takes_nobodys_time() -> None:
    """A handler that calls sys.exit interrupts the waits of exit; each producer delivers and is closed all the same."""
    with Scripted(silent) as server:
        process = start(
            """
            import atexit, signal, sys, threading
            import dataproxy
            import dataproxy.producer.lifecycle as life
            ps = [dataproxy.Producer(sys.argv[1], group_id="g", linger=0, close_timeout=50) for _ in range(3)]
            for p in ps:
                p.send_nowait("s", b"x")
            def last():
                assert all(p.closed and p.report().delivered == 1 for p in ps), [p.report() for p in ps]
                assert not [t for t in threading.enumerate() if t.name.startswith("dataproxy")]
            def leave(*_):
                print("told", flush=True)
                sys.exit(7)
            atexit.unregister(life._close_all)
            atexit.register(last)
            atexit.register(life._close_all)
            signal.signal(signal.SIGTERM, leave)
            def watch():
                while not ps[0].closed:
                    threading.Event().wait(0.001)
                print("ready", flush=True)
            threading.Thread(target=watch, daemon=True).start()
            """,
            server.target,
        )
        ready(process)
        server.wait_frames(3)
        for _ in range(4):
            process.send_signal(signal.SIGTERM)
            assert ready(process) == "told\n"
        server.react = lambda peer, frame: peer.send(ack(frame))
        for number, frame in list(server.frames):
            server.peers[number].send(ack(frame))
        assert finish(process) == (0, "", "")


@pytest.mark.parametrize("inside", ["p.close()", "p.flush()", "d.result()", "while True: time.sleep(0.05)"])
def test_a_handler_that_closes(inside: str) -> None:
    """The handler runs in the middle of a wait of the same thread, even of ``close`` itself."""
    with Scripted(silent) as server:
        process = start(
            f"""
            import signal, sys, time, dataproxy
            p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0.001)
            d = p.send("s", b"x")
            def leave(*_):
                assert p.close(0.05).failed == 1
                sys.exit(7)
            signal.signal(signal.SIGTERM, leave)
            print("ready", flush=True)
            {inside}
            """,
            server.target,
        )
        ready(process)
        server.wait_frames(1)
        process.send_signal(signal.SIGTERM)
        assert finish(process) == (7, "", "")


STATE = """
    import ctypes, signal, sys, threading
    libc = ctypes.CDLL(None)
    def state():
        old = ctypes.create_string_buffer(256)
        actions = []
        for number in range(1, 65):
            if libc.sigaction(number, None, old) == 0:
                # handler, mask (the kernel's 64 bits of 1024), flags, restorer
                actions.append((number, old.raw[:16], old.raw[136:140], old.raw[144:152]))
        lines = open("/proc/self/status").read().splitlines()
        return actions, [line for line in lines if line.startswith("Sig") and "SigQ" not in line or "Shd" in line]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    signal.signal(signal.SIGUSR1, lambda *_: None)
    threading.Thread(target=int).start()            # the C library takes a signal for itself with the first thread
    before = state()
    import dataproxy
    from dataproxy.hub import Hub
    assert state() == before
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0, executors=2)
    assert state() == before
    p.send("s", b"x").result(30)
    p.flush()
    assert state() == before
    blocked = {}
    import os, pathlib
    for task in pathlib.Path("/proc/self/task").iterdir():
        if int(task.name) != os.getpid():
            mask = [line for line in (task / "status").read_text().splitlines() if line.startswith("SigBlk")]
            blocked[task.name] = int(mask[0].split()[1], 16)
    everything = ~(1 << 8 | 1 << 18 | 1 << 31 | 1 << 32) & (1 << 64) - 1   # but KILL, STOP and the C library's own
    deaf = [task for task, mask in blocked.items() if mask & everything == everything]
    assert len(blocked) == 3 and len(deaf) == 2, blocked      # two executors; the dispatcher hears, for the user
    assert p.close().ok
    assert state() == before
"""


def test_dispositions_and_masks_are_left_alone() -> None:
    with Scripted() as server:
        assert finish(start(STATE, server.target)) == (0, "", "")
