"""Messages that were not delivered, one at a time and only when asked for.

Locality: GIL.  Locks: UndeliveredBuffer.lock for each pack; batcher.lock when a stream is freed.
"""

cimport cython
from libc.stdint cimport uint32_t

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.results.fields cimport fields_at
from dataproxy._core.producer.handle cimport CoreHandle, check_own
from dataproxy._core.producer.results.undelivered cimport (
    UndeliveredPack, undelivered_pack_next, undelivered_pack_open, undelivered_missed, undelivered_put_back,
    undelivered_spent, undelivered_take,
)
from dataproxy._core.producer.accumulate.batcher cimport batcher_mark
from dataproxy._core.producer.accumulate.streamlife cimport streams_leave, streams_tidy
from dataproxy._core.producer.accumulate.streams cimport Stream as CStream

from dataproxy.outcomes import undelivered

__all__ = ["UndeliveredMessages"]


@cython.final
@cython.no_gc_clear
cdef class UndeliveredMessages:
    """Iterate over messages that were accepted and not delivered, in the order of their results.

    Each message is returned once.  Made by ``Producer.undelivered``.  If an iteration stops early, nothing is lost: the
    next one continues there.  Any thread, but one at a time.  Raises MemoryError.
    """

    cdef CoreHandle core
    cdef UndeliveredPack* current      # taken out of the store, not spent
    cdef uint32_t generation    # of the process that asked
    cdef bint empty             # what there is belongs to the parent of this process

    def __cinit__(self, CoreHandle core not None):
        self.core = core
        self.generation = this_generation
        self.empty = core._inherited

    def __dealloc__(self):
        cdef bint own = self.generation == this_generation and self.core is not None
        if self.current != NULL and own and self.core.engine != NULL:
            undelivered_put_back(&self.core.engine.undelivered, self.current)

    def __reduce__(self):
        raise TypeError("an iterator of a producer cannot be copied or pickled; send what it yields")

    def __iter__(self):
        return self

    cdef UndeliveredPack* next_pack(self) except? NULL:
        """Return the pack that the next message is in, readable, or NULL when there is none.  Locality: GIL.

        Raises MemoryError when there is no memory to unpack it; the next call tries again.  A pack that cannot be
        unpacked is released, and its messages are counted as not kept.
        """
        cdef UndeliveredPack* x
        cdef int status
        while True:
            if self.current == NULL:
                self.current = undelivered_take(&self.core.engine.undelivered)
            x = self.current
            if x == NULL or not x.compressed:
                return x
            with nogil:
                status = undelivered_pack_open(x)
            if status == ST_NO_MEMORY:
                raise MemoryError("no memory to unpack undelivered messages")
            if status != ST_OK:
                self.spent(x)

    cdef int spent(self, UndeliveredPack* x) except -1:
        """Release a pack; messages that were not read from it are counted as not kept.  Locality: GIL."""
        cdef CStream* stream = x.stream
        self.current = NULL
        if x.index < x.count:
            undelivered_missed(&self.core.engine.undelivered, x.count - x.index)
        undelivered_spent(&self.core.engine.undelivered, x)
        streams_leave(&self.core.engine.batcher, stream)
        streams_tidy(&self.core.engine.batcher)
        return 0

    def __next__(self):
        cdef UndeliveredPack* x
        cdef Slice body, attrs
        check_own(self, self.generation)
        if self.empty:
            raise StopIteration
        while True:
            x = self.next_pack()
            if x == NULL:
                raise StopIteration
            if undelivered_pack_next(x, &body, &attrs):
                break
            self.spent(x)
        fields = fields_at(x.pack_result, x.index - 1)
        out = undelivered(
            (<const char*>x.stream.group.p)[:x.stream.group.n].decode(),
            (<const char*>x.stream.stream.p)[:x.stream.stream.n].decode(),
            (<const char*>x.stream.attrs.p)[:x.stream.attrs.n].decode() if x.stream.attrs.n else "",
            (<const char*>attrs.p)[:attrs.n].decode() if attrs.n else "",
            x.data_time_ms, body.p[:body.n], x.index - 1, fields,
            (<bytes>batcher_mark(&self.core.engine.batcher)).decode())
        if x.index == x.count:
            self.spent(x)
        return out
