"""Surroundings that change what a thread or an interpreter is: gevent, sub-interpreters; and many short lives."""

from tests.process.programs import finish, start
from tests.support.scripted import Scripted


def test_gevent_is_refused_in_one_sentence() -> None:
    with Scripted() as server:
        process = start(
            """
            from gevent import monkey
            monkey.patch_all()
            import sys, dataproxy
            try:
                dataproxy.Producer(sys.argv[1], group_id="g")
            except dataproxy.ConfigError as error:
                assert "gevent has replaced 'threading'" in str(error), error
                assert "monkey.patch_all(thread=False)" in error.hint, error.hint
                print(error.code)
            """,
            server.target,
        )
        assert finish(process) == (0, "GREEN_THREADS\n", "")


def test_gevent_without_its_threads_works() -> None:
    with Scripted() as server:
        process = start(
            """
            from gevent import monkey, spawn, joinall
            monkey.patch_all(thread=False)
            import sys, dataproxy
            got = []
            with dataproxy.Producer(sys.argv[1], group_id="g", linger=0, on_delivery=got.append) as p:
                def work(n):
                    p.send_nowait("s", b"%d" % n)
                    assert p.send("s", b"x%d" % n).result(30).attempts == 1
                joinall([spawn(work, n) for n in range(20)], raise_error=True)
            assert len(got) == 40
            """,
            server.target,
        )
        assert finish(process) == (0, "", "")
        assert len(server.bodies()) == 40


def test_a_subinterpreter_is_refused_in_one_sentence() -> None:
    process = start(
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        code = '''
        import dataproxy
        try:
            dataproxy.Producer
        except ImportError as error:
            assert "works in the main interpreter" in str(error) and "processes" in str(error), error
        else:
            raise SystemExit("was not refused")
        '''
        import textwrap
        failed = interpreters.run_string(interpreters.create(), textwrap.dedent(code))
        assert failed is None, failed
        import dataproxy
        dataproxy.Producer                  # the main interpreter is not hurt
        """
    )
    assert finish(process) == (0, "", "")


CYCLES = """
    import gc, os, sys, threading, dataproxy
    count = lambda: (threading.active_count(), len(os.listdir("/proc/self/fd")))
    def live():
        with dataproxy.Producer(sys.argv[1], group_id="g", linger=0, executors=2) as p:
            p.stream("s").send(b"x" * 1000).result(30)
            p.send_nowait("t", b"y")
    for _ in range(5):
        live()
    gc.collect()
    gc.disable()        # what is closed goes with its last user
    before = count()
    for _ in range(int(sys.argv[2])):
        live()
    assert count() == before == (1, before[1]), (before, count())
    assert not [o for o in gc.get_objects() if isinstance(o, dataproxy.Producer)]
"""


def test_many_short_lives_leave_nothing_behind() -> None:
    with Scripted() as server:
        assert finish(start(CYCLES, server.target, "40")) == (0, "", "")
        assert len(server.bodies()) == 90
