"""Deliveries read the result of their pack; when the ack comes, no work is done for single messages.

Locality: GIL, any thread; released while a call waits.  Locks: waits take batcher.lock, then accounting.lock.
"""

cimport cython
from cpython.object cimport PyTypeObject
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport buf_free, buf_init, buf_put, buf_put_u8
from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.made cimport BY_CORE, CORE_ARGS
from dataproxy._core.pack.pack cimport OUT_DELIVERED, OUT_SENT, PackResult, pack_result_release
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.results.segments cimport Segment, segments_free
from dataproxy._core.producer.accumulate.batcher cimport batcher_seal_of
from dataproxy._core.producer.results.accounting cimport accounting_wait_result
from dataproxy._core.producer.results.fields cimport ended_well, fields_at, same_result
from dataproxy._core.producer.handle cimport CoreHandle, check_own, microseconds
from dataproxy._core.producer.results.outcomes cimport fields_once, new_success
from dataproxy._core.producer.ingest.rows cimport Rows, rows_get
from dataproxy._core.producer.results.callbacks cimport check_callback, watch_done
from dataproxy._core.plat.atomic cimport atomic_load
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.pytype cimport make

from dataproxy.errors import DeliveryPending
from dataproxy.outcomes import BatchDelivered, Failure, delivery_error, message_id

__all__ = ["BatchDelivery", "Delivery"]

cdef enum:
    SLICE_US = 100000
    GRACE_US = 1000000      # a pack is settled at its delivery timeout at the latest; a wait ends this much later


cdef int keep_ids(const Rows* rows, int64_t start, int64_t end, Buf* out) noexcept nogil:
    """Note the ids of accepted rows from ``start`` to ``end``; ST_OK or ST_NO_MEMORY.

    Locality: any thread.
    Locks: none.
    """
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    cdef int64_t i
    for i in range(start, end):
        if not rows_get(rows, i, &p, &n) or n == 0:
            continue                # skipped by policy
        rows_get(rows.ids, i, &p, &n)
        if buf_put_u8(out, <uint8_t>n) != ST_OK or buf_put(out, p, n) != ST_OK:
            return ST_NO_MEMORY
    return ST_OK


cdef Delivery new_delivery(CoreHandle core, PackResult* pack_result, uint32_t index, object own_id):
    """Make a Delivery that takes over one reference to ``result``.  Locality: GIL."""
    cdef Delivery d = <Delivery>make(<PyTypeObject*>Delivery, CORE_ARGS)
    d.core = core
    d.pack_result = pack_result
    d.index = index
    d.own_id = own_id
    d.generation = this_generation
    return d


cdef object outcome_of(tuple fields, uint32_t index, object own_id):
    """Return the Delivered or Sent, or raise the DeliveryError, of a message in a pack with these fields.

    Locality: GIL.
    """
    if fields[0] != OUT_DELIVERED and fields[0] != OUT_SENT:
        raise delivery_error(fields, index, own_id)
    return new_success(fields, index, own_id)


cdef object _waiters = None


cdef object _waiter_module():
    """Return producer/aio/waiter, which imports asyncio; programs that never await do not import it."""
    global _waiters
    if _waiters is None:
        from dataproxy._core.producer.aio import waiter
        _waiters = waiter
    return _waiters


cdef int _wait(CoreHandle core, PackResult* v, int64_t deadline_us) except -1:
    """Wait for a result: 1 when it is final, 0 at the deadline.  GIL, released while waiting.

    A pack that somebody waits for is sealed at once: a program that waits for each message should not wait for linger.
    """
    cdef int64_t now
    cdef bint done, sealed = False
    while True:
        if atomic_load(&v.done):
            return 1
        now = now_us()
        if now >= deadline_us:
            return 0
        core.check_may_wait("a wait for a result")
        with nogil:
            if not sealed:
                batcher_seal_of(&core.engine.batcher, v)
                sealed = True
            done = accounting_wait_result(&core.engine.accounting, v, min(deadline_us, now + SLICE_US))
        core.look_for_signals()
        if done:
            return 1


