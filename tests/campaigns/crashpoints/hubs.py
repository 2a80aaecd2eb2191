"""Hubs of one store that die and come back on the same port."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.campaigns.preload import build_preload
from tests.support.ports import HeldPorts

__all__ = ["Nursery", "build_killer"]

ROOT = Path(__file__).parents[3]


def build_killer(folder: Path) -> Path:
    """Compile the library that ends a process at a system call, unless that was done."""
    return build_preload(Path(__file__).with_name("killer.c"), folder)


class Nursery:
    """Start hubs one at a time; ``port`` is the same for all of them, ``status`` that of the last one that ended."""

    def __init__(self, killer: Path) -> None:
        self._ports = HeldPorts()
        self.port = self._ports.take()
        self.pid = 0
        self.status: int | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.campaigns.crashpoints.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "LD_PRELOAD": str(killer), "PYTHONPATH": str(ROOT)},
        )
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(line)
        self._said.put("gone")

    def start(self, store: Path, event: str, passages: int) -> bool:
        """Start a hub; false when it has died before it was ready."""
        assert self._process.stdin is not None
        order = {"store": str(store), "port": self.port, "event": event, "passages": passages}
        self.status = None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        word, *rest = self._said.get(timeout=60).split()
        if word == "ready":
            self.pid = int(rest[1])
            return True
        self._take(word, rest)
        return False

    def is_dead(self) -> bool:
        """Tell whether the hub has ended."""
        while self.status is None and not self._said.empty():
            word, *rest = self._said.get().split()
            self._take(word, rest)
        return self.status is not None

    def kill(self) -> None:
        """End the hub, if it lives, and wait for that."""
        if not self.is_dead():
            self._kill()
            word, *rest = self._said.get(timeout=60).split()
            self._take(word, rest)

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it may have died by itself just now
            os.kill(self.pid, signal.SIGKILL)

    def _take(self, word: str, rest: list[str]) -> None:
        if word != "exit":
            raise RuntimeError(f"the nursery said {word!r} where a hub had to end")
        self.status = int(rest[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ports.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self.status is None and self.pid:
            self._kill()
        self._process.wait(timeout=60)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
