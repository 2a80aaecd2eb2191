"""Callbacks that wait for the result of a pack."""

from libc.stdint cimport uint32_t

from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.producer.results.segments cimport Segments
from dataproxy._core.producer.handle cimport CoreHandle


cdef int watch_done(CoreHandle core, PackResult* v, object function, object delivery) except -1
cdef int watch_message(
    CoreHandle core, str group_id, str stream_id, PackResult* v, uint32_t index, object own_id, object function,
) except -1
cdef int watch_segments(
    CoreHandle core, str group_id, str stream_id, Segments* segments, object own_ids, object function,
) except -1
cdef int check_callback(object function) except -1
