"""Facade of the producer's compiled core."""

from libc.stdint cimport int64_t

from dataproxy._core.producer.results.completions cimport Completions
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.accumulate.newstreams cimport NewStreams
from dataproxy._core.producer.ingest.stream cimport SendPolicy, Stream
from dataproxy._core.net.executor cimport Executor


cdef class ExecutorLoop:
    cdef Executor* executor


cdef class CompletionsWait:
    cdef Completions* completions


cdef class ProducerCore(CoreHandle):
    cdef SendPolicy policy
    cdef dict own_streams       # stream id, or (group id, stream id) -> Stream that calls by name use; GIL
    cdef Py_ssize_t own_most    # of them, before unused ones are looked for; GIL
    cdef int64_t opened_us
    cdef bint made              # the engine is more than a blank; GIL
    cdef bint finished          # no executor runs any more; GIL
    cdef dict options           # settled; what an engine is made of

    cdef int open_engine(self) except -1
    cdef Stream find(self, object stream_id, object group_id)
    cdef object name_rows(self, object stream_id, object group_id)
    cdef int keep_streams(self, NewStreams* made) except -1
    cdef int forget_unused(self) except -1
