"""What a hub may hold in memory, added up from its documented bounds, and what it held."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from dataproxy.hub.web.connections import HttpLimits

__all__ = ["MIB", "OPTIONS", "Peak", "bound", "kib"]

MIB = 1 << 20
_LOOK_S = 0.02

#: The options of the hub under siege that bound its memory, in bytes.
OPTIONS = {
    "queue_bytes": 8 * MIB,
    "max_frame_bytes": 512 << 10,
    "max_connections": 2000,
    "max_store_bytes": 1024 * MIB,
    "retention_bytes": 128 * MIB,
}
#: One payload unpacked (`container.pxd`), one receive buffer of the server loop and one commit (`docs/hub-store.md`).
_UNPACKED, _COMMIT = 64 * MIB, 32 * MIB
_PAGE, _RECORDS_MOST, _ROW = MIB, 10_000, 200
_READERS = 4
_BODY, _HEAD = 64 << 10, 4 * 8190
_SESSION = 2048


def bound(idle: int) -> dict[str, int]:
    """Return what may be held beside the map of the store's file, by what it is held for, in bytes.

    ``idle`` is what the hub had before anybody came: the interpreter and its modules.
    """
    queue = OPTIONS["queue_bytes"]
    http = HttpLimits()
    return {
        "the hub when nobody is there": idle,
        "half-received frames (queue_bytes)": queue,
        "unread answers (queue_bytes)": queue,
        "requests that wait for a commit (queue_bytes)": queue + 2 * OPTIONS["max_frame_bytes"],
        "pages of a commit (as much as waited, and as many again for what its tree moves)": 2 * min(queue, _COMMIT),
        "one frame being judged: received, unpacked, and what is made of it": _UNPACKED
        + 4 * OPTIONS["max_frame_bytes"],
        "connections of producers": OPTIONS["max_connections"] * _SESSION,
        "HTTP requests: head, body": http.connections * (_HEAD + _BODY),
        "entries being read (four threads: 4 MiB of entries each, one unpacked)": _READERS * (4 * MIB + _UNPACKED),
        "pages of records: objects, JSON text, and its bytes": http.pages * 3 * (_PAGE + _PAGE // 2),
    }


def kib(pid: int, name: str) -> int:
    """Return a line of a process's status, ``VmHWM`` (most that was ever resident) for example, in KiB."""
    for line in Path("/proc", str(pid), "status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise ValueError(f"the status of process {pid} has no {name}")


@dataclass
class Peak:
    """Watch the memory of a process while the ``with`` block runs.

    ``resident`` is the kernel's own mark of the whole, which misses nothing; ``own`` is the most that was seen, by
    looking, of what is no part of a file: the map of the store's file is given back whenever somebody needs room.
    """

    pid: int
    resident: int = 0
    own: int = 0

    def __post_init__(self) -> None:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)

    def look(self) -> None:
        """Look once; a process that has ended keeps what was seen."""
        with contextlib.suppress(OSError, ValueError):
            self.own = max(self.own, kib(self.pid, "RssAnon") << 10)
            self.resident = max(self.resident, kib(self.pid, "VmHWM") << 10)

    def _run(self) -> None:
        while not self._done.wait(_LOOK_S):
            self.look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
