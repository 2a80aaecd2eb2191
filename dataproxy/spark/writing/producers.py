"""The producers of this worker process: made at the first write, reused by later tasks, dropped after errors."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy.errors import DataProxyError, FlushTimeout
from dataproxy.logs import logger
from dataproxy.producer.producer import Producer
from dataproxy.producer.stats import shared_counts
from dataproxy.spark.planning.following import asking, first_question
from dataproxy.spark.planning.target import unreachable
from dataproxy.spark.reporting.latency import Steps, since
from dataproxy.spark.writing.attrcolumn import escape_column
from dataproxy.spark.writing.givenids import own_ids

if TYPE_CHECKING:
    import pyarrow as pa

    from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
    from dataproxy._core.producer.ingest.columnar.rowkeys import RowKeys
    from dataproxy.spark.planning.columns import ColumnPlan
    from dataproxy.spark.planning.options import SinkOptions

__all__ = ["PRODUCERS", "Accounting", "ProducerPool", "TaskProducer"]

_log = logger("spark.producers")

_KEPT: Final = 4  # producers that stay open; jobs of one application seldom use more targets or options
_LOOK: Final = 0.1  # seconds between two checks for a lost message
_GRACE: Final = 0.3  # seconds that other messages get for their answers once a message is lost
_PROBE: Final = 0.25  # seconds to find out which proxies accept connections
_NAMED: Final = 8  # proxies that an error names
_SLACK: Final = 5.0  # seconds that a flush may take beyond delivery_timeout, which bounds every result
_ABANDON: Final = 0.2  # seconds that a producer gets to close after an error; its rows are sent again anyway


@dataclass(frozen=True, slots=True)
class Accounting:
    """Counts of the messages of one lease by result; `retries` counts frames.

    `sent` counts messages that were written with ``ack="none"``. `copies_possible` counts messages of frames that
    were sent again although an earlier attempt may be stored, `duplicates_filtered` those that a server did not
    store because it had them, and `conflicts` those whose id it knew with another body. `remembered` is for how
    many seconds every server that was used remembers stored messages; None if one did not say it.
    """

    accepted: int = 0
    delivered: int = 0
    failed: int = 0
    expired: int = 0
    dropped: int = 0
    pending: int = 0
    delivered_bytes: int = 0
    retries: int = 0
    copies_possible: int = 0
    duplicates_filtered: int = 0
    conflicts: int = 0
    remembered: int | None = None
    maybe_delivered: int = 0
    errors: dict[str | int, int] = field(default_factory=dict)
    sent: int = 0


def _lost(accounting: Accounting) -> int:
    """Return how many messages ended without an acknowledgement."""
    return accounting.failed + accounting.expired + accounting.dropped


class TaskProducer:
    """One producer with the accounting of the task that uses it.

    Thread rule: the worker's one task thread.
    """

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        config = options.config()
        self._group_id = config.group_id or options.group_id
        self._stream_id = options.stream_id
        self._exact_time = config.exact_time
        self._escapes = config.attribute_escape == "percent"
        self._patience = config.delivery_timeout + _SLACK
        self._producer = Producer(config=config)  # with the driver's proxies: this asks no Manager
        manager = asking(options.proxies, config)
        if manager is not None:
            self._producer._follow(manager, first_question(config.discovery_interval, options.proxies.age()))
        self._before = Accounting()
        self._steps_before: dict[int, int] = {}
        self._frames_before = (0, 0)
        self._reach: int | None = None
        self.begin()

    def begin(self) -> None:
        """Start the accounting of a task."""
        self._before = self._counted()
        self._steps_before = self._producer._latency_steps()
        self._frames_before = self._frames()
        self._producer._take_reach()
        self._reach = None

    def send(
        self,
        batch: pa.RecordBatch,
        columns: ColumnPlan,
        ids: bytes | RowKeys | None = None,
        first_row: int = 0,
        *,
        encoder: BodyEncoder | None = None,
        refused: list[tuple[int, str, str]] | None = None,
    ) -> tuple[int, int]:
        """Hand over all rows of a batch in one native call; return rows skipped by policy, and bytes of bodies.

        ``ids`` makes an id for each row: from columns, or, if it is a prefix, from the row's number, counted from
        ``first_row``, and the content of its block; then batches come from `whole_blocks`.  With ``encoder`` bodies are
        made from columns.  With ``refused`` rows that cannot be sent are left out and added to it.  Blocks while the
        buffer is full; once a message is lost, it stops waiting and takes no more rows.
        Raises InvalidMessageError (nothing of the batch was accepted) and BufferFullError.
        """
        marked: frozenset[int] | None = None
        if self._escapes and columns.attrs >= 0:
            batch, marked = escape_column(batch, columns.attrs)
        if columns.msg_id >= 0:
            batch = own_ids(batch, columns.msg_id)
        _, nulls, empties, size = send_record_batch(
            self._producer,
            batch,
            value=columns.value,
            encoder=encoder,
            group_id=columns.group_id,
            stream_id=columns.stream_id,
            dt=columns.dt,
            attrs=columns.attrs,
            marked=marked,
            message_id=columns.msg_id,
            key=columns.key,
            row_ids=ids,
            first_row=first_row,
            group=self._group_id,
            stream=self._stream_id,
            exact_time=self._exact_time and columns.dt >= 0,
            refused=refused,
            lost_before=_lost(self._before),
        )
        return nulls + empties, size

    def lost(self) -> bool:
        """Tell whether a message of this task has already failed."""
        return _lost(self._counted()) > _lost(self._before)

    def settle(self) -> Accounting:
        """Wait until every message has its result, or shortly after one is lost; return the accounting."""
        end = time.monotonic() + self._patience
        while not self.lost() and time.monotonic() < end:
            if self._flushed(_LOOK):
                return self.accounting()
        self._flushed(_GRACE)  # the accounting counts messages without a result
        return self.accounting()

    def servers(self) -> int:
        """Return how many proxies are known; each of them may have its own store."""
        return len(self._producer._known_endpoints())

    def proxies(self) -> str:
        """Return the proxies in words, with the reason for each that accepts no connection.  Blocks for 0.25 s."""
        endpoints = self._producer._known_endpoints()
        named = endpoints[:_NAMED]
        failures = unreachable(named, _PROBE, _PROBE)
        words = [f"{endpoint} ({failures.get(endpoint, 'takes connections')})" for endpoint in named]
        more = len(endpoints) - len(named)
        return ", ".join(words) + (f" and {more} more" if more else "")

    def _flushed(self, seconds: float) -> bool:
        """Flush; tell whether each message has its result within `seconds`."""
        try:
            self._producer.flush(timeout=seconds)
        except FlushTimeout:
            return False
        return True

    def accounting(self) -> Accounting:
        """Return the accounting of this task as it stands."""
        now, before = self._counted(), self._before
        errors = {code: count - before.errors.get(code, 0) for code, count in now.errors.items()}
        return Accounting(
            accepted=now.accepted - before.accepted,
            delivered=now.delivered - before.delivered,
            sent=now.sent - before.sent,
            failed=now.failed - before.failed,
            expired=now.expired - before.expired,
            dropped=now.dropped - before.dropped,
            pending=now.pending,
            delivered_bytes=now.delivered_bytes - before.delivered_bytes,
            retries=now.retries - before.retries,
            copies_possible=now.copies_possible - before.copies_possible,
            duplicates_filtered=now.duplicates_filtered - before.duplicates_filtered,
            conflicts=now.conflicts - before.conflicts,
            remembered=self._remembered(),
            maybe_delivered=now.maybe_delivered - before.maybe_delivered,
            errors={code: count for code, count in errors.items() if count},
        )

    def _frames(self) -> tuple[int, int]:
        """Return the frames with a result, and the successes that said how long the server remembers messages."""
        counts = self._producer._counts()
        return counts["settled_frames"], counts["filtered_frames"]

    def _remembered(self) -> int | None:
        """Return the shortest time in s for which a server of this task remembers messages, None if one did not say."""
        heard = self._producer._take_reach()
        if heard is not None:
            self._reach = heard if self._reach is None else min(heard, self._reach)
        settled, filtered = (now - before for now, before in zip(self._frames(), self._frames_before, strict=True))
        return self._reach if filtered >= settled else None

    def latencies(self) -> Steps:
        """Return how long this task's messages waited for their acknowledgements."""
        return since(self._producer._latency_steps(), self._steps_before)

    def close(self) -> None:
        """Close the producer without waiting for pending messages; the partition is written again anyway."""
        try:
            self._producer.close(timeout=_ABANDON)
        except DataProxyError as error:
            _log.debug("a producer was abandoned: %s", error)

    def _counted(self) -> Accounting:
        counts = self._producer._counts()
        return Accounting(
            **shared_counts(counts),
            copies_possible=counts["copies_possible"],
            maybe_delivered=counts["maybe_delivered"],
        )


class ProducerPool:
    """The open producers of one process, the most recently used last.

    Thread rule: the worker's one task thread.  A process made by ``fork`` starts with an empty pool.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._open: OrderedDict[SinkOptions, TaskProducer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def lease(self, options: SinkOptions) -> TaskProducer:
        """Return the producer for these options with fresh accounting, making it if there is none.

        Raises what making a producer raises.
        """
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._open = OrderedDict()
        producer = self._open.pop(options, None)
        if producer is None:
            while len(self._open) >= _KEPT:
                self._open.popitem(last=False)[1].close()
            producer = TaskProducer(options)
        else:
            producer.begin()
        self._open[options] = producer
        return producer

    def drop(self, producer: TaskProducer) -> None:
        """Give up a producer after an error, so that the next task starts with a new one."""
        if self._open.get(producer.options) is producer:
            del self._open[producer.options]
        producer.close()


PRODUCERS: Final = ProducerPool()
"""The producers of this process."""
