"""Addresses of hosts: looked up on a thread of their own, and again in a period; the last known one stays in use."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Names"]


@dataclass
class _Name:
    address: str = ""  #: the last one that was found
    error: str = ""  #: of the newest look-up
    due: float = 0.0
    asked: bool = False


def _is_numeric(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host  # a scope is looked up, and is in no address that comes back


class Names:
    """Look up hosts without keeping anybody waiting.

    ``look`` is called by one thread; ``start(name, body)`` starts a thread, and ``found`` is called there after each
    look-up.
    """

    def __init__(self, period_s: float, start: Callable[[str, Callable[[], None]], object], found: Callable[[], None]):
        self._period_s = period_s
        self._start, self._found = start, found
        self._names: dict[str, _Name] = {}
        self._lock = threading.Lock()

    def look(self, host: str, now: float) -> str:
        """Return a host's numeric address, or "" while it is looked up.  Raises OSError if it could not be found."""
        if _is_numeric(host):
            return host
        with self._lock:
            name = self._names.setdefault(host, _Name())
            if not name.asked and now >= name.due:
                name.asked = True
                name.due = now + self._period_s
                self._begin(host, name)
            if name.address:
                return name.address
            if name.error and not name.asked:
                error, name.error, name.due = name.error, "", 0.0  # the next one who asks starts a new look-up
                raise OSError(error)
            return ""

    def _begin(self, host: str, name: _Name) -> None:
        try:
            self._start("dataproxy-names", lambda: self._search(host, name))
        except RuntimeError as error:  # there is no thread more, or the interpreter ends
            name.asked = False
            name.error = f"{host!r} cannot be looked up: {error}"

    def _search(self, host: str, name: _Name) -> None:
        address = error = ""
        try:
            address = str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0]).partition("%")[0]
        except (OSError, UnicodeError) as fault:
            error = f"{host!r} has no address: {fault}"
        except Exception as fault:  # noqa: BLE001 - whatever it is, the name is looked up again
            error = f"{host!r} could not be looked up: {fault!r}"
        with self._lock:
            name.address = address or name.address
            name.error = error
            name.asked = False
        self._found()
