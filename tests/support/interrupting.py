"""Waits for threads, in the middle of which a signal handler raises."""

import threading

import pytest

from dataproxy.process.threads import join

__all__ = ["interrupted"]


def interrupted(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let the next call of the ``join`` of this name find that a signal handler has raised a KeyboardInterrupt."""

    def wait(thread: threading.Thread, seconds: float, *, heeds: bool = False) -> BaseException | None:
        monkeypatch.setattr(name, join)
        join(thread, seconds, heeds=heeds)
        return KeyboardInterrupt()

    monkeypatch.setattr(name, wait)
