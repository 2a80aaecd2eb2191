"""Open loop: each message is sent when the plan makes it due, whatever became of those before it.

If a thread is late, it sends at once everything that is due.  It can be late for two reasons, which are counted apart.
Where a call had to wait for room in the producer's buffer, the target was slow.  The test is made to find this, so
messages that became due in the meantime count from their planned times.  All other lateness is the generator's own.
It has its own histogram, by which the report decides whether the run is valid.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.errno cimport errno
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, itimerspec

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.hdr cimport hdr_add, hdr_clear, hdr_close, hdr_merge, hdr_open
from dataproxy._core.pack.pack cimport (
    OUT_DELIVERED, OUT_DROPPED, OUT_EXPIRED, OUT_FAILED, OUT_SENT, PackResult, pack_result_release,
)
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_CLOSED, ST_FULL, ST_INVALID, ST_LIMIT, ST_OK
from dataproxy._core.producer.accumulate.batcher cimport (
    batcher_append, batcher_least, batcher_seal_all, batcher_seal_of,
)
from dataproxy._core.producer.accumulate.state cimport EX_NOTHING, NO_KEY, NO_TIME, Extras
from dataproxy._core.producer.results.accounting cimport (
    accounting_idle, accounting_turns, accounting_wait_result, accounting_wait_room,
)
from dataproxy._core.producer.results.delivery cimport BatchDelivery, Delivery
from dataproxy._core.producer.accumulate.keys cimport key_bucket
from dataproxy._core.producer.results.segments cimport Segment
from dataproxy._core.producer.ingest.stream cimport Stream
from dataproxy._core.producer.accumulate.streams cimport Stream as CStream
from dataproxy._core.perf.histogram cimport Histogram
from dataproxy._core.perf.pending cimport pending_close, pending_collect, pending_open, pending_put, tally_add
from dataproxy._core.perf.plan cimport plan_begin, plan_close, plan_next, plan_open, plan_piece, plan_total
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_store, relaxed_add, relaxed_load
from dataproxy._core.plat.clock cimport now_us, pause_us
from dataproxy._core.plat.socket cimport close as close_fd
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock
from dataproxy._core.plat.timerfd cimport (
    TFD_CLOEXEC, TFD_NONBLOCK, TFD_TIMER_ABSTIME, timerfd_create, timerfd_settime,
)

from dataproxy.errors import (
    BufferFullError, ClosedError, ConfigError, DeliveryDropped, DeliveryExpired, InvalidMessageError,
)

__all__ = ["Generator"]

cdef enum:
    SLICE_US = 50000            # the longest time between two checks for a request to stop
    LET_GO = 64                 # calls after which the GIL is released for a moment, for other threads


@cython.final
@cython.no_gc_clear             # the end of the results needs the producer
cdef class Generator:
    """Send one thread's share of a plan through a producer's streams.

    ``streams`` are handles of one producer, ``bodies`` the bodies (``bytes``), ``keys`` the messages' keys; each is
    used in turn.  ``pieces`` are tuples (seconds, rate at the beginning, rate at the end, messages at its first moment)
    of this thread's share; with ``poisson`` gaps are drawn from ``seed``, else they are equal and the first message is
    due ``phase`` of a gap after the start.  ``each`` messages are due together.  Raises ConfigError.
    """

    def __cinit__(self):
        self.alarm = -1
        if pending_open(&self.pending, &self.tally) != ST_OK or hdr_open(&self.lag) != ST_OK:
            raise MemoryError("no memory for a load generator")

    def __init__(
        self, streams, bodies, *, pieces, keys=None, bint poisson=False, object seed=0, double phase=0.0,
        int64_t each=1,
    ):
        cdef int i
        if self.core is not None:
            raise ConfigError("a generator can be set up only once")
        pieces = list(pieces)
        if not pieces or each < 1 or not 0.0 <= phase <= 1.0:
            raise ConfigError("a plan needs at least one piece, one message at a time, and a phase from 0 to 1")
        for seconds, begin, end, jump in pieces:
            if not (0.0 < seconds < 1e7 and 0.0 <= begin < 1e9 and 0.0 <= end < 1e9 and 0.0 <= jump < 1e9):
                raise ConfigError(
                    f"a plan has no piece of {seconds!r} s, {begin!r} to {end!r} a second, {jump!r} at once")
        self._fill(list(streams), list(bodies), list(keys or []))
        if plan_open(&self.plan, <int>len(pieces), poisson, <unsigned long long>(seed & 0xFFFFFFFFFFFFFFFF)) != ST_OK:
            raise MemoryError("no memory for a plan")
        for i, (seconds, begin, end, jump) in enumerate(pieces):
            plan_piece(&self.plan, i, seconds, begin / each, end / each, jump / each)
        plan_begin(&self.plan, phase)
        self.each = each
        self.planned = True

    def __dealloc__(self):
        if self.alarm >= 0:
            close_fd(self.alarm)
        plan_close(&self.plan)
        pending_close(&self.pending, &self.tally)
        hdr_close(&self.lag)
        free(self.targets)
        free(self.sources)
        free(self.buckets)

    cdef int _fill(self, list streams, list bodies, list keys) except -1:
        """Keep streams, bodies and keys; raises ConfigError, InvalidMessageError and MemoryError.  Locality: GIL."""
        cdef Stream stream
        cdef int i
        if not streams or not bodies:
            raise ConfigError("a generator needs a stream and a body at least")
        self.streams = streams
        self.bodies = bodies
        self.n_targets = <int>len(streams)
        self.n_bodies = len(bodies)
        self.n_buckets = <int>len(keys)
        self.targets = <CStream**>calloc(len(streams), sizeof(CStream*))
        self.sources = <Body*>calloc(len(bodies), sizeof(Body))
        self.buckets = <int*>calloc(len(keys) + 1, sizeof(int))
        if self.targets == NULL or self.sources == NULL or self.buckets == NULL:
            raise MemoryError("no memory for a load generator")
        for i, thing in enumerate(streams):
            stream = <Stream?>thing
            if i and stream.core is not self.core:
                raise ConfigError("all streams of a generator belong to one producer")
            self.core = stream.core
            self.targets[i] = stream.stream
        self.core.check_usable()
        for i, thing in enumerate(bodies):
            if type(thing) is not bytes or not thing:
                raise ConfigError(
                    f"bodies of a generator are bytes, not empty, and number {i} is {type(thing).__name__}")
            self.sources[i].p = <const uint8_t*>PyBytes_AS_STRING(thing)
            self.sources[i].n = <size_t>PyBytes_GET_SIZE(thing)
        for i, thing in enumerate(keys):
            self.buckets[i] = key_bucket(thing, self.core.key_buckets)
        return 0

    cdef int _check(self) except -1:
        """Raise ConfigError if a run cannot begin.  Locality: GIL."""
        if not self.planned or self.running:
            raise ConfigError("a generator runs only once, in one thread")
        self.core.check_usable()
        for stream in self.streams:
            if (<Stream>stream).generation != this_generation:
                raise ConfigError("a generator runs in the process in which its streams were made")
        self.running = True
        return 0

    # --- the clock

    cdef int64_t _wait_until(self, int64_t planned) noexcept nogil:
        """Wait for a moment, or for the request to stop; return the time.  Locality: the thread that runs."""
        cdef int64_t now = now_us()
        while now < planned and not atomic_load(&self.stopping):
            pause_us(<long>min(planned - now, <int64_t>SLICE_US))
            now = now_us()
        return now

    cdef bint _note_lag(self, int64_t planned, int64_t now) noexcept nogil:
        """Count how late an arrival is for reasons of the generator's own; False when the run is to stop.

        Locality: the thread that runs.  Locks: takes tally.lock.  If calls had to wait for room, the thread may be late
        by as much until it is on time again; lateness beyond that counts as the generator's own.
        """
        cdef int64_t behind = max(now - planned, 0)
        if atomic_load(&self.stopping):
            return False
        self.excused = min(self.excused, behind)
        pthread_mutex_lock(&self.tally.lock)
        hdr_add(&self.lag, behind - self.excused, self.each)
        pthread_mutex_unlock(&self.tally.lock)
        relaxed_add(&self.due, self.each)
        return True

    # --- messages without the interpreter

    cdef int _await_room(self, int64_t seen, int64_t deadline) noexcept nogil:
        """Wait for room as ``send_nowait`` does; CO_ON when there may be some.  Locality: the thread that runs."""
        cdef int64_t began = now_us(), now = began
        cdef bint changed = False
        while not changed and now < deadline and not atomic_load(&self.stopping):
            if accounting_idle(&self.core.engine.accounting):
                batcher_seal_all(&self.core.engine.batcher)
            changed = accounting_wait_room(&self.core.engine.accounting, seen, min(deadline, now + SLICE_US))
            now = now_us()
        self.excused += now - began
        relaxed_add(&self.blocked_us, now - began)
        return CO_ON if changed else CO_REFUSED

    cdef int _one(self, int64_t planned) noexcept nogil:
        """Send the next message; a Course.  Locality: the thread that runs.  Locks: takes batcher.lock."""
        cdef Body* body = &self.sources[self.number % self.n_bodies]
        cdef CStream* stream = self.targets[self.number % self.n_targets]
        cdef PackResult* pack_result = NULL
        cdef uint32_t index = 0
        cdef int64_t seen, deadline = 0
        cdef int status, course
        cdef Extras x
        x.when_ms = NO_TIME
        x.attrs = batcher_least(&self.core.engine.batcher)
        x.own_id = slice_of(NULL, 0)
        x.key_bucket = self.buckets[self.number % self.n_buckets] if self.n_buckets else NO_KEY
        x.exempt = EX_NOTHING
        x.owner = NULL
        self.number += 1
        while True:
            seen = accounting_turns(&self.core.engine.accounting)
            status = batcher_append(&self.core.engine.batcher, stream, body.p, body.n, &x, &pack_result, &index)
            if status == ST_OK:
                relaxed_add(&self.accepted, 1)
                if self.circles:
                    atomic_add(&pack_result.refs, 1)
                    self.last = pack_result
                if pending_put(&self.pending, pack_result, index, 1, planned) != ST_OK:
                    return CO_NO_MEMORY
                return CO_ON
            if status == ST_CLOSED:
                return CO_CLOSED
            if status == ST_LIMIT or status == ST_INVALID:
                return CO_TOO_LARGE
            if status != ST_FULL:
                return CO_NO_MEMORY
            if deadline == 0:
                deadline = now_us() + self.core.max_block_us
            course = self._await_room(seen, deadline) if self.core.blocks else CO_REFUSED
            if course != CO_ON:
                relaxed_add(&self.refused, 1)
                return course

    cdef int _drive(self) noexcept nogil:
        """Send all of the plan; a Course.  Locality: the thread that runs."""
        cdef int64_t due, planned, _i
        cdef int course
        while True:
            due = plan_next(&self.plan)
            if due < 0:
                return CO_ON
            planned = self.start_us + due
            if not self._note_lag(planned, self._wait_until(planned)):
                return CO_ON
            for _i in range(self.each):
                course = self._one(planned)
                if course > CO_REFUSED:
                    return course

    cdef int _circle(self, int64_t end) noexcept nogil:
        """Send a message whenever the one before has its result; a Course.  Locality: the thread that runs."""
        cdef PackResult* pack_result
        cdef int64_t now = now_us()
        cdef int course
        while now < end and not atomic_load(&self.stopping):
            relaxed_add(&self.due, 1)
            course = self._one(now)
            if course > CO_REFUSED:
                return course
            if course == CO_ON:
                pack_result = self.last
                batcher_seal_of(&self.core.engine.batcher, pack_result)
                while not accounting_wait_result(&self.core.engine.accounting, pack_result, now_us() + SLICE_US):
                    if atomic_load(&self.stopping):
                        break
                pack_result_release(pack_result)
            now = now_us()
        return CO_ON

    cdef int _raise_course(self, int course) except -1:
        """Raise what a call of ``send`` would have raised.  Locality: GIL."""
        if course == CO_CLOSED:
            raise ClosedError("the producer was closed while the load ran", hint="close it after run() has returned")
        if course == CO_TOO_LARGE:
            raise InvalidMessageError(
                "a body of the load is too large for a frame, or contains a line feed, which lines do not allow",
                hint="choose smaller bodies, or raise max_frame_bytes")
        if course == CO_NO_MEMORY:
            raise MemoryError("no memory for the load's messages")
        return 0

    def run(self, int64_t start_us):
        """Send the plan as ``send_nowait`` does, without the interpreter: no object is made for a message.

        ``start_us`` of ``time.monotonic_ns() // 1000`` is the moment that the plan counts from.  Returns when all was
        accepted or refused, or after ``stop``.  Thread: one of its own; the interpreter's lock is released.  Raises
        ClosedError, InvalidMessageError, MemoryError.
        """
        cdef int course
        self._check()
        self.start_us = start_us
        with nogil:
            course = self._drive()
        self._raise_course(course)

    def run_closed(self, int64_t start_us, int64_t end_us):
        """Send a message, wait for its result, send the next, until ``end_us``; a closed loop.  Else as ``run``."""
        cdef int course
        self._check()
        self.start_us = start_us
        self.circles = True
        with nogil:
            self._wait_until(start_us)
            course = self._circle(end_us)
        self._raise_course(course)

    # --- messages by calls of Python objects

    def run_calls(self, int64_t start_us, calls, arguments):
        """Send the plan by calls of Python objects: ``calls[k](arguments[k])`` in turn for each arrival.

        A call returns a Delivery, or a BatchDelivery of all messages of the arrival; both lists are used in turn.
        Waits as ``run``; the interpreter's lock is released only while nothing is due.  Raises what a call raises,
        except BufferFullError: then the arrival counts as refused.
        """
        cdef int64_t due, planned, waited, began, now
        cdef Py_ssize_t n_calls, n_arguments
        cdef bint going
        calls, arguments = list(calls), list(arguments)
        n_calls, n_arguments = len(calls), len(arguments)
        if not n_calls or not n_arguments:
            raise ConfigError("a generator needs a call and an argument at least")
        self._check()
        self.start_us = start_us
        while True:
            due = plan_next(&self.plan)
            if due < 0:
                return
            planned = start_us + due
            now = now_us()
            if now < planned or self.number % LET_GO == 0:
                with nogil:
                    now = self._wait_until(planned)
            going = self._note_lag(planned, now)
            if not going:
                return
            waited = self.core.waited_us
            began = now_us()
            try:
                self._keep_delivery(calls[self.number % n_calls](arguments[self.number % n_arguments]), planned)
            except BufferFullError:
                relaxed_add(&self.refused, self.each)
            waited = min(self.core.waited_us - waited, now_us() - began)
            self.excused += waited
            relaxed_add(&self.blocked_us, waited)
            self.number += 1

    cdef int _keep_delivery(self, object sent, int64_t planned) except -1:
        """Note the messages of a call.  Locality: GIL, the thread that runs."""
        cdef Delivery one
        cdef BatchDelivery batch
        cdef Segment* segment
        cdef int64_t i
        cdef int status = ST_OK
        if isinstance(sent, Delivery):
            one = <Delivery>sent
            if one.pack_result == NULL:
                raise ConfigError("a call returned a Delivery without a message")
            atomic_add(&one.pack_result.refs, 1)
            status = pending_put(&self.pending, one.pack_result, one.index, 1, planned)
            relaxed_add(&self.accepted, 1)
        elif isinstance(sent, BatchDelivery):
            batch = <BatchDelivery>sent
            for i in range(batch.segments.n):
                segment = &batch.segments.items[i]
                atomic_add(&segment.pack_result.refs, 1)
                if pending_put(&self.pending, segment.pack_result, segment.first, segment.count, planned) != ST_OK:
                    status = CO_NO_MEMORY
            relaxed_add(&self.accepted, batch.segments.messages)
        else:
            raise ConfigError(f"a call returned {type(sent).__name__}, not a Delivery")
        if status != ST_OK:
            raise MemoryError("no memory for the load's messages")
        return 0

    # --- messages of an event loop's tasks

    def begin_in_loop(self, int64_t start_us):
        """Begin a run in which an event loop asks for the messages that are due; return a descriptor for the loop.

        It is readable when the next arrival is due, as exactly as the kernel's timers; those of event loops count
        only milliseconds.  The generator closes it.  Thread: the loop's, for all calls of this part.  Raises OSError.
        """
        if self.each != 1:
            raise ConfigError("tasks of an event loop send single messages", hint="make the generator with each=1")
        self._check()
        self.start_us = start_us
        self.alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)
        if self.alarm < 0:
            raise OSError(errno, "cannot make the timer of a load generator")
        self.ahead = plan_next(&self.plan)
        self._set_alarm(start_us + self.ahead)
        return self.alarm

    cdef int _set_alarm(self, int64_t at_us) except -1:
        """Make the descriptor readable at ``at_us``, or after 50 ms if that is earlier, to check for ``stop``."""
        cdef itimerspec when
        memset(&when, 0, sizeof(when))
        at_us = max(min(at_us, now_us() + SLICE_US), 1)     # 0 would turn it off
        when.it_value.tv_sec = at_us // 1000000
        when.it_value.tv_nsec = at_us % 1000000 * 1000
        if timerfd_settime(self.alarm, TFD_TIMER_ABSTIME, &when, NULL) != 0:
            raise OSError(errno, "cannot set the timer of a load generator")
        return 0

    def take_due(self, int64_t most):
        """Return the planned moments (us) of arrivals that are due, the first ``most``; None when there are no more.

        Sets the time at which the descriptor becomes readable again.
        """
        cdef int64_t now = now_us()
        cdef list out = []
        if atomic_load(&self.stopping):
            return None
        while self.ahead >= 0 and self.start_us + self.ahead <= now and len(out) < most:
            out.append(self.start_us + self.ahead)
            self.ahead = plan_next(&self.plan)
        if not out and self.ahead < 0:
            return None
        self._set_alarm(self.start_us + max(self.ahead, 0))
        return out

    def begin_message(self, int64_t planned_us):
        """Count a message as due right before the call that sends it, and how late that is; False after ``stop``."""
        return self._note_lag(planned_us, now_us())

    def end_message(self, int64_t planned_us, error=None):
        """Count a message by the error that its await raised, and the time (us) from its planned moment until now.

        Without an error it was delivered; with BufferFullError it was refused and has no latency.
        """
        cdef int outcome = OUT_DELIVERED
        if isinstance(error, BufferFullError):
            relaxed_add(&self.refused, 1)
            return
        if error is not None:
            outcome = (OUT_DROPPED if isinstance(error, DeliveryDropped) else
                       OUT_EXPIRED if isinstance(error, DeliveryExpired) else OUT_FAILED)
        relaxed_add(&self.accepted, 1)
        tally_add(&self.tally, outcome, now_us() - planned_us, outcome != OUT_DROPPED)

    # --- calls for any thread

    def stop(self):
        """End the run before its next message.  Any thread."""
        atomic_store(&self.stopping, 1)

    def collect(self):
        """Count the results since the last call.  One thread at a time; releases the GIL.  Raises MemoryError."""
        cdef int status
        with nogil:
            status = pending_collect(&self.pending, &self.tally)
        if status != ST_OK:
            raise MemoryError("no memory for the load's messages")

    def take_recent(self, Histogram into not None):
        """Add the latencies (us) that were counted since the last call.  Any thread.  Locks: takes tally.lock."""
        pthread_mutex_lock(&self.tally.lock)
        hdr_merge(&into.hdr, &self.tally.recent)
        hdr_clear(&self.tally.recent)
        pthread_mutex_unlock(&self.tally.lock)

    def add_latencies(self, Histogram into not None):
        """Add the latencies (us), from plan to result, of all results.  Any thread.  Locks: takes tally.lock."""
        pthread_mutex_lock(&self.tally.lock)
        hdr_merge(&into.hdr, &self.tally.whole)
        pthread_mutex_unlock(&self.tally.lock)

    def add_lags(self, Histogram into not None):
        """Add how late (us) messages were for reasons of the generator's own.  Any thread.  Locks: takes tally.lock."""
        pthread_mutex_lock(&self.tally.lock)
        hdr_merge(&into.hdr, &self.lag)
        pthread_mutex_unlock(&self.tally.lock)

    def counts(self):
        """Return counts of messages by result, and ``blocked``: seconds of waiting for room.  Any thread."""
        cdef int64_t delivered, sent, failed, expired, dropped
        pthread_mutex_lock(&self.tally.lock)
        delivered = self.tally.outcomes[<int>OUT_DELIVERED]
        sent = self.tally.outcomes[<int>OUT_SENT]
        failed = self.tally.outcomes[<int>OUT_FAILED]
        expired = self.tally.outcomes[<int>OUT_EXPIRED]
        dropped = self.tally.outcomes[<int>OUT_DROPPED]
        pthread_mutex_unlock(&self.tally.lock)
        return {
            "due": relaxed_load(&self.due), "accepted": relaxed_load(&self.accepted),
            "refused": relaxed_load(&self.refused), "delivered": delivered, "sent": sent,
            "failed": failed, "expired": expired, "dropped": dropped, "blocked": relaxed_load(&self.blocked_us) / 1e6,
        }

    @property
    def total(self):
        """Return how many messages the plan has, by its rates."""
        return plan_total(&self.plan) * self.each if self.planned else 0.0
