"""The processes of a siege: the hub as its users start it, the honest pair, the crowd."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.campaigns.siege.memory import OPTIONS

__all__ = ["Crowd", "Honest", "HubUnderSiege"]

ROOT = Path(__file__).parents[3]
_PATIENCE = 120.0


def _start(log: Path, *arguments: str) -> subprocess.Popen[str]:
    with log.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip


class _Process:
    """A program that speaks in lines."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self.log = log
        self.process = _start(log, *arguments)

    def hear(self) -> str:
        """Wait for its next line.  Raises RuntimeError when it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.log.stem} ended: {self.log.read_text()[-3000:]}")
        return line

    def tell(self, text: str) -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it at once if it still runs; its pipes are closed."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()


class HubUnderSiege(_Process):
    """``dataproxy hub`` with a durable store and the bounds of ``memory.OPTIONS``."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store"
        options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
        super().__init__(
            folder / "hub.log", "dataproxy", "hub", "--store", str(self.store), "--port", "0",
            "--manager-port", "0", "--print-urls", "-o", f"token_file={folder / 'token'}", *options,
        )  # fmt: skip
        said = json.loads(self.hear())
        self.target, self.url = str(said["target"]), str(said["manager_url"])

    @property
    def ports(self) -> tuple[str, str]:
        """Return the DataProxy port and the Manager port."""
        return self.target.rpartition(":")[2], self.url.rpartition(":")[2]

    def stats(self) -> dict[str, Any]:
        """Return the hub's own counters, which it has to tell in the middle of a siege."""
        with urllib.request.urlopen(f"{self.url}/hub/stats", timeout=_PATIENCE) as answer:
            return dict(json.loads(answer.read()))

    def end(self) -> tuple[int, float]:
        """Ask it to end; return its code and the seconds that it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_PATIENCE), time.monotonic() - began


class Honest(_Process):
    """The honest producer, or the honest reader."""

    def __init__(self, folder: Path, role: str, where: str, *more: str) -> None:
        super().__init__(folder / f"{role}.log", "tests.campaigns.siege.honest", role, where, *more)

    def counters(self) -> tuple[float, dict[str, int]]:
        """Return the time and what it has done until then."""
        self.tell("?")
        said = json.loads(self.hear())
        return time.monotonic(), said

    def end(self, wanted: int | None = None) -> dict[str, int]:
        """Let it come to its end; return its last counters."""
        self.tell("end" if wanted is None else f"end {wanted}")
        said = json.loads(self.hear())
        if code := self.process.wait(_PATIENCE):
            raise RuntimeError(f"{self.log.stem} ended with {code}: {self.log.read_text()[-3000:]}")
        return dict(said)


class Crowd(_Process):
    """All hostile clients; they are there when this is made."""

    def __init__(self, folder: Path, hub: HubUnderSiege, seed: int, only: Sequence[str] = ()) -> None:
        super().__init__(folder / "crowd.log", "tests.campaigns.siege.crowd", *hub.ports, str(seed), *only)
        self.hear()

    def go(self) -> dict[str, Any]:
        """Send them home; return what they have done."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        said = json.loads(self.hear())
        self.process.wait(_PATIENCE)
        return dict(said)
