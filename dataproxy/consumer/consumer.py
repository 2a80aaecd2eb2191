"""Consumer: waits that block the calling thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from dataproxy.consumer.base import ConsumerBase
from dataproxy.consumer.inlong import check_arguments, inlong_records
from dataproxy.consumer.outcomes import SOUGHT, check_confirmed
from dataproxy.errors import ClosedError
from dataproxy.problems import seconds

if TYPE_CHECKING:
    from datetime import timedelta

    from dataproxy._core.consumer.pack import Pack, Record
    from dataproxy.consumer.group.asking import Reply
    from dataproxy.consumer.inlong import InLongRecord
    from dataproxy.consumer.places import Choice
    from dataproxy.consumer.seen import SeenRecords
    from dataproxy.errors import RemoteProtocolError
    from dataproxy.process.changes import Asked

__all__ = ["Consumer"]

_SLICE_S: Final = 0.5  # between two looks for a refusal, or for the end
_SHORT_S: Final = 0.1
_ANSWER_S: Final = 5.0


class Consumer(ConsumerBase):
    """Read topics of TubeMQ, or of a hub by RocketMQ's protocol, as a member of a group.

    ``target``: ``tubemq://master1:8715,master2:8715`` (``tubemqs://`` with TLS), or a list of ``host:port``; or a hub
    that pushes, ``rocketmq://host:port`` (``rocketmqs://``), where what has no meaning is refused by its name.
    ``group``: the consumer group.  ``topics``: names, or a mapping of names to filter items; with ``rocketmq://`` to
    tags, or to `dataproxy.rocketmq.Sql`.
    ``on_assigned(partition)`` and ``on_revoked(partition, lost)`` are called on a thread of their own; until
    ``release_wait`` after a revocation that is no loss, packs of the partition can be confirmed.  ``config``: a
    complete configuration; without it ``config_file``, ``DATAPROXY_CONSUMER_*`` variables and keyword options make one
    (see CONFIGURATION.md).

    A consumer joins its group in the background: ``poll`` returns packs once a master has given it partitions.  All
    methods may be called from any thread.  Raises ConfigError before anything is started, with ``rocketmq://`` also
    InvalidMessageError for a group or a topic whose name RocketMQ does not allow.  Use it as a context manager: leaving
    the block gives all partitions back.
    """

    def poll(self, timeout: float | timedelta | None = 1.0) -> Pack | None:
        """Return the next pack, or None if none came within ``timeout`` (s; None: one second).

        With ``auto_confirm`` the pack that this thread got before is confirmed.  Raises GroupRefusedError while a
        master does not let this consumer into its group, ClosedError, ForkedError.
        """
        until = time.monotonic() + (1.0 if timeout is None else seconds(timeout))
        if self.config.auto_confirm:
            self._confirm_given()
        while True:
            left = until - time.monotonic()
            pack = self._take(min(max(left, 0.0), _SLICE_S))
            if pack is not None or left <= 0:
                return pack

    def __iter__(self) -> Iterator[Pack]:
        """Return packs until the consumer is closed."""
        while True:
            try:
                pack = self.poll()
            except ClosedError:
                return
            if pack is not None:
                yield pack

    def records(self) -> Iterator[Record]:
        """Return messages one by one until the consumer is closed; a pack is confirmed when its last one is done with.

        That is when the next message is asked for.  Raises as ``poll`` does; a confirm that fails is in ``stats()``.
        """
        for pack in self:
            for record in pack:
                yield record
                if pack.code == SOUGHT:  # the partition is read from another place: the rest is not wanted
                    break
            if not self.config.auto_confirm:
                self._core.end_pack(pack, True)

    def inlong_records(
        self,
        on_malformed: Callable[[Record, RemoteProtocolError], Any] | None = None,
        *,
        dedupe: SeenRecords | None = None,
    ) -> Iterator[InLongRecord]:
        """Return the records of InLong's containers one by one until the consumer is closed, as ``records`` does.

        ``on_malformed`` and ``dedupe`` are those of ``dataproxy.inlong_records``.  A pack with a message that is no
        container is an error without ``on_malformed``, and is not confirmed.  Raises ConfigError for arguments that
        are none.
        """
        check_arguments(on_malformed, dedupe)
        return self._inlong_records(on_malformed, dedupe)

    def _inlong_records(
        self, on_malformed: Callable[[Record, RemoteProtocolError], Any] | None, dedupe: SeenRecords | None
    ) -> Iterator[InLongRecord]:
        for pack in self:
            for record in inlong_records(pack, on_malformed, dedupe=dedupe):
                yield record
                if pack.code == SOUGHT:
                    break
            if not self.config.auto_confirm:
                self._core.end_pack(pack, True)

    def confirm(self, pack: Pack, *, wait: bool = True) -> None:
        """Tell the broker that a pack is done with, and ask for the partition's next one.

        ``wait``: until the broker has answered; without it the outcome is in ``pack.outcome`` later, and in the
        statistics.  Raises ConfirmError if the confirm does not count: then the messages may come again, here or to
        another member.  Raises LocalProtocolError for a pack that was confirmed or rolled back before.
        """
        self._end(pack, consumed=True)
        if wait:
            self._core.wait_pack(pack, self.config.call_timeout + _ANSWER_S)
            check_confirmed(pack)

    def available(self, timeout: float | timedelta = 30.0) -> list[str]:
        """Return the keys of the partitions that can be chosen, ``broker:topic:partition``.

        With ``balance="client"``.  A master is asked every 10 s; the first call waits for its answer.  Raises
        LocalProtocolError with another balance, TransportError after ``timeout`` (s), GroupRefusedError, ClosedError.
        """
        self._await_told(seconds(timeout))
        return self._state.available

    def assign(self, partitions: Choice, timeout: float | timedelta = 30.0) -> None:
        """Read these partitions and no others: keys of ``available()``, as a list, or as a mapping to places.

        With ``balance="client"``.  A place is an offset, ``"earliest"`` or ``"latest"``; None: where the group is.  A
        partition that is read already goes on, unless a place is given; one that is left out is given back, as after a
        revocation.  What is chosen is taken again whenever it is lost.  Partitions of other members are not taken from
        them: their brokers are asked again and again, and the log says so.

        Returns when the choice is made; ``on_assigned`` and ``assignment()`` tell what is read.  An offset outside of
        a store begins at its nearest end.  Raises ConfigError for what is no partition, before anything has changed;
        LocalProtocolError with another balance, TransportError after ``timeout`` (s), GroupRefusedError, ClosedError.
        """
        self._await_told(seconds(timeout))
        asked = self._ask_assign(partitions)
        return self._assigned(self._await(asked))

    def _await(self, asked: Asked[Reply]) -> Reply:
        """Wait for what the driver was asked for.  Raises ForkedError, and what the driver raised."""
        while not asked.ended.wait(_SHORT_S):
            self._core.check_own()
        return asked.result(0)

    def _await_told(self, limit: float) -> None:
        """Wait until a master has said what there is."""
        self._check_chooses()
        until = time.monotonic() + limit
        while not self._state.told.wait(_SHORT_S):
            self._check_told(limit, late=time.monotonic() >= until)

    def seek(self, partition: str, offset: int | Literal["earliest", "latest"]) -> int:
        """Read an assigned partition from another place, and return the offset where that is.

        ``offset``: one that ``pack.offset`` or ``position()`` had, ``"earliest"`` for the oldest message, ``"latest"``
        for behind the newest.  If the messages at the offset are deleted by now, reading begins at the oldest one.
        The group's stored offset moves there at once.  Packs of the partition that wait are given back, those that are
        out expire; every pack that comes behind this call is from the new place.

        Blocks until the broker has answered.  Raises ConfigError for a partition that is not assigned and for what is
        no offset, SeekError (the offset is behind the end, the partition was taken away, another seek came in between),
        ClosedError, ForkedError; with ``rocketmq://`` also TransportError where a broker cannot be reached,
        RemoteProtocolError where it refuses, and DataProxyError (``retriable``) where it could not be told: the
        partition is read on from where it was, or from the new place.
        """
        asked = self._ask_seek(partition, offset)
        return self._sought(partition, offset, self._await(asked))

    def wait_ready(self, timeout: float | timedelta = 30.0) -> None:
        """Wait until a master has taken this consumer into its group.

        Raises GroupRefusedError, TransportError after ``timeout`` (s) with the last fault, ClosedError.
        """
        until = time.monotonic() + seconds(timeout)
        self._check_open()
        while not self._state.member.wait(_SHORT_S):
            self._check_ready(seconds(timeout), late=time.monotonic() >= until)

    def close(self, timeout: float | timedelta | None = None) -> None:
        """Give all partitions back, and leave the group: within ``timeout`` (s; None: ``close_timeout``).

        Packs that are out can be confirmed for ``release_wait`` more.  With ``auto_confirm`` the last pack that this
        thread got is not confirmed: it comes again.  Any thread; a second call waits as well.
        """
        self._core.check_own()
        self._close_now(self.config.close_timeout if timeout is None else seconds(timeout))

    def __enter__(self) -> Self:
        if self._closed:
            self._check_open()  # which says so
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
