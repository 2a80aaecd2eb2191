"""Whether a producer is connected to a proxy: waiting for the first connection, and the warning without one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from dataproxy.codes import LOCAL_CODES
from dataproxy.config.rules import is_tubemq
from dataproxy.errors import TransportError
from dataproxy.logs import logger
from dataproxy.numbers import CE_CONNECTED
from dataproxy.process.changes import Changes

if TYPE_CHECKING:
    from dataproxy.producer.producer import Producer

__all__ = ["Readiness"]

_LOG = logger()
_LOOK_SECONDS: Final = 0.5
_FIRST_SECONDS: Final = 1.0
_REPEAT_SECONDS: Final = 30.0
_OF_PROXIES: Final = "check the address, the firewall, and that the proxy runs: dataproxy doctor TARGET says which"
_OF_TUBEMQ: Final = (
    "brokers are connected when a topic of theirs is first used: call stream(TOPIC) before;"
    " dataproxy topics says which brokers a topic has"
)


class Readiness:
    """Track whether a producer is connected to a proxy, by the events of its connections."""

    def __init__(self) -> None:
        self._changes = Changes()
        self._since: float | None = None  # when the first failure came that no connection has followed
        self._said = -_REPEAT_SECONDS

    @staticmethod
    def connected(core: Producer) -> bool:
        """Tell whether a connection to a proxy is established.  Any thread."""
        return any(connection["state"] == "active" for connection in core._connections())

    def hear(self, kind: int) -> None:
        """Note an event of a connection, or another change.  Any thread."""
        if kind == CE_CONNECTED:
            self._since = None
        elif self._since is None:
            self._since = time.monotonic()
        with self._changes.lock:
            self._changes.tell()

    def wait(self, core: Producer, limit: float) -> None:
        """Wait up to ``limit`` seconds for a connection.  Raises TransportError, ClosedError, ForkedError."""
        deadline = time.monotonic() + limit
        while True:
            with self._changes.lock:
                core._check_open()
                if self.connected(core):
                    return
                left = deadline - time.monotonic()
                if left <= 0 or self._is_hopeless(core):
                    break
                waiter = self._changes.waiter()
            self._changes.wait(waiter, min(left, _LOOK_SECONDS))
        last, tubemq = core.report().last_error, is_tubemq(core.config.target)
        known = LOCAL_CODES.get(last.code) if last is not None and last.code.startswith("TLS") else None
        raise TransportError(
            f"no {'broker' if tubemq else 'proxy'} was reached"
            f" {'over TLS' if known else f'within {limit:g} s'}{core._trouble()}",
            code="CONNECT_FAILED" if known is None else known.code,
            hint=known.hint if known is not None else _OF_TUBEMQ if tubemq else _OF_PROXIES,
            details={} if last is None else {"address": last.address, "cause": last.code, "reason": last.reason},
        )

    @staticmethod
    def _is_hopeless(core: Producer) -> bool:
        """Tell whether every connection has failed, the last one in its TLS handshake: no wait would help."""
        last = core.report().last_error
        if last is None or not last.code.startswith("TLS") or last.connected:
            return False
        return not any(connection["state"] == "connecting" for connection in core._connections())

    def look(self, core: Producer) -> float | None:
        """Log a warning if messages have waited for a proxy for a second; return the seconds until the next check.

        At most one warning in 30 seconds.  None: nothing is due before the next event.  Dispatcher's thread.
        """
        if self._since is None:
            return None
        now = time.monotonic()
        due = max(self._since + _FIRST_SECONDS, self._said + _REPEAT_SECONDS)
        if now < due:
            return due - now
        self._since = None  # the next failure sets it again
        report = core.report()
        if report.pending and not self.connected(core):
            self._said = now
            kind = "broker" if is_tubemq(core.config.target) else "proxy"
            _LOG.warning("no %s is connected; messages that wait: %d%s", kind, report.pending, core._trouble())
        return None
