"""The listeners of a hub: each looks like a proxy of its own."""

from __future__ import annotations

import errno
import os
import threading
from typing import Any, Final

from dataproxy._core.server.core import HubCore
from dataproxy.errors import ConfigError, ForkedError, HubError

__all__ = ["Listener", "Shutters", "bracketed", "is_compat", "listen_error"]

_OWN: Final = "the user"
_PROFILES: Final = ("strict", "compat")


class Shutters:
    """Count the holders that want a listener shut, and open it when there is none left.  Any thread."""

    def __init__(self, core: HubCore, host: str) -> None:
        self._core = core
        self._host = host
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._holders: dict[int, set[object]] = {}

    def shut(self, index: int, holder: object, *, kill: bool) -> None:
        """Refuse connections for a holder; with ``kill`` also close the open ones.  Done on return.

        Raises ForkedError: the sockets are shared with the process that started the hub.
        """
        if self._pid != os.getpid():
            raise ForkedError("the hub was started before a fork", hint="start a hub of its own in the child process")
        with self._lock:
            self._holders.setdefault(index, set()).add(holder)
            self._core.refuse(index, kill)

    def open(self, index: int, holder: object) -> None:
        """Remove a holder; without the last one the listener opens.

        Raises HubError (code LISTEN) if it cannot open, for example because another program now has the port.  The
        listener then stays shut, and the next call tries again.
        """
        with self._lock:
            holders = self._holders.get(index, set())
            holders.discard(holder)
            if holders:
                return
            try:
                self._core.resume(index)
            except OSError as error:
                raise listen_error(f"listener {index}", self._host, self._core.ports[index], error) from error


class Listener:
    """Refuse, kill and restart one listener of a hub while the others continue.  Any thread.

    ``protocol`` is what it speaks: "tcp", "http" for the HTTP report, "tubemq" or "rocketmq".
    """

    def __init__(self, core: HubCore, shutters: Shutters, index: int, host: str, *, tls: bool = False) -> None:
        self._core = core
        self._shutters = shutters
        self.index = index
        self.port = core.ports[index]
        self.protocol = _protocol(core, index)
        self.address = f"{bracketed(host)}:{self.port}"
        is_queue = self.protocol in ("tubemq", "rocketmq")
        self._scheme = ("tls" if tls else "tcp") if not is_queue else f"{self.protocol}s" if tls else self.protocol

    @property
    def target(self) -> str:
        """Return the target for producers that speak its protocol: this listener alone."""
        return f"{self._scheme}://{self.address}"

    @property
    def listens(self) -> bool:
        """Tell whether it accepts connections."""
        return not self._core.refuses(self.index)

    @property
    def accepted(self) -> int:
        """Return the number of connections it has accepted; the last one has this number."""
        return self._core.accepted(self.index)

    @property
    def profile(self) -> str:
        """Return how broken requests are answered: "strict" or "compat"."""
        return _PROFILES[self._core.settings(self.index)[0]]

    def set_profile(self, profile: str) -> None:
        """Answer broken requests as in profile "strict" or "compat"; open connections follow.  Raises ConfigError."""
        self._core.set_compat(is_compat(profile), self.index)

    def refuse(self) -> None:
        """Make the kernel refuse connections from now on; open ones continue."""
        self._shutters.shut(self.index, _OWN, kill=False)

    def kill(self) -> None:
        """Close every connection without answers and refuse new ones, as when a proxy's process dies."""
        self._shutters.shut(self.index, _OWN, kill=True)

    def restart(self) -> None:
        """Listen again on the same port, unless a fault still shuts it.

        Raises HubError (code LISTEN) if another program has taken the port meanwhile; the call can be repeated.
        """
        self._shutters.open(self.index, _OWN)

    def to_json(self) -> dict[str, Any]:
        """Return what it speaks, where, and how it is set."""
        return {
            "index": self.index,
            "protocol": self.protocol,
            "port": self.port,
            "profile": self.profile,
            "listens": self.listens,
            "accepted": self.accepted,
        }

    def __repr__(self) -> str:
        return f"<Listener {self.index} {self.protocol} {self.address} {'listens' if self.listens else 'refuses'}>"


def is_compat(profile: str) -> bool:
    """Tell whether a profile is "compat" and not "strict".  Raises ConfigError if it is neither."""
    if profile not in _PROFILES:
        raise ConfigError(f"profile {profile!r} is unknown", hint=f"choose one of {', '.join(_PROFILES)}")
    return profile == "compat"


def listen_error(what: str, host: str, port: int, error: OSError) -> HubError:
    """Return the error for an address that cannot be listened on."""
    hints = {
        errno.EADDRINUSE: "another program listens there; stop it, or choose another port (0 takes a free one)",
        errno.EADDRNOTAVAIL: "this machine has no such address; use 127.0.0.1, 0.0.0.0 or an address of its own",
        errno.EACCES: "ports below 1024 need privileges; choose a higher port",
    }
    return HubError(
        f"{what} cannot listen on {bracketed(host)}:{port}: {os.strerror(error.errno or 0)}",
        code="LISTEN",
        hint=hints.get(error.errno or 0, "check host, port and the limit of open files"),
        details={"host": host, "port": port, "errno": error.errno},
    )


def bracketed(host: str) -> str:
    """Return an address in the form before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def _protocol(core: HubCore, index: int) -> str:
    """Return what a listener speaks: the nodes' come first, then those of the HTTP report, TubeMQ and RocketMQ."""
    if index < core.nodes:
        return "tcp"
    if 0 <= core.rocketmq <= index:  # the one of the VIP channel is behind it
        return "rocketmq"
    return "tubemq" if index == core.tubemq else "http"