cdef bint _all_done(const Segments* g) noexcept:
    cdef int64_t i
    for i in range(g.n):
        if not atomic_load(&g.items[i].pack_result.done):
            return False
    return True


cdef int64_t _deadline(CoreHandle core, object timeout) except -1:
    if timeout is None:
        return now_us() + core.delivery_us + GRACE_US
    return now_us() + microseconds(timeout)


@cython.final
@cython.freelist(256)
cdef class Delivery:
    """Future result of one accepted message; made by ``send``.

    It costs a reference to its pack and an index; one ack settles all Deliveries of a pack.  Any thread.
    """

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("Delivery objects are made by Producer.send")

    def __dealloc__(self):
        if self.pack_result != NULL:
            pack_result_release(self.pack_result)

    @property
    def id(self):
        """Return the message's id: the caller's ``message_id``, or an id that the producer made.

        It is known at once and is the same in all attempts, and consumers can read it.  Any thread.
        """
        return self.own_id if self.own_id is not None else message_id(self.pack_result.id.decode(), self.index)

    def done(self):
        """Return whether the result is final.  Never blocks; raises ForkedError in a forked child; any thread."""
        check_own(self, self.generation)
        return atomic_load(&self.pack_result.done) != 0

    def result(self, timeout=None):
        """Wait up to ``timeout`` seconds (None: until ``delivery_timeout`` has passed) and return a Delivered.

        With ``ack="none"`` it is a Sent, which has the same fields and says that no answer was asked for.

        Raises DeliveryFailed, DeliveryExpired, or DeliveryPending if the result is not known in time (the message is
        still in flight).  Raises ForkedError in a forked child.  Ctrl-C interrupts the wait.  Any thread.
        """
        check_own(self, self.generation)
        if timeout is not None:
            _deadline(self.core, timeout)       # a wrong timeout is refused also when no wait is needed
        if not atomic_load(&self.pack_result.done) and not _wait(
                self.core, self.pack_result, _deadline(self.core, timeout)):
            raise DeliveryPending(
                f"the message has no result after {timeout!r} s{self.core._trouble()}",
                hint="it is still in flight: ask again, or raise the timeout")
        return outcome_of(fields_once(self.core, self.pack_result, self.index), self.index, self.own_id)

    def exception(self, timeout=None):
        """Return the DeliveryError of a message that was not delivered, else None.

        It waits like ``result`` and raises DeliveryPending and ForkedError like ``result``.  Any thread.
        """
        check_own(self, self.generation)
        if not _wait(self.core, self.pack_result, _deadline(self.core, timeout)):
            raise DeliveryPending(f"the message has no result after {timeout!r} s{self.core._trouble()}")
        if ended_well(self.pack_result, self.index):
            return None
        return delivery_error(fields_at(self.pack_result, self.index), self.index, self.own_id)

    def __await__(self):
        """Wait in an event loop for what ``result`` returns or raises; any number of tasks of any loops may wait."""
        check_own(self, self.generation)
        return _waiter_module().await_delivery(self)

    def add_done_callback(self, callback):
        """Call ``callback(delivery)`` once, when the result is known.

        The callback runs on the dispatcher's thread, or at once in the calling thread if the result is already known
        (as in concurrent.futures).  Its exceptions are logged.  Raises ConfigError for an object that cannot be called,
        and ForkedError in a forked child.  Any thread.
        """
        check_callback(callback)
        check_own(self, self.generation)
        watch_done(self.core, self.pack_result, callback, self)

    def __reduce__(self):
        raise TypeError("a Delivery belongs to its producer and cannot be pickled; send what result() returns")

    def __repr__(self):
        state = "done" if atomic_load(&self.pack_result.done) else "pending"
        return f"<Delivery {self.pack_result.seq}:{self.index} {state}>"


