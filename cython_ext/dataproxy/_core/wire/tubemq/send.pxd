"""SEND: one message into one partition."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.slice cimport Slice


ctypedef struct SendRequest:
    Slice client
    Slice topic
    int32_t partition
    Slice payload
    int32_t flag
    int32_t checksum            # CHECKSUM_NONE: the broker computes it
    int32_t address             # the producer's IPv4 address
    Slice type                  # filter item; without bytes: none
    Slice time                  # yyyyMMddHHmm; without bytes: none
    int64_t visit               # token
    bint has_visit              # False: no credentials, or such without the token, as a client of Go sends them
    Slice token                 # credentials; without bytes: none


ctypedef struct Sent:           # an answer
    bint success
    int32_t code
    Slice text                  # with success the message's id, in decimal
    bint wants_auth
    int64_t id                  # UNKNOWN: not given
    int64_t time_ms             # UNKNOWN: not given
    int64_t offset              # UNKNOWN: not given


cdef int read_send(Slice request, SendRequest* out) noexcept nogil
cdef size_t send_size(const SendRequest* s) noexcept nogil
cdef uint8_t* put_send(uint8_t* to, const SendRequest* s) noexcept nogil
cdef int read_sent(Slice data, Sent* out) noexcept nogil
cdef size_t sent_size(const Sent* s) noexcept nogil
cdef uint8_t* put_sent(uint8_t* to, const Sent* s) noexcept nogil
