"""GET: a pack of messages of one partition."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.protobuf cimport Fields
from dataproxy._core.base.slice cimport Slice


cdef enum GotStep:
    GS_END = 0              # the answer is whole
    GS_MESSAGE = 1
    GS_BROKEN = 2           # it is no answer


ctypedef struct GetRequest:
    Slice client
    Slice group
    Slice topic
    int32_t partition
    bint consumed               # the pack before was consumed
    bint manual                 # read on without a commit; no client does
    bint escape


ctypedef struct TubeMessage:
    int64_t id
    int32_t checksum
    int32_t flag
    Slice payload


ctypedef struct Got:            # an answer
    bint success
    int32_t code
    Slice text
    int64_t offset              # where the pack began; UNKNOWN: not given
    int64_t max_offset          # UNKNOWN: not given
    int64_t backlog             # bytes of data behind the pack; UNKNOWN: not given
    int32_t wait_ms             # UNKNOWN: not given, which is not 0
    bint escape
    bint slow
    Slice data                  # the whole answer, for `got_next`
    size_t n                    # messages
    size_t bytes                # of their payloads


ctypedef struct GotScan:        # an answer that is read message by message
    Fields fields
    int found                   # bits of required fields


cdef int read_get(Slice request, GetRequest* out) noexcept nogil
cdef size_t get_size(const GetRequest* g) noexcept nogil
cdef uint8_t* put_get(uint8_t* to, const GetRequest* g) noexcept nogil
cdef void got_begin(GotScan* s, Slice data, Got* out) noexcept nogil
cdef int got_step(GotScan* s, Got* out, TubeMessage* message) noexcept nogil
cdef int read_got(Slice data, Got* out) noexcept nogil
cdef bint got_next(Slice* rest, TubeMessage* out) noexcept nogil
cdef size_t got_size(const Got* g, const TubeMessage* messages, size_t n) noexcept nogil
cdef uint8_t* put_got(uint8_t* to, const Got* g, const TubeMessage* messages, size_t n) noexcept nogil
