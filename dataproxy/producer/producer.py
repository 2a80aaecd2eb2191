"""Producer: configuration, threads, start and end around the compiled core."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from dataproxy._core.producer.ingest.stream import Stream
from dataproxy._core.producer.producer import ProducerCore
from dataproxy._core.producer.results.drain import UndeliveredMessages
from dataproxy.config import PRODUCER, ProducerConfig, conceal
from dataproxy.config.rules import LEAST_FRAME_BYTES, is_tubemq
from dataproxy.errors import ConfigError, FlushTimeout, ForkedError, InvalidMessageError, UndeliveredError
from dataproxy.lasterror import NOT_FOUND
from dataproxy.logs import logger
from dataproxy.numbers import CE_CONNECTED
from dataproxy.outcomes import DeliveryResult, Report
from dataproxy.problems import checked_serializer, seconds, shown
from dataproxy.process.threads import insist, is_ours, join, start_hearing, start_quiet
from dataproxy.producer import lifecycle
from dataproxy.producer.arguments import checked_config
from dataproxy.producer.discovery.clusters import Picture
from dataproxy.producer.discovery.credentials import ManagerAuth
from dataproxy.producer.discovery.proxies import ProxySource, node_number, order_seed, proxy_order
from dataproxy.producer.ingest.names import check_attrs, check_name, plain_attrs
from dataproxy.producer.kinds import Source, core_options, send_policy, source_of
from dataproxy.producer.readiness import Readiness
from dataproxy.producer.results.callbacks import CallbackPlace
from dataproxy.producer.results.dispatcher import Dispatcher
from dataproxy.producer.shares import shares
from dataproxy.producer.stats import ProducerStats, make_report, make_stats
from dataproxy.trust.files import proxy_trust
from dataproxy.types import Endpoint
from dataproxy.unmade import made_by_init

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor
    from datetime import timedelta
    from typing import Unpack

    from _typeshed import ReadableBuffer as Buffer

    from dataproxy._core.producer.results.delivery import BatchDelivery
    from dataproxy.config.typed import ProducerOptions
    from dataproxy.rows.options import RowFormat, RowOptions
    from dataproxy.trust.watched import Trust

__all__ = ["Producer", "tell_undelivered"]

_LOG = logger()

_JOIN_SECONDS = 5.0
_LONGEST = 1e6


class Producer(ProducerCore):
    """Send messages to InLong DataProxy and report the result of each.

    ``target``: ``tcp://host1:port1,host2:port2``, a list of ``host:port``, the URL of a Manager,
    ``http://manager:8083``, a file, or a name (docs/cluster.md).  ``group_id``: the InLong group of messages that do
    not name one.  ``on_delivery``: called once for each message with a DeliveryResult.  ``callback_on``: where
    callbacks run, an asyncio event loop or a ``concurrent.futures.Executor``; None for the dispatcher's own thread.
    ``config``: a complete configuration.
    Without it ``config_file``, ``DATAPROXY_*`` variables and keyword options make one (see CONFIGURATION.md).
    ``serializer``: a function that turns the objects given to ``send``, ``send_nowait`` and ``send_batch`` into bytes;
    it runs in the sending thread (large batches of an AsyncProducer: on a background thread).  ``manager_auth``: a
    function that returns the header ``authorization`` for the Manager, or a pair of a header's name and value; it is
    called for each question, on a background thread, within ``manager_timeout``.

    Raises ConfigError and DiscoveryError before anything is started.  All methods may be called from any
    thread.  Use it as a context manager: leaving the block delivers everything or raises UndeliveredError.
    """

    config: ProducerConfig = made_by_init()
    _callbacks: CallbackPlace = made_by_init()
    _final: Report | None = made_by_init()
    _serializer: Callable[[Any], Buffer] | None = made_by_init()
    _trust: Trust | None = made_by_init()
    _warns_when_left = True

    def __init__(
        self,
        target: str | list[str] | tuple[str, ...] | None = None,
        *,
        group_id: str | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
        callback_on: Executor | asyncio.AbstractEventLoop | None = None,
        config: ProducerConfig | None = None,
        config_file: str | Path | None = None,
        serializer: Callable[[Any], Buffer] | None = None,
        manager_auth: ManagerAuth | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        conceal(PRODUCER, cast("dict[str, Any]", options))
        self._serializer = checked_serializer(serializer)
        settled = checked_config(target, group_id, on_delivery, callback_on, config, config_file, options)
        self._trust = proxy_trust(settled)
        source = source_of(settled, self, auth=manager_auth)
        source.begin()
        made_of = core_options(settled, self._trust, source, report_all=on_delivery is not None)
        super().__init__(made_of, send_policy(settled))
        self.config = settled
        self._on_delivery = on_delivery
        self._final = None
        self._callback_on = callback_on
        self._begin(source)
        if settled.start == "connect":
            self._check_connects()

    def _check_connects(self) -> None:
        """Wait for the first connection.  Raises TransportError if there is none."""
        try:
            self.wait_ready()
        except BaseException:
            self.close(0)
            raise

    def _begin(self, source: Source) -> None:
        """Start the threads of a new engine; after an error, threads that were started are stopped again."""
        self._close_lock = threading.RLock()
        self._source = source
        self._order = order_seed()  # a forked child gets another seed than its parent
        self._threads: list[threading.Thread] = []
        self._readiness = Readiness()
        self._callbacks = CallbackPlace(self, self._callback_on)
        self._callback_failed = self._callbacks.failed
        self._makes_callbacks = None if self._callbacks.here else self._callbacks.is_here
        self._dispatcher = Dispatcher(self, self._on_delivery, self._callbacks)
        self._dispatch_thread: threading.Thread | None = None
        try:
            for group, number in source.groups.items():
                self._add_group(group, number)
            if source.picture.clusters:
                self._use_clusters(source.picture)
            if source.max_packet_length:
                self._limit_frames(source.max_packet_length)
            for i in range(self.config.executors):
                self._threads.append(start_quiet(f"dataproxy-exec-{i}", self._executor_loop(i)))
            self._dispatch_thread = start_hearing("dataproxy-dispatch", self._dispatcher.run)
            source.start()
            if self._trust is not None:
                self._trust.follow(start_quiet)
        except BaseException:
            insist(lambda: self._stop_threads(0.0))
            raise
        lifecycle.register(self)

    def begin_again(self) -> None:
        """Start anew in a forked child: empty, with threads and connections of this process.

        This happens automatically when an inherited producer or one of its streams is first used. A server may
        call it after its fork so that the connections are ready.  Any thread; a second call does nothing.  Raises what
        the start of threads raises, and can then be called again.
        """
        with lifecycle.beginning():
            if not self._inherited:
                return
            if self._callback_on is not None:
                raise ForkedError(
                    f"callback_on={self._callback_on!r} belongs to the process that this one was forked from",
                    hint="open a producer in the child process, with a loop or executor of its own",
                )
            source = source_of(self.config, self, inherited=self._source, auth=self._source.auth)
            running = False
            try:
                self._trust = None if self._trust is None else self._trust.again()
                self._open_again(None if self._trust is None else self._trust.contexts, source.sender)
                self._begin(source)
                running = True
            finally:
                self._adopt(running)

    def _use_clusters(self, picture: Picture) -> None:
        config = self.config
        clusters = [
            (
                cluster.number,
                [
                    (
                        e.label,
                        e.address,
                        e.port,
                        e.family,
                        e.other,
                        config.tls_server_name or e.host,
                        node_number(e.node),
                        *((cluster.layouts or {}).get(e.label, ())),
                    )
                    for e in proxy_order(cluster.proxies, self._order)
                ],
                shares(config, len(cluster.proxies)),
            )
            for cluster in picture.clusters
        ]
        self._set_clusters(clusters, picture.groups, picture.fixed, picture.admission)

    def _follow(self, config: ProducerConfig, first: float) -> None:
        """Ask the Manager in ``config`` from now on, in ``first`` seconds for the first time.  Raises nothing.

        The known proxies stay in use until the Manager has answered.
        """
        try:
            known = self._source if isinstance(self._source, ProxySource) else None
            source = ProxySource(config, self, inherited=known, alone=True)
            source.start(first)
        except (ConfigError, RuntimeError) as error:  # credentials that are not here, or no room for another thread
            _LOG.warning("the Manager's list is not refreshed, the known proxies stay in use: %s", error)
        else:
            self._source.stop()
            self._source = source

    def _known_endpoints(self) -> list[Endpoint]:
        """Return the proxies of the last list, each once."""
        return list(dict.fromkeys(Endpoint(one.host, one.port) for one in self._source.known))

    def _limit_frames(self, max_packet_length: int) -> None:
        """Use the Manager's limit for a frame, in bytes; 0: it has none."""
        size = self.config.max_frame_bytes
        if max_packet_length:
            size = min(size, max(max_packet_length, LEAST_FRAME_BYTES))
        self._set_frame_limit(size)

    def stream(
        self,
        stream_id: str,
        *,
        group_id: str | None = None,
        attrs: Mapping[str, str] | None = None,
        serializer: Callable[[Any], Buffer] | None = None,
    ) -> Stream:
        """Return a handle bound to one stream: the fastest way to send.

        ``attrs`` are attributes that all messages of the handle share; a frame holds them once.  ``serializer``
        takes the place of the producer's for this handle (``bytes`` where bodies are bytes).  Raises
        InvalidMessageError for names or attributes that are not allowed, ConfigError, ClosedError, ForkedError.
        """
        serializer = self._serializer if serializer is None else checked_serializer(serializer)
        if is_tubemq(self.config.target):
            return self._topic(stream_id, group_id, attrs, serializer)
        kind = self.config.message_type
        group = self.config.group_id if group_id is None else group_id
        if group == "":
            raise InvalidMessageError(
                f"stream {shown(stream_id)} has no group",
                code="BAD_NAME",
                hint="give group_id= here or to the producer",
            )
        group = check_name("group", group, message_type=kind)
        name = check_name("stream", stream_id, message_type=kind)
        ids = len(group.encode()) + len(name.encode())
        self._look_for(group)
        given = {} if attrs is None else plain_attrs(attrs)
        if given and self.config.protocol == "http":
            raise InvalidMessageError(
                "the HTTP report carries no attributes",
                code="BAD_ATTRIBUTE",
                hint="leave attrs out, or use protocol='tcp'",
            )
        text = check_attrs(given, ids_bytes=ids, message_type=kind)
        return self._bind_stream(group, name, text.encode(), frozenset(given), serializer)

    def _topic(
        self,
        name: str,
        group_id: str | None,
        attrs: Mapping[str, str] | None,
        serializer: Callable[[Any], Buffer] | None,
    ) -> Stream:
        """Return the handle of a topic of TubeMQ; raises as ``stream`` does."""
        from dataproxy.producer.tubemq.attributes import attribute_text, check_topic

        if group_id:
            raise InvalidMessageError(
                f"group_id {shown(group_id)} has no meaning in TubeMQ: a message goes to a topic",
                code="BAD_NAME",
                hint="leave group_id out; consumers choose their groups",
            )
        topic = check_topic(name)
        text = attribute_text(attrs) if attrs else ""
        self._look_for(topic)
        return self._bind_stream("", topic, text.encode(), frozenset(attrs or ()), serializer)

    def _look_for(self, group: str) -> None:
        """Ask for the cluster of a group, if that is how proxies are found and the group is new.  Any thread.

        Raises ConfigError, ClosedError, ForkedError.
        """
        if self._source.by_group:
            self._check_open()
            self._source.want(group, self._add_group)

    def _plain_stream(self, stream_id: str, group_id: str | None) -> Stream:
        """Return the handle of these names, also in a derived class that has a ``stream`` of its own."""
        return Producer.stream(self, stream_id, group_id=group_id)

    def send_rows(
        self,
        stream_id: str | None,
        table: Any,
        format: RowFormat = "json",  # noqa: A002 - as everywhere in the field
        **options: Unpack[RowOptions],
    ) -> BatchDelivery:
        """Accept each row of a table as one message and return their BatchDelivery.

        ``table`` is anything with Arrow's C interface: a DataFrame of Polars or pandas (2.2 or newer), a DuckDB
        relation, a pyarrow Table, RecordBatch or RecordBatchReader.  ``format`` is ``json``, ``csv`` or ``kv``.
        ``stream_id`` names the stream of all rows, with ``stream_column`` that of rows in which the column is null.

        Columns that route: ``stream_column``, ``group_column``, ``dt_column`` (timestamps with a time zone, or
        milliseconds), ``id_column``, ``key_column`` (texts), ``attrs_column`` (a map of texts, or names of columns).
        All others are the body, or those that ``body_columns`` names.  ``bad_records`` says what happens to a row
        that cannot be sent: ``fail``, ``skip``, or a folder for a file of such rows.  docs/tables.md has all options.

        If the bodies take 32 MiB or less, all rows are checked before the first is accepted; larger tables are
        accepted in pieces of that size, and ``details["accepted"]`` of an error is exact.  Raises InvalidMessageError
        naming row, column and value, ConfigError, BufferFullError, ClosedError, ForkedError.  Any thread.
        """
        from dataproxy.producer.ingest.tables import send_rows  # programs that do not use it do not load it

        return send_rows(self, stream_id, table, format, options)

    def flush(self, timeout: float | timedelta | None = None) -> Report:
        """Send everything now and wait until each message accepted so far has its final result.

        ``timeout`` in seconds or a timedelta, None for ``delivery_timeout`` and a second.  Returns the report:
        counts by outcome since the producer was opened.  Raises FlushTimeout (with the report) if the time was
        not enough; the messages are still in flight then.  Ctrl-C interrupts the wait.  Inside a callback of this
        producer it raises LocalProtocolError.
        """
        limit = self.config.delivery_timeout + 1.0 if timeout is None else seconds(timeout)
        self._refuse_inside_callback("flush")
        settled = self._wait_settled(limit)
        report = self.report()
        if not settled:
            raise FlushTimeout(
                f"{report.pending} messages have no result after {limit:g} s{self._trouble()}",
                report=report,
                hint="they are still in flight: flush again, or see stats() for the state of the proxies",
            )
        return report

    def wait_ready(self, timeout: float | timedelta | None = None) -> None:
        """Wait until a connection to a proxy is established.

        ``timeout`` in seconds or a timedelta, None for ``connect_timeout`` and a second.  Raises TransportError with
        code CONNECT_FAILED, which names the last error with host, port and reason; the producer goes on connecting,
        and the call can be repeated.  ClosedError, ForkedError; inside a callback of this producer LocalProtocolError.
        Any thread.
        """
        limit = self.config.connect_timeout + 1.0 if timeout is None else seconds(timeout)
        self._refuse_inside_callback("wait_ready")
        self._check_open()
        self._readiness.wait(self, min(limit, _LONGEST))

    def _trouble(self) -> str:
        """Return the last error as the end of a sentence; empty without one, or if the connection works again."""
        last = self.report().last_error
        return "" if last is None or last.connected else f"; the last error was {last}"

    def _not_found(self, text: str) -> None:
        """Note why no proxy is known; an empty text says that there are proxies now."""
        self._note_trouble(NOT_FOUND if text else CE_CONNECTED, text)
        if text:
            self._readiness.hear(NOT_FOUND)
            self._poke()

    def report(self) -> Report:
        """Return counts by outcome since the producer was opened; after close, the final ones."""
        if self._final is not None:
            return self._final
        return make_report(self._counts(), self._age())

    def stats(self) -> ProducerStats:
        """Return one consistent snapshot of the counts, the buffer, the latency and each connection."""
        return make_stats(self._counts(), self._connections(), self._age(), self._callbacks.errors)

    def undelivered(self) -> UndeliveredMessages:
        """Return an iterator over messages that were accepted and not delivered, in the order of their results.

        A message that was refused at once comes before one that was accepted earlier and expired later.
        Each message is returned once, with body, id, attempts and error, and its memory is then freed; a new
        iterator continues where the last one stopped.  At most ``undelivered_bytes`` are kept;
        ``report().not_kept`` counts the rest.  It works after ``close`` too.  Any thread.
        """
        return UndeliveredMessages(self)

    @property
    def _close_timeout(self) -> float:
        """Return the seconds that ``close`` takes at most to deliver."""
        return self.config.close_timeout

    @property
    def _warns_at_exit(self) -> bool:
        """Return whether the end of the process may say on stderr what was not delivered."""
        return self.config.warn_at_exit

    @property
    def _close_on(self) -> tuple[str, ...]:
        """Return the signals at which the producer is closed."""
        return self.config.close_on

    def close(self, timeout: float | timedelta | None = None) -> Report:
        """Deliver what was accepted, stop all threads, and return the final report.

        ``timeout`` in seconds or a timedelta, None for ``close_timeout``; messages without a result by then fail with
        code CLOSED and are counted in the report.  It also waits for callbacks on the dispatcher's thread, within the
        same time plus five seconds.  A second call returns the same report; one from inside a callback while
        another thread closes returns the report of that moment.  Ctrl-C ends the wait: pending messages fail with
        code CLOSED, the threads are stopped, and KeyboardInterrupt is raised; ``report()`` has the final
        counts.  In a forked child that has not used the producer it returns an empty report at once.  Any
        thread, also signal handlers and callbacks.
        """
        limit = self.config.close_timeout if timeout is None else seconds(timeout)
        if self._final is not None:
            return self._final
        if self._inherited:
            self._give_up()
            self._final = self.report()
            return self._final
        inside = threading.get_ident() in self._callers  # the thread that closes may wait for this callback
        if not self._close_lock.acquire(timeout=0 if inside else min(limit, _LONGEST) + 2 * _JOIN_SECONDS):
            return self.report()
        try:
            if self._final is None:
                self._shut(limit)
            return self.report()
        finally:
            self._close_lock.release()

    def _shut(self, timeout: float) -> None:
        deadline = time.monotonic() + min(timeout, _LONGEST)
        self._begin_close()
        try:
            self._wait_settled(timeout)  # the source goes on: messages may wait for the first list of proxies
        finally:
            insist(lambda: self._end_all(deadline - time.monotonic()))

    def _end_all(self, spare: float) -> BaseException | None:
        raised = self._stop_threads(spare)
        lifecycle.unregister(self)
        self._final = make_report(self._counts(), self._age())
        return raised

    def _stop_threads(self, spare: float) -> BaseException | None:
        """Fail pending messages and end the threads; return what a signal handler raised meanwhile.

        It may be called again.  Callbacks get ``spare`` seconds in addition to the time for joining the thread.
        """
        raised: BaseException | None = None
        dispatch = self._dispatch_thread
        self._source.stop()
        if self._trust is not None:
            self._trust.stop()
        self._begin_close()
        self._abandon_open()
        self._stop_executors()
        for thread in self._threads:
            raised = join(thread, _JOIN_SECONDS) or raised
        raised = self._source.leave() or raised
        self._callbacks.hurry()
        if dispatch is not None:
            self._dispatcher.keep(self)
        self._end_completions(not any(thread.is_alive() for thread in self._threads))
        if dispatch is not None and threading.current_thread() is not dispatch:
            raised = join(dispatch, max(0.0, spare) + _JOIN_SECONDS, heeds=True) or raised
            if dispatch.is_alive():
                _LOG.warning("the producer is closed while callbacks still run; they are slow, or many")
        return raised

    def _refuse_closed(self) -> None:
        """Raise ClosedError.  A daemon thread first waits for the end of a process that is ending.

        So most daemon threads are gone before they print a traceback; one that a handler of atexit joins ends normally.
        """
        _ = self.config  # raises for an object that was never made, which counts as closed
        if threading.current_thread().daemon and not is_ours():
            lifecycle.wait_end()
        super()._refuse_closed()

    def __del__(self) -> None:
        """Let the dispatcher close a producer that was not closed, and warn.

        The garbage collector calls this on any thread, in the middle of any code: it never waits, and takes no lock
        that the thread may hold.
        """
        if self.closed or self._inherited or sys.is_finalizing():
            return
        lifecycle.leave(self)
        self._dispatcher.leave(self)
        if self._warns_when_left:
            lifecycle.warn_left(self)

    def _close_left(self) -> None:
        """Close a producer that became garbage, and log what was not delivered.

        The garbage collector has ended the weak reference by which its source knew it, so it is given a new one:
        messages may wait for servers that are not known yet.
        """
        self._source.adopt(self)
        report = self.close()
        _LOG.warning(
            "a producer that was not closed was garbage-collected and closed in the background: %d of %d messages"
            " delivered; use 'with', or call close()",
            report.delivered + report.sent, report.accepted,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tell_undelivered(self.close(), error)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Producer owns threads and sockets and cannot be pickled: send its settings (producer.config, which can "
            "be pickled) and make Producer(config=...) in the other process"
        )

    def __repr__(self) -> str:
        if "config" not in vars(self):
            return f"<{type(self).__name__} not made>"
        state = "closed" if self.closed else "open"
        return f"<Producer {self.config.target!r} group {self.config.group_id!r} {state}>"


def tell_undelivered(report: Report, error: BaseException | None) -> None:
    """Raise UndeliveredError if messages were not delivered; with an error of the block, add a note to it instead."""
    if report.ok:
        return
    problem = UndeliveredError(report, hint="report.errors counts them by code, undelivered() returns them")
    if error is None:
        raise problem
    error.add_note(f"in addition, the producer has {problem}")
    _LOG.error("%s", problem)
