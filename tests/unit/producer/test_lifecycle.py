"""The end of a process closes its producers, whatever is raised meanwhile; the log of a producer stays small."""

from types import SimpleNamespace

from dataproxy import logs
from dataproxy.outcomes import Report
from dataproxy.producer import lifecycle
from dataproxy.producer.results.dispatcher import EventLog

REFUSED = 8  # a frame, with a code


class Odd:
    """A producer whose waits raise, each time or as often as ``raises`` says."""

    _inherited = False
    _close_timeout = 5.0
    _warns_at_exit = True

    def __init__(self, raises: int) -> None:
        self.raises = raises
        self.waits = 0
        self.closed: list[float] = []

    def _begin_close(self) -> None:
        """Begin nothing."""

    def _wait_settled(self, seconds: float) -> bool:
        self.waits += 1
        if self.waits <= self.raises:
            raise MemoryError
        return True

    def close(self, timeout: float | None = None) -> Report:
        assert timeout is not None
        self.closed.append(timeout)
        return self.report()

    def report(self) -> Report:
        return Report(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)


def test_what_raises_for_ever_is_closed_all_the_same(monkeypatch) -> None:
    for_ever, often, never = Odd(10**9), Odd(3), Odd(0)
    monkeypatch.setattr(lifecycle, "_live", [never, often, for_ever])
    try:
        lifecycle._close_all()
    except MemoryError:
        pass
    finally:
        lifecycle._in_child()
    assert [len(one.closed) for one in (for_ever, often, never)] == [1, 1, 1]
    assert for_ever.waits == 100
    assert (often.waits, never.waits) == (4, 1)


def test_a_proxy_that_makes_up_codes_fills_no_memory(caplog, monkeypatch) -> None:
    monkeypatch.setattr(logs, "time", SimpleNamespace(monotonic=lambda: 1000.0))  # nothing is said again later
    log = EventLog()
    for code in range(2000):
        log.write(REFUSED, "10.0.0.1:46801", code)
        log.write(REFUSED, "10.0.0.1:46801", code)
    assert len(log._repeats._last) <= 1000
    assert len(log._repeats._left_out) <= 1000
    assert sum("10.0.0.1:46801" in record.getMessage() for record in caplog.records) == 2000
