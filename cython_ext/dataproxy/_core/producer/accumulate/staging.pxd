"""Messages that were accepted and are not yet in the open pack of their stream."""

from libc.stdint cimport uint8_t

from dataproxy._core.producer.accumulate.state cimport Batcher, Staging
from dataproxy._core.producer.accumulate.streams cimport Stream

cdef enum:
    STAGED = 64             # messages at most
    STAGED_BYTES = 16384    # of their bodies
    STAGED_BODY = 1024      # larger ones do not come here


cdef bint staging_put(Staging* t, Stream* s, const uint8_t* body, size_t n) noexcept nogil
cdef int staging_empty(Batcher* b) noexcept nogil
