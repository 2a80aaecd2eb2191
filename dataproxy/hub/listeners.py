"""The listeners of a hub: each looks like a proxy of its own."""

from __future__ import annotations

import os
import threading
from typing import Final

from dataproxy._core.hub.hubcore import HubCore
from dataproxy.errors import ForkedError

__all__ = ["Listener", "Shutters"]

_OWN: Final = "the user"


class Shutters:
    """Know who wants which listener shut, and open it when nobody does any more.  Any thread."""

    def __init__(self, core: HubCore) -> None:
        self._core = core
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._holders: dict[int, set[object]] = {}

    def shut(self, index: int, holder: object, *, kill: bool) -> None:
        """Refuse connections for a holder, with ``kill`` also close those there are; done on return.

        Raises ForkedError: the sockets are shared with the process that started the hub.
        """
        if self._pid != os.getpid():
            raise ForkedError("the hub was started before a fork", hint="start a hub of its own in the child process")
        with self._lock:
            self._holders.setdefault(index, set()).add(holder)
            self._core.refuse(index, kill)

    def open(self, index: int, holder: object) -> None:
        """Take a holder back; the last one opens the listener.  Raises OSError."""
        with self._lock:
            holders = self._holders.get(index, set())
            holders.discard(holder)
            if not holders:
                self._core.resume(index)


class Listener:
    """Refuse, kill and restart one listener of a hub while the others go on.  Any thread."""

    def __init__(self, core: HubCore, shutters: Shutters, index: int, host: str) -> None:
        self._core = core
        self._shutters = shutters
        self.index = index
        self.port = core.ports[index]
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def target(self) -> str:
        """Return what a producer takes as its target for this listener alone."""
        return f"tcp://{self.address}"

    @property
    def listens(self) -> bool:
        """Tell whether it takes connections."""
        return not self._core.refuses(self.index)

    @property
    def accepted(self) -> int:
        """Return the number of connections it has taken; the last one has this number."""
        return self._core.accepted(self.index)

    def refuse(self) -> None:
        """Have the kernel refuse connections from now on; those there are go on."""
        self._shutters.shut(self.index, _OWN, kill=False)

    def kill(self) -> None:
        """Close every connection without answers and refuse new ones, as when a proxy's process dies."""
        self._shutters.shut(self.index, _OWN, kill=True)

    def restart(self) -> None:
        """Listen again on the same port, unless a fault still shuts it.  Raises OSError."""
        self._shutters.open(self.index, _OWN)

    def __repr__(self) -> str:
        return f"<Listener {self.index} {self.target} {'listens' if self.listens else 'refuses'}>"
