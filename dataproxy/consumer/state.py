"""What is known of a consumer: by the driver's thread, for the application."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataproxy.logs import logger
from dataproxy.process.changes import Event
from dataproxy.process.threads import end_child, forks

if TYPE_CHECKING:
    from dataproxy.consumer.group.asking import Refusal

__all__ = ["ConsumerState", "Partition", "Watcher"]

_LOG: Final = logger("consumer")


class Partition(Protocol):
    """Something that is read."""

    @property
    def key(self) -> str:
        """Return its name, ``broker:topic:partition``."""


class Watcher:
    """What a driver tells its consumer; each method is called on the driver's thread and must not wait."""

    def assigned(self, partition: Partition, number: int, begin: Callable[[bool], None], *, moved: bool) -> None:
        """Take the news that packs of a partition are read from now on, or (``moved``) from another place of it.

        ``number``: of its hold, which ``begin(paused)`` makes: it is called once, and nobody can pause the partition
        or see its packs before it is known here.
        """

    def revoked(self, partition: Partition, *, lost: bool) -> None:
        """Take the news that no more packs of a partition are given out; ``lost``: nothing can be confirmed."""

    def known(self, partitions: tuple[Partition, ...]) -> None:
        """Take the news what can be read, of a member that chooses by itself."""

    def refused(self, refusal: Refusal | None) -> None:
        """Take a master's refusal of this member, or None: it is a member now."""

    def failed(self, error: Exception) -> None:
        """Take the error that ends the driver."""

    def gone(self) -> None:
        """Take the end of the driver."""


class ConsumerState(Watcher):
    """Hold what the driver tells; callbacks of the application run on a thread of their own, in order.

    Any thread, unless a method says otherwise.
    """

    def __init__(self, on_assigned: Callable[[str], Any] | None, on_revoked: Callable[[str, bool], Any] | None):
        self._lock = threading.RLock()  # a handler of a signal may come while its thread has it
        self._numbers: dict[str, int] = {}
        self._paused: set[str] = set()
        self._refusal: Refusal | None = None
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._calls: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self.error: Exception | None = None  #: of the driver, which ended it
        self.member = Event()  #: a master has taken the registration
        self.ended = Event()
        self.told = Event()  #: a master has said what partitions there are
        self._known: tuple[str, ...] = ()

    @property
    def calls_back(self) -> bool:
        """Tell whether the application has callbacks."""
        return self._on_assigned is not None or self._on_revoked is not None

    @property
    def refusal(self) -> Refusal | None:
        """Return a master's refusal, as long as no master has taken this consumer."""
        return self._refusal

    @property
    def assignment(self) -> dict[str, int]:
        """Return the partitions that are read, by their keys, with the numbers of their holds."""
        with self._lock:
            return dict(self._numbers)

    @property
    def available(self) -> list[str]:
        """Return the keys of the partitions that can be chosen, as masters said last."""
        return list(self._known)

    def known(self, partitions: tuple[Partition, ...]) -> None:
        """Take what can be chosen.  Thread: driver."""
        self._known = tuple(one.key for one in partitions)
        self.told.set()

    def pause(self, keys: Collection[str], paused: bool, tell: Callable[[int, bool], None]) -> None:
        """Pause partitions, or let them go on; ``tell(number, paused)`` is called for each that is read now."""
        with self._lock:
            for key in keys:
                number = self._numbers.get(key)
                if number is not None:
                    (self._paused.add if paused else self._paused.discard)(key)
                    tell(number, paused)

    def assigned(self, partition: Partition, number: int, begin: Callable[[bool], None], *, moved: bool) -> None:
        """Take a partition, or its new hold.  Thread: driver."""
        key = partition.key
        with self._lock:
            if not moved:
                self._paused.discard(key)
            self._numbers[key] = number
            begin(key in self._paused)
        if self._on_assigned is not None and not moved:
            call = self._on_assigned
            self._calls.put(lambda: call(key))

    def revoked(self, partition: Partition, *, lost: bool) -> None:
        """Take the end of a partition, once.  Thread: driver."""
        with self._lock:
            known = self._numbers.pop(partition.key, None)
        if known is not None and self._on_revoked is not None:
            call, key = self._on_revoked, partition.key
            self._calls.put(lambda: call(key, lost))

    def refused(self, refusal: Refusal | None) -> None:
        """Take a refusal, or the end of it.  Thread: driver."""
        self._refusal = refusal
        if refusal is None:
            self.member.set()
        else:
            self.member.clear()

    def failed(self, error: Exception) -> None:
        """Take the error that ends the driver.  Thread: driver."""
        self.error = error

    def gone(self) -> None:
        """Take the end of the driver.  Thread: driver."""
        self.ended.set()
        self._calls.put(None)

    def call_back(self) -> None:
        """Make the application's callbacks until the driver is gone.  Thread: one of its own."""
        made_in = forks()
        while (call := self._calls.get()) is not None:
            try:
                try:
                    call()
                finally:
                    end_child(made_in != forks())
            except BaseException:  # noqa: BLE001 - SystemExit, too: the next ones are called all the same
                _LOG.log(logging.ERROR, "a callback of a consumer raised", exc_info=True)
