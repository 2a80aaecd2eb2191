"""Notices which network sockets this process opens: Python's, and those of the compiled core.

An audit hook hears of each socket that Python code makes.  The core makes its sockets without the interpreter, but
on threads that Python starts and whose names say so; a socket it keeps without such a thread is found among the
descriptors.  Sockets between two ends in this process (``AF_UNIX``) do not count, nor do those of PySpark, which
talks to its JVM whenever an object of the JVM is freed, nor datagrams among the descriptors: the core makes none, and
the C library asks name servers by them, for seconds after an earlier test has given a name up.  Programs that a test
starts are not looked at, nor what a module of tests opens while it is imported.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from pathlib import Path
from typing import Any

__all__ = ["OpenedSockets"]

NETWORK = {socket.AF_INET, socket.AF_INET6}
THREADS = ("dataproxy-exec", "dataproxy-hub")  # they connect, or accept, in compiled code


def _descriptors() -> dict[str, str]:
    """Return the network streams that this process holds: ``socket:[inode]`` -> between which addresses."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile, on another thread
            name = str(path.readlink())
            if name.startswith("socket:"):
                one = socket.socket(fileno=int(path.name))
                try:
                    if one.family in NETWORK and one.type == socket.SOCK_STREAM:
                        found[name] = f"from {one.getsockname()} to {_peer(one)}"
                finally:
                    one.detach()
    return found


def _peer(one: socket.socket) -> object:
    try:
        return one.getpeername()
    except OSError:
        return "nobody"


def _of_pyspark() -> bool:
    """Return whether py4j is among the callers."""
    frame = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("py4j."):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class OpenedSockets:
    """Collects what opens network sockets between ``begin`` and ``end``; one at a time, on one thread."""

    _listening: OpenedSockets | None = None
    _hooked = False

    def __init__(self) -> None:
        self._found: list[str] = []
        self._before: set[str] = set()
        self._pyspark = False

    def begin(self) -> None:
        """Begin to listen."""
        if not OpenedSockets._hooked:
            OpenedSockets._hooked = True
            sys.addaudithook(_hear_event)  # it stays for ever
        self._before = set(_descriptors())
        threading.Thread.start = _heard_start  # type: ignore[method-assign]  # CPython 3.11 has no event for it
        OpenedSockets._listening = self

    def end(self) -> list[str]:
        """Return what opened network sockets since ``begin``."""
        OpenedSockets._listening = None
        threading.Thread.start = _plain_start  # type: ignore[method-assign]
        if not self._found and not self._pyspark:
            names = _descriptors()
            new = [f"compiled code, {name} {names[name]}" for name in sorted(names.keys() - self._before)]
            threads = ", ".join(thread.name for thread in threading.enumerate())
            self._found += [f"{one}, while these threads run: {threads}" for one in new]
        return self._found

    def hear_socket(self) -> None:
        """Note a socket that Python code makes.  Any thread; raises nothing."""
        if _of_pyspark():
            self._pyspark = True
        else:
            self._found.append("a socket of Python")

    def hear_thread(self, name: str) -> None:
        """Note a thread if it will make sockets.  Any thread; raises nothing."""
        if name.startswith(THREADS):
            self._found.append(f"thread {name}")


def _hear_event(event: str, args: tuple[Any, ...]) -> None:
    listener = OpenedSockets._listening
    if listener is not None and event == "socket.__new__" and args[1] in NETWORK:
        listener.hear_socket()


_plain_start = threading.Thread.start


def _heard_start(thread: threading.Thread) -> None:
    listener = OpenedSockets._listening
    if listener is not None:
        listener.hear_thread(thread.name)
    _plain_start(thread)
