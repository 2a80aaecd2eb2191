"""Messages of HTTP/1.0 and HTTP/1.1, requests and answers: where one ends, and what its head says."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


cdef enum:
    HEAD_MOST = 65536       # bytes of a head
    FIELDS_MOST = 256       # of a head, or behind a body in chunks: they are read again whenever more bytes arrive
    CHUNKS_MOST = 1024      # chunks of one body: they are walked again whenever more of the body arrives


cdef enum HeadFraming:      # how a body's end is found
    BODY_NONE = 0
    BODY_LENGTH = 1
    BODY_CHUNKED = 2
    BODY_REST = 3           # an answer without a length: it ends with the connection


ctypedef struct Head:       # slices borrow from the message
    bint answer             # an answer, else a request
    Slice method
    Slice target
    int status              # of an answer
    size_t size             # bytes up to the body
    int framing             # HeadFraming
    int64_t length          # with BODY_LENGTH
    bint closes             # the connection ends after this message and its answer
    bint typed
    Slice content_type


cdef int head_read(const uint8_t* p, size_t n, Head* out) noexcept nogil    # ST_OK, ST_NEED_DATA or ST_PROTOCOL
# The whole message: ST_OK with *size, ST_NEED_DATA (*size may be known), ST_LIMIT or ST_PROTOCOL.
cdef int message_size(const uint8_t* p, size_t n, size_t most, const Head* head, size_t* size) noexcept nogil
# The body of a whole message, put together in `scratch` if it came in chunks; ST_OK or ST_NO_MEMORY.
cdef int message_body(const uint8_t* p, size_t n, const Head* head, Buf* scratch, Slice* out) noexcept nogil
# The body of a whole answer: of several chunks what `room` takes, put together there.
cdef Slice answer_body(const uint8_t* p, size_t n, const Head* head, uint8_t* room, size_t room_n) noexcept nogil
cdef int http_delimit(const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil
