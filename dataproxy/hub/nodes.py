"""The nodes of a hub: each is one proxy, with a TCP port and a port of the HTTP report."""

from __future__ import annotations

from typing import Any, Final

from dataproxy._core.server.core import HubCore
from dataproxy.errors import ConfigError
from dataproxy.hub.listeners import Listener, Shutters

__all__ = ["Node", "checked_load", "make_nodes", "service_code"]

_STATES: Final = {"running": 0, "not_ready": 1, "stopped": 2}
_LOAD_MOST: Final = 65534
_UNKNOWN_LOAD: Final = 65535


class Node:
    """Change one node of a hub while the others go on.  Any thread.

    ``tcp`` and ``http`` are its listeners; ``http`` is None in a hub without the HTTP report.
    """

    def __init__(self, core: HubCore, index: int, tcp: Listener, http: Listener | None) -> None:
        self._core = core
        self._drained = False
        self.index = index
        self.tcp = tcp
        self.http = http

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return its listeners."""
        return (self.tcp,) if self.http is None else (self.tcp, self.http)

    @property
    def target(self) -> str:
        """Return the target for producers: this node alone, over TCP."""
        return self.tcp.target

    @property
    def load(self) -> int | str:
        """Return what heartbeats are answered with: "auto", "unknown" or a number."""
        load = self._core.settings(self.index)[2]
        return "auto" if load == "queue" else "unknown" if load is None else load

    @property
    def service(self) -> str:
        """Return how data requests are answered: "running", "not_ready" or "stopped"."""
        code = self._core.settings(self.index)[1]
        return next(name for name, known in _STATES.items() if known == code)

    @property
    def drained(self) -> bool:
        """Tell whether ``drain`` took it out of service."""
        return self._drained

    def set_load(self, load: int | str) -> None:
        """Answer heartbeats with "auto" (how full the queue is), "unknown" or a number from 0 to 65534.

        Raises ConfigError.
        """
        self._core.set_load(checked_load(str(load)), self.index)

    def set_service(self, state: str) -> None:
        """Answer data requests as in state "running", "not_ready" (code 1) or "stopped" (code 2).

        Raises ConfigError.
        """
        self._core.set_service(service_code(state), self.index)

    def set_profile(self, profile: str) -> None:
        """Answer broken requests on its listeners as in profile "strict" or "compat".  Raises ConfigError."""
        for listener in self.listeners:
            listener.set_profile(profile)

    def drain(self) -> None:
        """Take it out of service, as an operator does: data gets code 2, and the Manager no longer lists the node."""
        self._drained = True
        self._core.set_service(_STATES["stopped"], self.index)

    def undrain(self) -> None:
        """Take it into service again."""
        self._core.set_service(_STATES["running"], self.index)
        self._drained = False

    def refuse(self) -> None:
        """Make the kernel refuse connections to all its ports; open ones continue."""
        for listener in self.listeners:
            listener.refuse()

    def kill(self) -> None:
        """Close every connection without answers and refuse new ones, as when a proxy's process dies."""
        for listener in self.listeners:
            listener.kill()

    def restart(self) -> None:
        """Listen again on the same ports, unless a fault still shuts them.  Raises HubError (code LISTEN)."""
        for listener in self.listeners:
            listener.restart()

    def to_json(self) -> dict[str, Any]:
        """Return its settings, and its listeners by what they speak."""
        return {
            "index": self.index,
            "load": self.load,
            "service": self.service,
            "drained": self.drained,
            "listeners": {listener.protocol: listener.to_json() for listener in self.listeners},
        }

    @property
    def _told_load(self) -> int:
        """Return the load for the Manager's list, 65535 where it is not fixed."""
        load = self.load
        return load if isinstance(load, int) else _UNKNOWN_LOAD

    def __repr__(self) -> str:
        return f"<Node {self.index} {', '.join(repr(listener) for listener in self.listeners)}>"


def make_nodes(core: HubCore, shutters: Shutters, host: str, *, tls: bool = False) -> tuple[Node, ...]:
    """Return the nodes of an open core; ``host`` is the address by which they are reached."""
    listeners = [Listener(core, shutters, i, host, tls=tls) for i in range(len(core.ports))]
    tcp, http = ([one for one in listeners if one.protocol == protocol] for protocol in ("tcp", "http"))
    return tuple(Node(core, i, one, http[i] if http else None) for i, one in enumerate(tcp))


def checked_load(text: str) -> int | str | None:
    """Return a load as the core has it: "queue", None for unknown, or a number.  Raises ConfigError."""
    if text in ("auto", "queue"):
        return "queue"
    if text == "unknown":
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(_LOAD_MOST)) or int(text) > _LOAD_MOST:
        raise ConfigError(f"load {text!r} is not allowed", hint="give auto, unknown or a number from 0 to 65534")
    return int(text)


def service_code(state: str) -> int:
    """Return the code of a state of service, 0 for "running".  Raises ConfigError."""
    if state not in _STATES:
        raise ConfigError(f"service state {state!r} is unknown", hint=f"choose one of {', '.join(_STATES)}")
    return _STATES[state]
