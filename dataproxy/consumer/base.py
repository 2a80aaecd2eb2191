"""A consumer without its waits: configuration, threads, start and end around the compiled core and the member."""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from dataproxy.config import CONSUMER, conceal, is_rocketmq
from dataproxy.consumer import ending
from dataproxy.consumer.arguments import checked_config
from dataproxy.consumer.kinds import make_parts
from dataproxy.consumer.outcomes import check_confirmed, refusal_error
from dataproxy.consumer.places import no_choice, place_of, seek_error, starts_of
from dataproxy.consumer.state import ConsumerState
from dataproxy.consumer.stats import ConsumerStats, Lag, lag_of, make_stats
from dataproxy.errors import ClosedError, ConfigError, DataProxyError, LocalProtocolError, TransportError
from dataproxy.logs import logger
from dataproxy.problems import shown
from dataproxy.process.threads import is_ours, join, start_hearing, start_quiet
from dataproxy.unmade import made_by_init

if TYPE_CHECKING:
    from typing import Unpack

    from dataproxy._core.consumer.core import ConsumerCore
    from dataproxy._core.consumer.pack import Pack
    from dataproxy.config import ConsumerConfig
    from dataproxy.config.typed import ConsumerOptions
    from dataproxy.consumer.driver import Driver
    from dataproxy.consumer.group.asking import Reply
    from dataproxy.consumer.pushed.engine import PushedEngine
    from dataproxy.process.changes import Asked

__all__ = ["ConsumerBase"]

_LOG: Final = logger("consumer")

_SHORT_S: Final = 0.1  # between two looks for signals
_GRACE_S: Final = 0.5  # for the ends of threads, behind the time that a close may take
_NAMED: Final = 10  # partitions in one error


