"""Forked children: an inherited producer begins afresh there, and the parent's messages stay the parent's."""

import threading

import pytest

import dataproxy
from dataproxy._core.wire.inlong.message import records
from dataproxy.hub import Hub
from dataproxy.hub.web.settings import ManagerCluster
from tests.native.probe_wire import Server
from tests.process.programs import finish, launch, start
from tests.support.scripted import Peer, Scripted, ack, refusal

QUIET = """
    import os, signal, sys, threading, warnings, dataproxy
    warnings.simplefilter("ignore")     # Python warns of forks with threads
    def reap(child):
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == 0, status
"""


def run(code: str, target: str) -> None:
    """Run a program that says nothing and succeeds."""
    assert finish(start(QUIET + code, target)) == (0, "", "")


@pytest.mark.parametrize("leave", ["p.close(); os._exit(0)", "sys.exit(0)", "p.flush(); os._exit(0)"])
def test_an_inherited_producer_begins_afresh(leave: str) -> None:
    with Scripted() as server:
        run(
            f"""
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=60)
    h = p.stream("s", attrs={{"k": "v"}})
    h.send_nowait(b"parent before")
    child = os.fork()
    if child == 0:
        assert p._inherited and p.report().accepted == 0 and p.stats().connections == ()
        assert p.flush().accepted == 0 and p._inherited
        h.send_nowait(b"child 1")
        assert not p._inherited
        p.send("s", b"child 2")
        h.send_batch([b"child 3"])
        assert p.report().accepted == p.report().pending == 3
        {leave}
    reap(child)
    h.send_nowait(b"parent after")
    report = p.close()
    assert report.accepted == report.delivered == 2, report
            """,
            server.target,
        )
        assert sorted(server.bodies()) == [b"child 1", b"child 2", b"child 3", b"parent after", b"parent before"]
        assert {attrs["k"] for body, attrs in server.messages() if body.startswith(b"parent")} == {"v"}
        assert len({number for number, _ in server.frames}) == 2  # connections


def test_an_inherited_producer_that_is_not_used_costs_nothing() -> None:
    with Scripted() as server:
        run(
            """
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=60)
    p.send_nowait("s", b"x")
    for leave in ("p.close()", "with p: pass", "del p", "pass"):
        child = os.fork()
        if child == 0:
            threads = threading.active_count()
            exec(leave)
            assert threading.active_count() == threads == 1
            if leave == "p.close()":
                assert p.report() == p.close() and p.report().accepted == 0
                try:
                    p.send_nowait("s", b"late")
                    os._exit(3)
                except dataproxy.ClosedError:
                    pass
            sys.exit(0)
        reap(child)
    assert p.close().delivered == 1
            """,
            server.target,
        )
        assert server.bodies() == [b"x"]


def test_descriptors_of_the_parent_are_closed_and_its_connections_live() -> None:
    with Scripted() as server:
        run(
            """
    import ctypes
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0, executors=2, connections=4)
    p.send("s", b"a").result(30)
    count = lambda: len(os.listdir("/proc/self/fd"))
    before = count()
    for fork in (os.fork, ctypes.PyDLL(None).fork):       # the second knows nothing of Python's hooks
        child = fork()
        if child == 0:
            if count() >= before - 6:                     # 2 epoll sets, 2 eventfds, connections
                os._exit(1)
            if fork is os.fork:
                p.send("s", b"child").result(30)
            os._exit(0)
        reap(child)
        assert count() == before
        p.send("s", b"b").result(30)
    assert p.close().delivered == 3
            """,
            server.target,
        )
        assert sorted(server.bodies()) == [b"a", b"b", b"b", b"child"]


def test_results_of_the_parent_are_refused_with_what_to_do() -> None:
    with Scripted() as server:
        run(
            """
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0)
    d, b = p.send("s", b"x"), p.send_batch("s", [b"y", b"z"])
    d.result(30), b.result(30)
    child = os.fork()
    if child == 0:
        p.send("s", b"mine").result(30)         # also once the producer has begun again
        for call in (d.result, d.done, d.exception, lambda: d.add_done_callback(print), b.result, b.done):
            try:
                call()
                os._exit(3)
            except dataproxy.ForkedError as error:
                assert "before the process was forked" in str(error) and "in the process that sent" in error.hint
        repr(d), repr(b), p.close()
        os._exit(0)
    reap(child)
    assert d.result().attempts == 1 and b.result().ok
            """,
            server.target,
        )


