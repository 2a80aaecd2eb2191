"""Messages that were accepted and are not yet in the open pack of their stream."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.producer.accumulate.streams cimport Stream

cdef enum:
    STAGED = 64             # messages at most
    STAGED_BYTES = 16384    # of their bodies
    STAGED_BODY = 1024      # larger ones do not come here


ctypedef struct Staging:    # guarded by the batcher's lock
    Stream* streams[64]
    uint32_t ends[64]       # where each body ends in bytes
    uint8_t bytes[16384]
    uint32_t n
    int64_t since_us        # when the first message came; not used when empty


cdef bint staging_put(Staging* t, Stream* s, const uint8_t* body, size_t n) noexcept nogil
cdef void staging_fetch(const Staging* t) noexcept nogil
cdef void staging_keep(Staging* t, uint32_t first) noexcept nogil
