"""Facade of the producer's compiled core."""

from libc.stdint cimport int64_t

from dataproxy._core.client.handle cimport CoreHandle
from dataproxy._core.client.sending cimport SendPolicy, Stream


cdef class ProducerCore(CoreHandle):
    cdef readonly SendPolicy policy
    cdef dict own_streams       # stream id -> Stream of the producer's group; GIL
    cdef int64_t opened_us
    cdef bint made              # the engine is more than a blank; GIL
    cdef bint finished          # no executor runs any more; GIL
    cdef dict options           # settled; what an engine is made of

    cdef int open_engine(self) except -1
    cdef Stream find(self, object stream_id, object group_id)