class ConsumerBase:
    """What Consumer and AsyncConsumer have in common: one consumer's core, member and threads.

    A consumer joins its group in the background.  Any thread, unless a method says otherwise.
    """

    config: ConsumerConfig = made_by_init()
    _core: ConsumerCore | PushedEngine = made_by_init()
    _driver: Driver | PushedEngine = made_by_init()
    _state: ConsumerState = made_by_init()
    _awaited = False
    _closed = True  # until its threads run

    def __init__(
        self,
        target: str | list[str] | tuple[str, ...] | None = None,
        *,
        group: str | None = None,
        topics: Any = None,
        on_assigned: Callable[[str], Any] | None = None,
        on_revoked: Callable[[str, bool], Any] | None = None,
        config: ConsumerConfig | None = None,
        config_file: str | Path | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        if "config" in vars(self):
            raise LocalProtocolError("this consumer was made before; make another one")
        conceal(CONSUMER, cast("dict[str, Any]", options))
        self.config = checked_config(target, group, topics, on_assigned, on_revoked, config, config_file, options)
        self._state = ConsumerState(on_assigned, on_revoked)
        parts = make_parts(self.config, self._state, awaited=self._awaited)
        self.client, self._core, self._driver, self._trust = parts[:4]
        #: With auto_confirm: the pack that each thread or task got last.  One that ends takes its pack along.
        self._given: weakref.WeakKeyDictionary[object, Pack] = weakref.WeakKeyDictionary()
        self._threads: list[threading.Thread] = list(parts.threads)
        self._start(parts.bodies)

    def _start(self, bodies: Iterable[tuple[str, Callable[[], None]]]) -> None:
        try:
            if self._state.calls_back:
                start_hearing("dataproxy-consumer-callbacks", self._state.call_back)
            self._threads += [start_quiet(name, body) for name, body in bodies]
            if self._trust is not None:
                self._trust.follow(start_quiet)
        except BaseException:  # there is no thread more: those that run are not left behind
            self._driver.abandon()
            self._core.stop()
            self._state.gone()
            raise
        self._closed = False
        ending.register(self)

    def __repr__(self) -> str:
        if "_threads" not in vars(self):
            return f"<{type(self).__name__} not made>"
        return f"<{type(self).__name__} {self.client}, {'closed' if self._closed else self._driver.stage}>"

    # --- packs

    def _take(self, seconds: float) -> Pack | None:
        """Return the next pack, or None if none came in time.  Raises GroupRefusedError, ClosedError, ForkedError."""
        self._check_open()
        if self._state.refusal is not None:
            raise refusal_error(self._state.refusal, self.config.group)
        pack: Pack | None = self._core.take(self, seconds)
        if pack is not None and self.config.auto_confirm:
            self._given[self._who()] = pack
        return pack

    def _who(self) -> object:
        """Return whoever takes packs one after the other: not its number, which the next one may get."""
        return threading.current_thread()

    def _confirm_given(self) -> None:
        """Confirm the pack that the caller got before, if it has not done so itself."""
        pack = self._given.pop(self._who(), None)
        if pack is not None:
            self._core.end_pack(pack, True)

    def _end(self, pack: Pack, *, consumed: bool) -> None:
        """Ask for the end of a pack.  Raises LocalProtocolError for one that was ended before, ConfirmError."""
        self._core.check_own()
        if not self._core.made_for(self, pack):
            raise LocalProtocolError(
                f"{shown(pack)} is no pack of this consumer", hint="use pack.confirm() and pack.rollback()"
            )
        if pack.outcome == "expired":
            self._core.end_pack(pack, consumed)  # too late for its broker, but what it was asked for is known
            check_confirmed(pack)
        if not self._core.end_pack(pack, consumed):
            raise LocalProtocolError(
                f"{pack!r} was confirmed or rolled back before",
                code="CONFIRMED_TWICE",
                hint="confirm each pack once; with auto_confirm, or in records(), the consumer does it",
            )

    def rollback(self, pack: Pack) -> None:
        """Give a pack back: its messages come again.

        Raises LocalProtocolError for a pack that was confirmed or rolled back before, ConfirmError for one that has
        expired.
        """
        self._end(pack, consumed=False)

    # --- partitions

    def assignment(self) -> list[str]:
        """Return the keys of the partitions that are read, ``broker:topic:partition``.  Raises ForkedError."""
        self._core.check_own()
        return sorted(self._state.assignment)

    def position(self) -> dict[str, int]:
        """Return where the next pack of each partition begins, in bytes of its store's index.

        Partitions of which it is not known yet are left out.
        """
        return {key: lag.position for key, lag in self.lag().items() if lag.position is not None}

    def lag(self) -> dict[str, Lag]:
        """Return how far each partition is behind."""
        unit = self._driver.offset_unit
        return {key: lag_of(at, end, behind, unit) for key, at, end, behind in self._core.partitions()}

    def pause(self, *partitions: str) -> None:
        """Ask for no more packs of these partitions, without any: of all; ones that wait are given back.

        Raises ConfigError for a partition that is not assigned.  A partition that leaves and comes back is not paused.
        """
        self._pause(partitions, paused=True)

    def resume(self, *partitions: str) -> None:
        """Ask for packs of these partitions again, without any: of all."""
        self._pause(partitions, paused=False)

    def _pause(self, partitions: tuple[Any, ...], *, paused: bool) -> None:
        self._check_open()
        held = self._state.assignment
        for key in partitions:
            if not isinstance(key, str) or key not in held:
                raise ConfigError(
                    f"partition {shown(key)} is not assigned",
                    hint="give keys of assignment(), each as an argument: pause(*keys)",
                )
        self._state.pause(partitions or tuple(held), paused, self._core.pause)

    def _check_chooses(self) -> None:
        self._check_open()
        if is_rocketmq(self.config.target):
            raise no_choice()
        if self.config.balance != "client":
            raise LocalProtocolError(
                "the master chooses the partitions of this consumer",
                hint="open it with balance='client', members=N and node=0 to N-1",
            )
        if self._state.refusal is not None:
            raise refusal_error(self._state.refusal, self.config.group)

    def _check_told(self, timeout: float, *, late: bool) -> None:
        """Raise what ends the wait for the partitions that there are."""
        self._check_ready(timeout, late=late and not self._state.member.is_set())
        if late:
            raise TransportError(
                f"no master of {self.config.target} has said within {timeout:g} s which partitions there are",
                code="NO_MASTER",
                hint="look at stats().trouble",
            )

    def _ask_assign(self, partitions: Any) -> Asked[Reply]:
        """Begin to hold what was chosen.  Raises ConfigError."""
        return self._driver.assign(starts_of(partitions))

    def _assigned(self, reply: Reply) -> None:
        """Raise the problem of a choice."""
        if reply.problem == "missing":
            raise ConfigError(
                f"there is no partition {', '.join(map(repr, reply.keys[:_NAMED]))} of these topics now",
                code="NO_PARTITION",
                hint="give keys of available()",
                details={"partitions": list(reply.keys)},
            )
        if reply.problem:
            self._check_open()
            raise ClosedError("the consumer is closed", hint="open a new one to continue")

    def _ask_seek(self, partition: Any, offset: Any) -> Asked[Reply]:
        """Begin a seek.  Raises ConfigError, ClosedError, ForkedError."""
        self._check_open()
        if not isinstance(partition, str) or partition not in self._state.assignment:
            raise ConfigError(f"partition {shown(partition)} is not assigned", hint="give a key of assignment()")
        return self._driver.seek(partition, place_of(offset, self._driver.offset_unit))

    def _sought(self, partition: str, offset: Any, reply: Reply) -> int:
        """Return where a seek has led to, or raise its problem."""
        if reply.problem == "gone":
            self._check_open()
            raise ClosedError("the consumer is closed", hint="open a new one to continue")
        if reply.problem:
            raise seek_error(partition, offset, reply)
        return reply.offset

    # --- life

    def stats(self) -> ConsumerStats:
        """Return what was counted until now; packs and messages are of one moment."""
        return make_stats(
            "closed" if self._closed else self._driver.stage, self.client, self._core.tally(),
            self.lag(), self._driver.trouble,
        )  # fmt: skip

    def _check_ready(self, timeout: float, *, late: bool) -> None:
        """Raise what ends the wait for the group."""
        self._check_open()
        if self._state.refusal is not None:
            raise refusal_error(self._state.refusal, self.config.group)
        if late:
            said, server = self._driver.trouble, self._driver.server
            raise TransportError(
                f"no {server} of {self.config.target} took this consumer within {timeout:g} s"
                f"{f': {said}' if said else ''}",
                code="NO_MASTER",
                hint=f"check the addresses, and that the {server} runs",
            )

    def _check_open(self) -> None:
        self._core.check_own()
        if self._state.error is not None and not self._closed:
            raise DataProxyError(
                f"the consumer has stopped, because it met an error of its own: {self._state.error!r}",
                fatal=True,
                hint="the log has where; close it, and open a new one",
            ) from self._state.error
        if self._closed or self._state.ended.is_set():
            if threading.current_thread().daemon and not is_ours():
                ending.wait_end()  # so most daemon threads are gone before they print a traceback
            raise ClosedError("the consumer is closed", hint="open a new one to continue")

    @property
    def _close_timeout(self) -> float:
        return self.config.close_timeout

    def _begin_close(self) -> None:
        self._closed = True
        self._driver.close()

    def _close_now(self, limit: float) -> None:
        """Close, and block the calling thread until that is done, or the time is over."""
        self._begin_close()
        until = time.monotonic() + limit
        try:
            while not self._state.ended.wait(_SHORT_S) and time.monotonic() < until:
                pass
        finally:
            self._finish_close()
        until = max(until, time.monotonic() + _GRACE_S)
        raised = [join(one, until - time.monotonic()) for one in self._threads if one is not threading.current_thread()]
        for error in filter(None, raised):  # of a handler of a signal
            raise error

    def _finish_close(self) -> None:
        """End the threads, whether the servers have answered or not."""
        if not self._state.ended.is_set():
            _LOG.warning("a consumer was closed before its servers had answered: they will miss its heartbeats")
        self._driver.abandon()
        if self._trust is not None:
            self._trust.stop()
        ending.unregister(self)

    def __reduce__(self) -> Any:
        raise TypeError(
            f"a {type(self).__name__} owns threads and sockets and cannot be copied or pickled, but its config can"
        )

    def __del__(self) -> None:
        if not self._closed and not self._core.inherited:
            text = f"{self!r} was not closed; it is closed now"
            self._begin_close()  # first: the warning may be an error
            warnings.warn(text, ResourceWarning, source=self, stacklevel=2)
