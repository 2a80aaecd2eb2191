"""A callback that forks, and how its child ends."""

from __future__ import annotations

import os
import signal
import sys
import threading

from tests.support.waiting import SECONDS, eventually

__all__ = ["Forks"]


class Forks:
    """Fork in a callback of the parent, once; `ended` returns the code of the child's end."""

    def __init__(self, how: str) -> None:
        self.how, self.child, self.over = how, 0, threading.Event()

    def fork(self) -> None:
        """Fork, and let the callback of the child end in some way; that of the parent waits."""
        child = os.fork()
        if child:
            self.child = child
            assert self.over.wait(SECONDS)
        elif self.how == "raise":
            raise ValueError("in the child")
        elif self.how == "exit":
            sys.exit(3)

    def ended(self) -> int | None:
        """Wait for the end of the child, and let the parent go on; None: it goes on without end."""
        found: list[tuple[int, int]] = []

        def look() -> bool:
            if self.child:
                found.append(os.waitpid(self.child, os.WNOHANG))
            return bool(found and found[-1][0])

        try:
            if eventually(look):
                return os.waitstatus_to_exitcode(found[-1][1])
            if self.child:
                os.kill(self.child, signal.SIGKILL)
                os.waitpid(self.child, 0)
            return None
        finally:
            self.over.set()
