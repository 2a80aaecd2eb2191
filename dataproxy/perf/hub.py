"""The hub of a run: its counts of stored messages, and a hub process for runs without a target."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dataproxy.errors import HubError
from dataproxy.perf.watch import resident_bytes
from dataproxy.producer.discovery.limited import within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataproxy.producer.discovery.calls import Calls

__all__ = ["HubFigures", "HubProcess", "hub_process"]

_PERIOD: Final = 0.5  # seconds between two requests
_PATIENCE: Final = 2.0  # seconds for an answer
_MOST_BYTES: Final = 1 << 20  # of an answer
_SETTLE: Final = 5.0  # seconds until the last count must be complete
_START: Final = 30.0  # seconds until a hub's process must have printed where it listens
_OK: Final = 200


class HubFigures:
    """Ask a hub at intervals how many messages it has stored; on its own thread, since the hub may not answer.

    ``url`` is that of its Manager server; ``process`` the id of its process, if that is known and on this machine.
    """

    def __init__(self, url: str, process: int | None = None) -> None:
        self._url = url.rstrip("/")
        self._process = process
        self._first: int | None = None
        self._last: int | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, name="perf-hub", daemon=True)

    def begin(self) -> None:
        """Count from now on."""
        self._first = self._last = self._ask()
        if not self._thread.is_alive():
            self._thread.start()

    def close(self) -> None:
        """Ask no more."""
        self._ended.set()

    def stored(self) -> int | None:
        """Return the messages stored since ``begin``, by the last answer; None without an answer."""
        return None if self._last is None or self._first is None else self._last - self._first

    def settled(self, delivered: int) -> int | None:
        """Return the last count; wait for some seconds until it reaches ``delivered``."""
        deadline = time.monotonic() + _SETTLE
        while True:
            self._last = self._ask() or self._last
            stored = self.stored()
            if stored is None or stored >= delivered or time.monotonic() > deadline:
                return stored
            time.sleep(_PERIOD / 10)

    def cpu(self) -> float | None:
        """Return the CPU seconds of its process so far, None if the process is not known."""
        if self._process is None:
            return None
        try:
            fields = Path("/proc", str(self._process), "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int | None:
        """Return the resident bytes of its process, None if the process is not known."""
        return None if self._process is None else resident_bytes(str(self._process))

    def _ask_on(self) -> None:
        while not self._ended.wait(_PERIOD):
            self._last = self._ask() or self._last

    def _ask(self) -> int | None:
        import urllib3

        from dataproxy.producer.discovery.calls import Calls, TooLargeError

        calls = Calls(most_bytes=_MOST_BYTES)
        try:
            return within("perf-hub-call", _PATIENCE, lambda: self._records(calls), calls.end)
        except (urllib3.exceptions.HTTPError, TooLargeError, TimeoutError, RecursionError):
            return None
        except (ValueError, LookupError, TypeError, OverflowError):  # it is no hub's
            return None
        finally:
            calls.close()

    def _records(self, calls: Calls) -> int | None:
        answer = calls.pool.request("GET", f"{self._url}/hub/stats", timeout=_PATIENCE, preload_content=False)
        with answer:
            body = calls.read(answer)
        return int(json.loads(body)["records"]) if answer.status == _OK else None


class HubProcess:
    """A hub that runs as a process of its own, with its store in memory or in a folder."""

    def __init__(self, store: str = "") -> None:
        where = ["--store", store] if store else ["--memory"]
        ports = ["--port", "0", "--manager-port", "0", "--print-urls"]
        command = [sys.executable, "-m", "dataproxy", "hub", *where, *ports]
        self._process = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )  # a new session: Ctrl-C in a terminal must not end the hub before the run has its last answers
        timer = threading.Timer(_START, self._process.kill)
        timer.start()
        try:
            assert self._process.stdout is not None
            urls = json.loads(self._process.stdout.readline() or b"{}")
            self.target, self.manager_url = str(urls["target"]), str(urls["manager_url"])
        except (KeyError, ValueError):
            self.close()
            raise HubError("the hub's process did not start", hint="try `dataproxy hub --memory`") from None
        finally:
            timer.cancel()

    @property
    def pid(self) -> int:
        """Return the number of its process."""
        return self._process.pid

    def freeze(self) -> None:
        """Stop the process with SIGSTOP; its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the process continue."""
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the process and wait for its end."""
        self.thaw()
        self._process.terminate()
        try:
            self._process.wait(_START)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_START)
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextlib.contextmanager
def hub_process(store: str = "") -> Iterator[HubProcess]:
    """Run a hub's process for the time of a ``with`` block."""
    running = HubProcess(store)
    try:
        yield running
    finally:
        running.close()
