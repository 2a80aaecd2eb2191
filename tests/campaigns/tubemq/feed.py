"""TubeMQ's Java client as the source of messages, beside everything else."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Self

from tests.support.tubekit import KIT, Servers

__all__ = ["Feed"]


class Feed:
    """Send ``count`` messages to a topic in the background; ``sent`` are the bodies that the broker has taken.

    ``pause`` in ms comes between two messages.  A message that is refused is tried again, some hundred times.
    """

    def __init__(
        self, servers: Servers, topic: str, count: int, prefix: str, *, size: int = 0, pause: int = 0, window: int = 0
    ) -> None:
        options = [f"prefix={prefix}", f"size={size}", f"pause={pause}", "seconds=900", "retries=600"]
        if window:
            options += ["async=true", f"window={window}"]
        command = [str(KIT), "drive", "tubemq", "TubeDriver", "produce", f"127.0.0.1:{servers.master}", topic]
        self._process = subprocess.Popen(
            [*command, str(count), *options],
            env=servers.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.count = count
        self.sent: set[str] = set()
        self.summary: dict[str, float] = {}
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith("{"):
                continue
            said = json.loads(line)
            if said["event"] == "sent":
                self.sent.add(said["body"])
            elif said["event"] == "summary":
                self.summary = said

    def wait(self, seconds: float = 900) -> set[str]:
        """Wait for the end, and return the bodies that were taken."""
        self._process.wait(seconds)
        self._thread.join(60)
        return self.sent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)
        self._thread.join(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
