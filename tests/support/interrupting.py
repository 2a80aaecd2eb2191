"""Calls, in the middle of which a signal handler raises."""

import gc
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

import pytest

import dataproxy
from dataproxy.process.threads import join

__all__ = ["interrupted", "interrupted_at"]

T = TypeVar("T")
_PACKAGE: Final = str(Path(dataproxy.__file__).parent)


def interrupted_at(n: int, call: Callable[[], T]) -> tuple[T | None, bool]:
    """Call something, and raise a KeyboardInterrupt at the n-th place of the package where a signal handler could run.

    These are the beginnings of functions, and behind calls of C.  Return what it has returned, and whether it was
    interrupted.
    """
    left = n

    def look(frame: FrameType, event: str, _what: Any) -> None:
        nonlocal left
        if event not in ("call", "c_return") or not frame.f_code.co_filename.startswith(_PACKAGE):
            return
        if left == 0:
            sys.setprofile(None)
            raise KeyboardInterrupt
        left -= 1

    collects = gc.isenabled()
    gc.disable()  # what is raised in a finalizer reaches nobody
    try:
        sys.setprofile(look)
        found = call()
    except KeyboardInterrupt:
        return None, True
    finally:
        sys.setprofile(None)
        if collects:
            gc.enable()
    return found, False


def interrupted(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let the next call of the ``join`` of this name find that a signal handler has raised a KeyboardInterrupt."""

    def wait(thread: threading.Thread, seconds: float, *, heeds: bool = False) -> BaseException | None:
        monkeypatch.setattr(name, join)
        join(thread, seconds, heeds=heeds)
        return KeyboardInterrupt()

    monkeypatch.setattr(name, wait)