def test_what_was_bound_before_the_fork_sends_in_the_child() -> None:
    with Scripted() as server:
        run(
            """
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=60)
    h = p.stream("s")
    bound, closed = h.send_nowait, p.stream("t").send_nowait
    bound(b"parent")
    p.flush(30)
    child = os.fork()
    if child == 0:
        bound(b"child")
        bound(b"again")
        h.send_nowait(b"handle")
        p.send_nowait("s", b"producer")
        assert p.close().delivered == 4
        for refused in (bound, closed, h.send_nowait):
            try:
                refused(b"late")
                os._exit(3)
            except dataproxy.ClosedError:
                pass
        os._exit(0)
    reap(child)
    bound(b"parent again")
    assert p.close().delivered == 2
            """,
            server.target,
        )
        wanted = [b"again", b"child", b"handle", b"parent", b"parent again", b"producer"]
        assert sorted(server.bodies()) == wanted


def test_forks_in_the_middle_of_everything() -> None:
    """Other threads hold locks, allocate, connect and settle while children are made."""
    with Hub() as hub:
        run(
            """
    signal.alarm(45)
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=0, batch_messages=50, executors=2)
    h = p.stream("s")
    stop = threading.Event()
    sent = [0, 0]
    def work(i):
        while not stop.is_set():
            h.send_nowait(b"p%d-%d" % (i, sent[i]))
            sent[i] += 1
    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for n in range(30):
        child = os.fork()
        if child == 0:
            signal.alarm(45)
            for k in range(3):
                h.send_nowait(b"c%d-%d" % (n, k))
            assert p.close().delivered == 3
            os._exit(0)
        reap(child)
    stop.set()
    for thread in threads:
        thread.join()
    report = p.close()
    assert report.ok and report.accepted == sum(sent), report
            """,
            hub.target,
        )
        bodies = [record.body for record in hub.records("g", "s")]
        assert len(bodies) == len(set(bodies))
        assert {b for b in bodies if b[:1] == b"c"} == {b"c%d-%d" % (n, k) for n in range(30) for k in range(3)}


def test_threads_of_a_child_begin_it_once() -> None:
    with Hub() as hub:
        run(
            """
    p = dataproxy.Producer(sys.argv[1], group_id="g")
    h = p.stream("s")
    child = os.fork()
    if child == 0:
        start = threading.Barrier(8)
        def work(i):
            start.wait()
            for k in range(100):
                (h if k % 2 else p.stream("s")).send_nowait(b"%d-%d" % (i, k))
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert p.close().delivered == 800
        os._exit(0)
    reap(child)
    p.close()
            """,
            hub.target,
        )
        assert len({record.body for record in hub.records("g", "s")}) == 800


def test_a_grandchild_and_a_fork_in_a_signal_handler() -> None:
    with Hub() as hub, hub.faults.add("delay", seconds=0.3):
        run(
            """
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=60)
    p.send_nowait("s", b"0")
    if os.fork() == 0:
        p.send_nowait("s", b"1")
        child = os.fork()
        if child == 0:
            p.send_nowait("s", b"2")
            assert p.close().delivered == 1
            os._exit(0)
        reap(child)
        assert p.close().delivered == 1
        os._exit(0)
    os.wait()
    home, children = os.getpid(), []
    signal.signal(signal.SIGALRM, lambda *_: children.append(os.fork()))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    delivery = p.send("s", b"3")        # its answer is late: the handler runs inside of result()
    try:
        delivery.result(0.5)
    except dataproxy.ForkedError:
        assert os.getpid() != home
        p.send_nowait("s", b"4")
        assert p.close().delivered == 1
        os._exit(0)
    except dataproxy.DeliveryPending:
        pass
    reap(children[0])
    assert p.close().delivered == 2
            """,
            hub.target,
        )
        assert sorted(record.body for record in hub.records("g", "s")) == [b"0", b"1", b"2", b"3", b"4"]


POOLS = """
import multiprocessing, os, sys, warnings, dataproxy
warnings.simplefilter("ignore")
P = dataproxy.Producer(os.environ["TARGET"], group_id="g", linger=60)

def work(n):
    P.send_nowait("s", b"%d" % n)       # neither flush nor close: the end of the process delivers

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    if sys.argv[1] == "forkserver":
        context.set_forkserver_preload(["pooled"])
    P.send_nowait("s", b"parent")
    processes = [context.Process(target=work, args=(n,)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0, process.exitcode
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_processes_of_multiprocessing_deliver_at_their_end(
    method: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pooled.py").write_text(POOLS)
    with Hub() as hub:
        monkeypatch.setenv("TARGET", hub.target)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        assert finish(launch(str(tmp_path / "pooled.py"), method)) == (0, "", "")
        assert sorted(record.body for record in hub.records("g", "s")) == [b"0", b"1", b"2", b"parent"]


def test_workers_of_celery_deliver_at_their_end() -> None:
    """They leave by os._exit after one signal of Celery's; a stand-in has its interface."""
    with Hub() as hub:
        run(
            """
    import types
    class Signal:
        def connect(self, receiver, weak, dispatch_uid):
            self.receiver = receiver
    signals = types.ModuleType("celery.signals")
    signals.worker_process_shutdown = Signal()
    sys.modules["celery.signals"] = signals
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=60)
    child = os.fork()
    if child == 0:
        p.send_nowait("s", b"x")
        signals.worker_process_shutdown.receiver(sender=None, pid=os.getpid(), exitcode=0)
        os._exit(0)
    reap(child)
            """,
            hub.target,
        )
        assert [record.body for record in hub.records("g", "s")] == [b"x"]


