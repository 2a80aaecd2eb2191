"""The producer that serves all groups: each goes to the cluster that the Manager names for it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from dataproxy import Producer
from dataproxy.errors import ClosedError, DataProxyError
from dataproxy.producer.discovery.targets import parse_target
from dataproxy.producer.ingest.names import check_name
from dataproxy.types import ManagerTarget

if TYPE_CHECKING:
    from dataproxy import Stream
    from inlong_dataproxy.configuration import Settings

__all__ = ["Counts", "Groups", "Shared", "TooManyGroups"]

_MOST_HANDLES: Final = 4096


class Counts(NamedTuple):
    """Count the messages of an InLongApi by outcome.

    At any moment exactly ``accepted == delivered + sent + failed + expired + dropped + pending``.  ``sent`` is for the
    option ``ack="none"`` of dataproxy.
    """

    accepted: int
    delivered: int
    failed: int
    expired: int
    dropped: int
    pending: int
    sent: int = 0


class TooManyGroups(Exception):  # noqa: N818 - it becomes a code
    """Report that no further group can be opened."""


class Shared:
    """Hold the producer, and how many of its messages a callback has reported as not delivered.

    The thread that makes the producer's callbacks is the only one that changes ``told``.
    """

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.told = 0

    def undelivered(self) -> int:
        """Return how many messages were accepted and not delivered."""
        report = self.producer.report()
        return report.failed + report.expired + report.dropped + report.pending


class Groups:
    """Open groups by name, and close the producer that they share.  Any thread."""

    def __init__(self, settings: Settings) -> None:
        """Open the groups that the file names.  Raises ConfigError, and nothing stays open then."""
        target = parse_target(settings.config.target)
        # Where a Manager is asked by group, each group is a question of every round: their number has a limit.
        self._by_group = isinstance(target, ManagerTarget) and not target.cluster
        self._config = settings.config
        self._most = settings.most_groups
        self._lock = threading.RLock()  # a signal handler may close while its thread opens a group
        self._ended = False
        self._shared: Shared | None = None
        self._names: set[str] = set()
        self._handles: dict[tuple[str, str], tuple[Shared, Stream, Callable[[bytes], None]]] = {}
        names = settings.groups
        if self._by_group and len(names) > self._most:
            raise TooManyGroups
        if names or not self._by_group:
            self._begin(*names)

    def _begin(self, *names: str) -> Shared:
        config = self._config.replace(group_id=names[0] if names else None, group_ids=names[1:])
        self._shared = Shared(Producer(config=config))
        if self._by_group:
            self._names.update(names)
        return self._shared

    def open(self, name: str) -> Shared:
        """Return what all groups share, with this one among them.

        Raises TooManyGroups, InvalidMessageError for a name that is not allowed, ClosedError, and what ``Producer``
        raises.
        """
        if self._shared is not None and name in self._names:
            return self._shared
        check_name("group", name, message_type=self._config.message_type)
        if self._shared is not None and not self._by_group:
            return self._shared
        with self._lock:
            if self._ended:
                raise ClosedError("close_api was called")
            if name not in self._names and len(self._names) >= self._most:
                raise TooManyGroups
            if self._shared is None:
                return self._begin(name)
            self._shared.producer._look_for(name)
            self._names.add(name)
            return self._shared

    def handle(self, name: str, stream: str) -> tuple[Shared, Stream, Callable[[bytes], None]]:
        """Return what all groups share, the stream's handle and its ``send_nowait``.

        Raises TooManyGroups, and what ``Producer.stream`` raises.
        """
        found = self._handles.get((name, stream))
        if found is None:
            shared = self.open(name)
            bound = shared.producer.stream(stream, group_id=name)
            found = shared, bound, bound.send_nowait
            if len(self._handles) >= _MOST_HANDLES:
                self._handles.clear()
            self._handles[name, stream] = found
        return found

    def close(self, seconds: float) -> int:
        """Close the producer within this time; return how many messages were lost without a callback's word before."""
        end = time.monotonic() + seconds
        with self._lock:
            self._ended = True
            shared = self._shared
        if shared is None:
            return 0
        with contextlib.suppress(DataProxyError):  # open packs leave at once
            shared.producer.flush(0)
        told = shared.told  # what callbacks say from now on comes too late to be acted on
        shared.producer.close(max(0.0, end - time.monotonic()))
        return shared.undelivered() - told

    def counts(self) -> Counts:
        """Return the counts of all groups together."""
        if self._shared is None:
            return Counts(0, 0, 0, 0, 0, 0)
        report = self._shared.producer.report()
        return Counts(*(getattr(report, name) for name in Counts._fields))

    def errors(self) -> str:
        """Return the messages that were not delivered by code, in words."""
        errors = {} if self._shared is None else self._shared.producer.report().errors
        return ", ".join(f"{code} {n}" for code, n in sorted(errors.items(), key=lambda one: -one[1])) or "none"

    def begin_again(self) -> None:
        """Forget in a forked child what belongs to its parent: a lock that was held, and counts."""
        self._lock = threading.RLock()
        if self._shared is not None:
            self._shared.told = 0
