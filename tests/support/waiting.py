"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable
from typing import Final

__all__ = ["SECONDS", "eventually"]

SECONDS: Final = 30.0  # after which a test gives up; a machine under load is slow


def eventually(condition: Callable[[], object], seconds: float = SECONDS) -> bool:
    """Wait until something becomes true, and tell whether it is."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
