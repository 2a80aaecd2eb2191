"""Hubs and senders as processes that can be killed, stopped and started again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.ports import HeldPorts

__all__ = ["HubProcess", "SenderProcess"]

ROOT = Path(__file__).parents[3]


def _spawn(module: str, *arguments: str, log: Path) -> subprocess.Popen[str]:
    with log.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip


class HubProcess:
    """A hub that keeps its directory and its ports over kills; one in memory keeps its ports alone.

    ``identity``: for a hub with TLS, a file with certificate and key, and one with the authority of its clients.
    ``reports``: it has a port of the HTTP report.  ``queue`` and ``rockets``: of TubeMQ, and of RocketMQ.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        durable: bool = True,
        identity: tuple[Path, Path] | None = None,
        reports: bool = False,
        queue: bool = False,
        rockets: bool = False,
    ) -> None:
        self._identity = identity
        self.durable = durable
        self.folder = folder / name
        self.log = folder / f"{name}.log"
        self._ports = HeldPorts()
        self.port = self._ports.take()
        self.http_port = self._ports.take() if reports else -1
        self.tubemq_port = self._ports.take() if queue else -1
        self.rocketmq_port = self._ports.take() if rockets else -1
        self.manager_port = self._ports.take()
        self.process: subprocess.Popen[str] | None = None
        self.frozen = False

    def start(self) -> None:
        """Start it and wait until it listens."""
        self.process = _spawn(
            "tests.campaigns.chaos.hubmain",
            str(self.folder) if self.durable else "-",
            str(self.port),
            str(self.http_port),
            str(self.manager_port),
            str(self.tubemq_port),
            str(self.rocketmq_port),
            *map(str, self._identity or ()),
            log=self.log,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the hub {self.folder} did not start: {self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        """Kill -9; its memory is gone, its directory stays."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self._drop_pipes()
        self.frozen = False

    def misbehave(self, lasts: float, kind: str, fields: dict[str, object]) -> None:
        """Let it have a fault for a while; a hub that is dead does not hear it."""
        assert self.process is not None and self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(json.dumps({"kind": kind, "for": lasts, **fields}) + "\n")
            self.process.stdin.flush()

    def freeze(self) -> None:
        """Stop the process where it is; its sockets stay open."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        """Let it go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def close(self) -> None:
        """End it in order."""
        self._ports.close()
        if self.process is None:
            return
        if self.process.poll() is None:
            self._end(self.process)
        self._drop_pipes()

    def _end(self, process: subprocess.Popen[str]) -> None:
        if self.frozen:
            self.thaw()
        assert process.stdin is not None
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        if process.poll() is None:
            process.kill()
            process.wait()

    def _drop_pipes(self) -> None:
        assert self.process is not None
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class SenderProcess:
    """A producer in a process of its own, which logs all it was told."""

    def __init__(self, folder: Path, name: str, target: str, *options: str) -> None:
        self.name = name
        self.log = folder / f"{name}.told"
        self.errors = folder / f"{name}.log"
        self.process = _spawn("tests.campaigns.chaos.sender", name, target, str(self.log), *options, log=self.errors)

    def ready(self) -> str:
        """Wait until it sends; return its first line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the sender {self.name} did not start: {self.errors.read_text()[-2000:]}")
        return line

    def freeze(self, seconds: float) -> None:
        """Stop the process for a while."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def finish(self, timeout: float = 180.0) -> str:
        """Have it flush and close; return its last line."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        rest = self.process.stdout.read()
        code = self.process.wait(timeout)
        self.process.stdout.close()
        if code:
            raise RuntimeError(f"the sender {self.name} ended with {code}: {self.errors.read_text()[-3000:]}")
        return rest

    def kill(self) -> None:
        """End it at once, after something else has failed."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                with contextlib.suppress(OSError):
                    pipe.close()
