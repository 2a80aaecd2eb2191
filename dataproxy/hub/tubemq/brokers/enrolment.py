"""The thread that keeps this hub registered as a broker at a master."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.tubemq.brokers.joining import Call, Joining, Told
from dataproxy.hub.tubemq.cluster.layout import TopicAt
from dataproxy.logs import logger
from dataproxy.masters.connection import MasterConnection, ServerFault, fault_text
from dataproxy.masters.target import Address

__all__ = ["Enrolment"]

_log: Final = logger("hub.tubemq")
_CALL_S: Final = 5.0
_CONNECT_S: Final = 3.0


class Enrolment:
    """Registers and sends heartbeats from ``start`` to ``stop``.  Any thread may call it.

    ``told`` is called on this object's thread with what masters say, when it has changed.
    """

    def __init__(self, joining: Joining, told: Callable[[Told], None] = lambda told: None) -> None:
        self._joining, self._on_told = joining, told
        self._changed = threading.Condition()  # guards `_joining` and the flag
        self._stopping = False
        self._connection: tuple[Address, MasterConnection] | None = None
        self._thread = threading.Thread(target=self._run, name="dataproxy-hub-broker", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, limit: float) -> None:
        """Leave the master, and end the thread within ``limit`` seconds.  Idempotent."""
        with self._changed:
            self._stopping = True
            self._joining.end(time.monotonic())
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(limit)

    @property
    def is_online(self) -> bool:
        """Tell whether a master knows this broker."""
        with self._changed:
            return self._joining.is_online

    def set_topics(self, topics: Mapping[str, TopicAt]) -> None:
        """Say what this broker has."""
        with self._changed:
            self._joining.set_topics(topics, time.monotonic())
            self._changed.notify()

    def set_masters(self, masters: Sequence[Address]) -> None:
        """Say where masters are."""
        with self._changed:
            self._joining.set_masters(masters, time.monotonic())
            self._changed.notify()

    def _run(self) -> None:
        """Make the calls; the body of the thread."""
        told = Told()
        while True:
            with self._changed:
                now = time.monotonic()
                call = self._joining.next_call(now)
                if call is None:
                    if self._stopping:
                        break
                    wait = self._joining.next_at - now
                    self._changed.wait(min(max(wait, 0.0), threading.TIMEOUT_MAX))
                    continue
            self._make(call)
            with self._changed:
                before, told = told, self._joining.told
            if told != before:
                try:
                    self._on_told(told)
                except Exception:  # noqa: BLE001 - the registration has to go on
                    _log.exception("what the master told this broker was not taken")
        self._hang_up()

    def _make(self, call: Call) -> None:
        try:
            answer = self._connected(call.master).ask(call.name, call.request, _CALL_S)
        except (OSError, ServerFault, RemoteProtocolError) as error:
            self._hang_up()
            why = fault_text(error) if isinstance(error, OSError) else str(error)
            with self._changed:
                self._joining.failed(call, why, time.monotonic())
        else:
            with self._changed:
                try:
                    self._joining.answered(call, answer, time.monotonic())
                except Exception as error:  # noqa: BLE001 - another master, or this one later, may answer in order
                    self._joining.failed(call, f"its answer could not be taken: {error!r}", time.monotonic())

    def _connected(self, master: Address) -> MasterConnection:
        if self._connection is not None and self._connection[0] != master:
            self._hang_up()
        if self._connection is None:
            self._connection = (master, MasterConnection(*master, None, master.host, _CONNECT_S))
        return self._connection[1]

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None