def test_what_belongs_to_a_process_is_not_pickled() -> None:
    import pickle

    with Scripted() as server, dataproxy.Producer(server.target, group_id="g") as p:
        things = {p: "Producer(config=", p.stream("s"): "a producer in each process", p.send("s", b"x"): "result()",
                  p.send_batch("s", [b"x"]): "result()"}  # fmt: skip
        for thing, cure in things.items():
            with pytest.raises(TypeError) as caught:
                pickle.dumps(thing)
            assert "cannot be pickled" in str(caught.value)
            assert cure in str(caught.value)
        config = pickle.loads(pickle.dumps(p.config))
        with dataproxy.Producer(config=config) as other:
            other.send_nowait("s", b"y")


def test_a_fork_while_a_pack_is_being_divided() -> None:
    """The parent's parts stay the parent's: the child sends none of them, and frees none of their memory twice."""
    halves = threading.Event()

    def react(peer: Peer, frame: bytes) -> None:
        bodies = [body for body, _ in records(Server().serve(frame, 0)["entry"])]
        if b"child" in bodies:
            halves.set()
        elif b"bad" not in bodies:
            halves.wait(30)
        peer.send(refusal(frame, 123) if b"bad" in bodies else ack(frame))

    with Scripted(react) as server:
        run(
            """
    p = dataproxy.Producer(sys.argv[1], group_id="g", linger=60)
    batch = p.send_batch("s", [b"1", b"2", b"bad", b"3"])
    p.send_nowait("s", b"4")
    while not p.stats().connections or p.stats().connections[0].sent_frames < 2:
        try:
            p.flush(0.01)
        except dataproxy.FlushTimeout:
            pass
    child = os.fork()
    if child == 0:
        p.send_nowait("s", b"child")
        assert p.close().delivered == 1
        try:
            batch.done()
        except dataproxy.ForkedError:
            os._exit(0)
        os._exit(3)
    reap(child)
    p.flush()
    assert batch.result().delivered == 3
    report = p.close()
    assert (report.delivered, report.failed) == (4, 1), report
            """,
            server.target,
        )
        assert server.bodies().count(b"child") == 1
        assert len(server.frames) == 6, "the child's; all, 1 2, bad 3 4, bad, 3 4"


@pytest.mark.parametrize("by_manager", [True, False])
def test_a_lazy_start_leaves_no_import_to_its_threads(by_manager: bool) -> None:
    """A child that is forked while a thread imports could never import that module, and would find no proxy."""
    with Hub() as hub:
        run(
            """
    p = dataproxy.Producer(sys.argv[1], group_id="g", start="lazy")
    before = set(sys.modules)
    p.send("s", b"x").result(30)
    assert set(sys.modules) == before, set(sys.modules) - before
    p.close()
            """,
            hub.manager_url if by_manager else f"tcp://localhost:{hub.port}",
        )


def test_groups_keep_their_clusters_in_a_child() -> None:
    """Groups of the parent are known at once, also over handles; a new one is asked about in the child."""
    with Hub() as east, Hub() as west:
        east.manager.clusters = {"west": ManagerCluster(7, (("127.0.0.1", west.port),))}
        east.manager.groups = {"w1": "west", "w2": "west"}
        run(
            """
    p = dataproxy.Producer(sys.argv[1], group_id="e1", linger=0)
    h = p.stream("s", group_id="w1")
    h.send(b"parent").result(30)
    child = os.fork()
    if child == 0:
        h.send(b"child").result(30)
        p.send("s", b"child").result(30)
        p.send("s", b"child", group_id="w2").result(30)
        p.close()
        os._exit(0)
    reap(child)
    h.send(b"after").result(30)
    p.close()
            """,
            east.manager_url,
        )
        stored = {
            (name, group): sorted(record.body for record in hub.records(group, "s"))
            for name, hub in (("east", east), ("west", west))
            for group in ("e1", "w1", "w2")
        }
    assert {key: bodies for key, bodies in stored.items() if bodies} == {
        ("east", "e1"): [b"child"],
        ("west", "w1"): [b"after", b"child", b"parent"],
        ("west", "w2"): [b"child"],
    }
