"""Statistics of an engine as Python values."""

from libc.stdint cimport int64_t

from dataproxy._core.producer.engine cimport Engine


cdef dict counts_dict(Engine* g)
cdef dict latency_steps(Engine* g)
cdef int64_t take_reach(Engine* g) noexcept nogil
cdef set active_clusters(Engine* g)
cdef list connection_list(Engine* g)
