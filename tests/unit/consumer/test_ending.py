"""The end of a process with open consumers."""

from __future__ import annotations

import threading
import weakref

import pytest

from dataproxy.consumer import ending


class Faulty:
    """Something that cannot be closed."""

    _close_timeout = 1.0

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def _begin_close(self) -> None: ...

    def _close_now(self, _limit: float) -> None:
        raise self.error


@pytest.mark.parametrize(("error", "told"), [(ValueError("a fault"), 1), (KeyboardInterrupt(), 0)])
def test_why_a_consumer_was_not_closed_in_order_is_logged(
    error: BaseException, told: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("_begun", "_ended"):
        monkeypatch.setattr(ending, name, threading.Event())
    monkeypatch.setattr(ending, "_live", weakref.WeakSet())
    faulty = Faulty(error)
    ending.register(faulty)
    ending._close_all()
    assert len(caplog.records) == told
    assert ("ValueError: a fault" in caplog.text) == bool(told)
