"""TubeMQ's Java client as commands, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final, Self

from tests.support.tubekit import KIT

__all__ = ["JAVA_SECONDS", "LEFT_OUT_OF_COUNT", "Java", "bodies_of"]

JAVA_SECONDS: Final = 120
LEFT_OUT_OF_COUNT: Final = 100_000  #: a client that is to read so many ends by its time


class Java:
    """Start commands against a master's port of loopback; they end with the block.

    ``version``: of the client; empty: the one of the kit's servers.
    """

    def __init__(self, home: Path, master: int, version: str = "") -> None:
        self._env = {**os.environ, "INTEROP_HOME": str(home), "TUBE_CLIENT": version}
        self._master = f"127.0.0.1:{master}"
        self.running: list[subprocess.Popen[str]] = []

    def begin(self, what: str, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        process = subprocess.Popen(
            [str(KIT), "drive", "tubemq", "TubeDriver", what, self._master, *words], env=self._env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.running.append(process)
        return process

    @staticmethod
    def told(process: subprocess.Popen[str], status: int = 0) -> list[dict[str, Any]]:
        """Wait for the end of a command and return what it said."""
        out, _ = process.communicate(timeout=JAVA_SECONDS)
        assert process.returncode == status, out
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            process.kill()
            process.communicate()


def bodies_of(lines: list[dict[str, Any]]) -> list[str]:
    """Return the bodies that a client received."""
    return [line["body"] for line in lines if line["event"] == "received"]
