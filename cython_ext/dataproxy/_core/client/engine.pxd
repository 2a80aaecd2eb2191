"""Engine: executors, batcher, books and completions of one producer, tied together."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.base.clock cimport Clock
from dataproxy._core.base.pack cimport PackList, PackPool
from dataproxy._core.client.batcher cimport Batcher
from dataproxy._core.client.books cimport Books
from dataproxy._core.client.completions cimport Completions
from dataproxy._core.client.leftovers cimport Leftovers
from dataproxy._core.io.executor cimport Executor
from dataproxy._core.io.framing cimport FrameRules
from dataproxy._core.io.link cimport LinkConfig


ctypedef struct Engine:
    const Clock* clock
    PackPool spares
    Batcher batcher
    Books books
    Completions completions
    Leftovers leftovers
    Executor** executors
    int n_executors
    uint32_t generation     # of the process that opened it; constant


cdef int engine_open(
    Engine* g, int executors, const LinkConfig* links, const FrameRules* rules, bint nagle,
) noexcept nogil
cdef void engine_abandon_open(Engine* g) noexcept nogil
cdef void engine_retire(Engine* g) noexcept nogil
cdef void engine_free(Engine* g) noexcept nogil
