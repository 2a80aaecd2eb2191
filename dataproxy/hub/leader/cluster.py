"""This hub in its cluster: the thread that carries a seat's commands to ZooKeeper and back."""

from __future__ import annotations

import json
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from dataproxy.errors import HubError
from dataproxy.hub.leader.commands import Command, Outcome
from dataproxy.hub.leader.seat import Hub, NotLeaderError, Seat, SeatTimes, Ticket
from dataproxy.hub.leader.zookeeper import Session
from dataproxy.logs import logger

__all__ = ["Cluster", "boot_clock"]

_log: Final = logger("hub.cluster")
_SESSION_S: Final = 10.0
_START_S: Final = 10.0  #: until a server has to answer
_PAUSE_S: Final = 1.0  #: before this hub begins anew, when following the cluster has failed
_SHORTEST_S: Final = 0.01  #: between two rounds of the thread
_LARGEST: Final = 900_000  #: bytes of a document; ZooKeeper's own limit is 1 MiB for a request

_LARGEST_TEXT: Final = 64 << 20  #: bytes of its JSON, which is packed there


def boot_clock() -> float:
    """Return seconds of a clock that also counts while the machine sleeps, where there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Cluster:
    """The hub's membership of a cluster, from ``start`` to ``stop``.  Any thread."""

    def __init__(
        self, servers: str, path: str, hub: Hub, *, session_s: float = _SESSION_S, times: SeatTimes | None = None
    ) -> None:
        self.hub = hub
        self._on_change: Callable[[], None] = lambda: None
        self._times = times
        self._seat = Seat(hub, secrets.token_hex(8), times)
        self._wake = threading.Condition()  # guards the seat and what follows
        self._stopping = False
        self._read: tuple[bytes, dict[str, Any]] = (b"", {})  # the last document that was asked for
        self._session = Session(servers, path, hub.id, session_s, self)
        self._thread = threading.Thread(target=self._run, name="dataproxy-hub-cluster", daemon=True)

    def on_change(self, call: Callable[[], None]) -> None:
        """Have a function called, before ``start``, when leadership, the leader, the hubs or the document have changed.

        It is called on this object's thread, and must not wait for it.
        """
        self._on_change = call

    def start(self, limit: float = 10.0) -> None:
        """Join the cluster.  Raises HubError when no server of ZooKeeper's answers within ``limit`` seconds."""
        self._thread.start()
        try:
            self._session.start(limit)
        except HubError:
            self.stop(limit)
            raise

    def stop(self, limit: float = 5.0) -> None:
        """Leave it within ``limit`` seconds: a leader resigns first.  Idempotent.

        A session that cannot be ended in that time, because ZooKeeper does not answer, ends by itself.
        """
        until = time.monotonic() + limit
        with self._wake:
            if not self._stopping:
                self._seat.end(boot_clock())
            self._stopping = True
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join(limit)
        ending = threading.Thread(target=self._session.stop, name="dataproxy-hub-cluster-end", daemon=True)
        ending.start()
        ending.join(max(until - time.monotonic(), _SHORTEST_S))
        if ending.is_alive():
            _log.warning("ZooKeeper has not answered within %g s: the session of this hub ends by itself", limit)

    # --- what others ask

    def leads(self) -> bool:
        """Tell whether this hub is the leader at this moment."""
        with self._wake:
            return self._seat.leads(boot_clock())

    @property
    def epoch(self) -> int:
        """Return the number of this hub's leadership, the present or the last one."""
        with self._wake:
            return self._seat.epoch

    @property
    def leader(self) -> Hub | None:
        """Return who leads, as far as this hub knows."""
        with self._wake:
            return self._seat.leader

    @property
    def hubs(self) -> Mapping[int, Hub]:
        """Return the hubs that are connected."""
        with self._wake:
            return self._seat.hubs

    def document(self) -> tuple[dict[str, Any], bool]:
        """Return (the document, whether it is at most 3 s old); nobody may change the document that is returned."""
        with self._wake:
            data = self._seat.document
            if data is not self._read[0]:
                self._read = (data, _unpacked(data))
            return self._read[1], self._seat.is_fresh(boot_clock())

    def change(self, change: Callable[[dict[str, Any]], None], limit: float = 10.0) -> None:
        """Change the document, and wait until ZooKeeper has it.

        Raises NotLeaderError if this hub does not lead, or may have ceased to before that; HubError if the document is
        too large, or there was no answer within ``limit`` seconds: then it may count or not.
        """
        self.wait(self.begin(change), limit)

    def wait(self, ticket: Ticket, limit: float = 10.0) -> None:
        """Wait until ZooKeeper has a change that was begun.  Raises as ``change`` does."""
        with self._wake:
            self._wake.wait_for(lambda: ticket.counted is not None, limit)
            if ticket.counted is None:
                raise HubError(f"ZooKeeper has not answered within {limit:g} s: the change may count or not")
            if not ticket.counted:
                raise NotLeaderError("this hub has ceased to lead: the change may count or not")

    def begin(self, change: Callable[[dict[str, Any]], None]) -> Ticket:
        """Begin to change the document; the ticket says later whether it counts.  Raises NotLeaderError, HubError."""
        with self._wake:
            document = _unpacked(self._seat.proposed)
            change(document)
            data = _packed(document)
            if len(data) > _LARGEST:
                raise HubError(
                    f"the cluster's document would have {len(data)} bytes, ZooKeeper takes {_LARGEST}",
                    hint="remove topics, rules or authorisations that nobody needs",
                )
            ticket = self._seat.write(data, boot_clock())
            self._wake.notify_all()
            return ticket

    # --- events of the session

    def connected(self, session_s: float) -> None:
        """Take a new connection."""
        self._happened(lambda now: self._seat.connected(session_s, now))

    def suspended(self) -> None:
        """Take the end of the connection."""
        self._happened(self._seat.suspended)

    def lost(self) -> None:
        """Take the end of the session."""
        self._happened(self._seat.lost)

    def noticed(self) -> None:
        """Something has changed."""
        self._happened(self._seat.noticed)

    def ended(self, command: Command, outcome: Outcome) -> None:
        """Take the end of a command."""
        self._happened(lambda now: self._seat.ended(command, outcome, now))

    def _happened(self, what: Callable[[float], None]) -> None:
        with self._wake:
            what(boot_clock())
            self._wake.notify_all()

    # --- the thread

    def _run(self) -> None:
        while True:
            try:
                self._follow()
                return
            except Exception:  # noqa: BLE001 - whatever it is, the hub is to stay in its cluster
                _log.exception("this hub leaves its cluster for a moment: following it has failed")
            if not self._begin_anew():
                return

    def _follow(self) -> None:
        """Make the seat's commands, until the hub has left."""
        before: object = None
        while True:
            with self._wake:
                now = boot_clock()
                command = self._seat.next_command(now)
                if command is None:
                    if self._stopping and self._seat.is_out:
                        return
                    self._wake.wait(min(max(self._seat.next_at - now, _SHORTEST_S), threading.TIMEOUT_MAX))
                seat = self._seat
                seat.tick(boot_clock())
                self._wake.notify_all()  # a change whose leader has gone
                after = (seat.leads(boot_clock()), seat.epoch, seat.leader, seat.hubs, seat.version)
            if command is not None:
                self._session.send(command)
            if after != before:
                before = after
                try:
                    self._on_change()
                except Exception:  # noqa: BLE001 - leadership goes on, and ends in time
                    _log.exception("a change in the cluster was not worked off")

    def _begin_anew(self) -> bool:
        """End the session, with all that this hub has at ZooKeeper, and begin one; False when the hub ends."""
        with self._wake:
            old, self._seat = self._seat, Seat(self.hub, secrets.token_hex(8), self._times)
            try:
                old.lost(boot_clock())  # who waits for its writes hears that they may count or not
            except Exception:  # noqa: BLE001 - whatever it is, the hub is to come back
                _log.exception("who waited for the old session may not have heard of its end")
            self._wake.notify_all()
        self._session.stop()
        while True:
            with self._wake:
                if self._wake.wait_for(lambda: self._stopping, _PAUSE_S):
                    return False
            try:
                self._session.start(_START_S)
            except HubError as error:
                _log.warning("this hub is not in its cluster: %s", error)
            else:
                return True


def _packed(document: dict[str, Any]) -> bytes:
    text = json.dumps(document, sort_keys=True).encode()
    if len(text) > _LARGEST_TEXT:
        raise HubError(f"the cluster's document would have {len(text):,} bytes, hubs read {_LARGEST_TEXT:,}")
    return zlib.compress(text)


def _unpacked(data: bytes) -> dict[str, Any]:
    """Return a document; one that was never written is empty."""
    if not data:
        return {}
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(data, _LARGEST_TEXT)
        if not unpacking.eof:
            raise ValueError(f"it is cut, or has more than {_LARGEST_TEXT:,} bytes")
        found = json.loads(text)
    except (zlib.error, ValueError) as error:
        raise HubError(
            f"the cluster's document is none: {error}", hint="is the path used by another program?"
        ) from None
    if not isinstance(found, dict):
        raise HubError("the cluster's document is none: expected an object of JSON")
    return found