@cython.final
cdef class BatchDelivery:
    """Future result of a batch; made by ``send_batch``, ``send_arrow`` and ``send_rows``.  Any thread."""

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("BatchDelivery objects are made by Producer.send_batch, send_arrow and send_rows")
        memset(&self.segments, 0, sizeof(self.segments))
        buf_init(&self.own_ids)
        self.refusals = ()
        self.generation = this_generation

    def __dealloc__(self):
        segments_free(&self.segments)
        buf_free(&self.own_ids)

    def __len__(self):
        """Return the number of messages that were accepted."""
        return self.segments.messages

    cdef str own_id(self, size_t* at):
        """Return the caller's id whose entry begins at ``at`` and move ``at`` to the next one; None without ids."""
        cdef size_t start = at[0] + 1
        if at[0] >= self.own_ids.n:
            return None
        at[0] = start + self.own_ids.p[at[0]]
        return (<const char*>self.own_ids.p)[start:at[0]].decode()

    def ids(self):
        """Return a list with the id of each accepted message, in order.  Any thread."""
        cdef int64_t i
        cdef uint32_t k
        cdef size_t at = 0
        cdef Segment* part
        out = []
        for i in range(self.segments.n):
            part = &self.segments.items[i]
            pack = part.pack_result.id.decode()
            for k in range(part.count):
                own = self.own_id(&at)
                out.append(own if own is not None else message_id(pack, part.first + k))
        return out

    def done(self):
        """Return whether every message has its final result.  Never blocks; raises ForkedError in a forked child."""
        check_own(self, self.generation)
        return _all_done(&self.segments)

    def result(self, timeout=None):
        """Wait for all and return a BatchDelivered: counts, and the failures by range of messages.

        Raises DeliveryPending if results are missing after ``timeout`` seconds (None: when ``delivery_timeout`` has
        passed), and ForkedError in a forked child.  It does not raise for messages that failed: look at ``.ok`` or
        ``.failures``.  Any thread.
        """
        cdef int64_t deadline = _deadline(self.core, timeout)
        cdef int64_t i, at = 0, good = 0, sent = 0
        cdef uint32_t _k, place, end, n
        cdef size_t id_at = 0
        cdef PackResult* v
        check_own(self, self.generation)
        failures = []
        if self.segments.n and deadline > now_us():     # the last pack may still be open: seal it before all waits
            batcher_seal_of(&self.core.engine.batcher, self.segments.items[self.segments.n - 1].pack_result)
        for i in range(self.segments.n):
            v = self.segments.items[i].pack_result
            if not _wait(self.core, v, deadline):
                raise DeliveryPending(
                    f"{self.segments.messages - at} of {self.segments.messages} messages have no result after "
                    f"{timeout!r} s{self.core._trouble()}",
                    hint="they are still in flight: ask again, or raise the timeout")
            place = self.segments.items[i].first
            end = place + self.segments.items[i].count
            while place < end:
                n = same_result(v, place, end - place)
                own = self.own_id(&id_at)
                if ended_well(v, place):
                    if v.outcome == OUT_SENT:
                        sent += n
                    else:
                        good += n
                else:
                    failures.append(Failure(at, n, delivery_error(fields_at(v, place), place, own)))
                if own is not None:
                    for _k in range(1, n):
                        id_at += 1 + self.own_ids.p[id_at]
                at += n
                place += n
        return BatchDelivered(at, good, self.skipped, tuple(failures), self.refused, self.refusals, sent)

    def __await__(self):
        """Wait in an event loop for what ``result`` returns; any number of tasks of any loops may wait."""
        check_own(self, self.generation)
        return _waiter_module().await_batch(self).__await__()

    def __reduce__(self):
        raise TypeError("a BatchDelivery belongs to its producer and cannot be pickled; send what result() returns")

    def __repr__(self):
        state = "done" if _all_done(&self.segments) else "pending"
        return f"<BatchDelivery of {self.segments.messages} messages {state}>"
