"""Messages that were not delivered, one at a time and only when asked for."""

cimport cython
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memchr

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.client.facts cimport verdict_facts
from dataproxy._core.client.handle cimport CoreHandle, check_own
from dataproxy._core.client.leftovers cimport (
    Leftover, leftover_open, leftovers_put_back, leftovers_spent, leftovers_take,
)
from dataproxy._core.plat.endian cimport load_be32
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_LINES

from dataproxy.outcomes import undelivered

__all__ = ["UndeliveredMessages"]


cdef tuple _next_item(Leftover* x):
    """Return (body, attribute text) of the next message and move past it.  Locality: GIL."""
    cdef const uint8_t* p = x.buf + x.at
    cdef const uint8_t* end
    cdef size_t left = x.end - x.at, n, m = 0
    if x.items == ITEM_LINES:
        end = <const uint8_t*>memchr(p, 10, left)
        n = <size_t>(end - p) if end != NULL else left
        body = p[:n]
        x.at += min(left, n + 1)
        attrs = b""
    else:
        n = load_be32(p)
        body = p[4:4 + n]
        attrs = b""
        if x.items == ITEM_ATTRS:
            m = load_be32(p + 4 + n)
            attrs = p[8 + n:8 + n + m]
            n += 4 + m
        x.at += 4 + n
    x.index += 1
    return body, attrs


@cython.final
@cython.no_gc_clear
cdef class UndeliveredMessages:
    """Iterate over messages that were accepted and not delivered, oldest first; each is handed out once.

    Made by ``Producer.undelivered``.  An iteration that is given up loses nothing: the next one goes on there.
    Any thread, but one at a time.
    """

    cdef CoreHandle core
    cdef Leftover* current      # taken out of the store, not spent
    cdef uint32_t generation    # of the process that asked
    cdef bint empty             # what there is belongs to the parent of this process

    def __cinit__(self, CoreHandle core not None):
        self.core = core
        self.generation = this_generation
        self.empty = core.inherited

    def __dealloc__(self):
        cdef bint own = self.generation == this_generation and self.core is not None
        if self.current != NULL and own and self.core.engine != NULL:
            leftovers_put_back(&self.core.engine.leftovers, self.current)

    def __iter__(self):
        return self

    def __next__(self):
        cdef Leftover* x = self.current
        cdef int status
        check_own(self, self.generation)
        if self.empty:
            raise StopIteration
        if x == NULL:
            x = leftovers_take(&self.core.engine.leftovers)
            if x == NULL:
                raise StopIteration
            self.current = x
            with nogil:
                status = leftover_open(x)
            if status != ST_OK:
                raise MemoryError("no memory to unpack what was not delivered")
        facts = verdict_facts(x.verdict)
        index = x.index
        body, attrs = _next_item(x)
        out = undelivered(
            (<const char*>x.stream.group.p)[:x.stream.group.n].decode(),
            (<const char*>x.stream.stream.p)[:x.stream.stream.n].decode(),
            (<const char*>x.stream.attrs.p)[:x.stream.attrs.n].decode() if x.stream.attrs.n else "",
            attrs.decode(), x.data_time_ms, body, index, facts)
        if x.index == x.count:
            self.current = NULL
            leftovers_spent(&self.core.engine.leftovers, x)
        return out
