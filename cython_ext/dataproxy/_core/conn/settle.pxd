"""Final results: the only place where a pack leaves a link pool."""

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.conn.connection cimport LinkPool


cdef void detach(LinkPool* pool, Pack* p) noexcept nogil
cdef void settle_delivered(LinkPool* pool, Pack* p) noexcept nogil
cdef void settle_failed(LinkPool* pool, Pack* p, int outcome, int code) noexcept nogil
cdef void settle_split(LinkPool* pool, Pack* p) noexcept nogil
cdef void settle_dropped(LinkPool* pool, Pack* p) noexcept nogil
