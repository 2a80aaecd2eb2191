"""Engine: executors, batcher, accounting and completions of one producer, tied together."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.base.clock cimport Clock
from dataproxy._core.pack.pack cimport PackList, PackPool
from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.results.accounting cimport Accounting
from dataproxy._core.producer.results.completions cimport Completions
from dataproxy._core.producer.results.undelivered cimport UndeliveredBuffer
from dataproxy._core.net.executor cimport Executor
from dataproxy._core.net.tlsholder cimport TlsHolder
from dataproxy._core.conn.framing cimport FrameRules
from dataproxy._core.conn.connection cimport ConnectionConfig
from dataproxy._core.wire.api cimport WireOps


ctypedef struct Engine:
    const Clock* clock
    PackPool spares
    Batcher batcher
    Accounting accounting
    Completions completions
    UndeliveredBuffer undelivered
    Executor** executors
    int n_executors
    uint32_t generation     # of the process that opened it; constant


cdef int engine_open(
    Engine* g, const WireOps* wire, int executors, const ConnectionConfig* connections, const FrameRules* rules,
    int64_t undelivered_bytes, bint nagle, int64_t busy_poll_us, TlsHolder* tls,
) noexcept nogil
cdef void engine_abandon_open(Engine* g) noexcept nogil
cdef void engine_retire(Engine* g) noexcept nogil
cdef void engine_free(Engine* g) noexcept nogil
