"""Replies of the server role: acknowledgements, refusals and how they echo the request."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.api cimport Request, ServerProfile
from dataproxy._core.wire.inlong.attrs cimport Attrs


cdef enum:
    PREFIX_ROOM = 1024          # rt=, rtms=, node2ip=, rtime2=, groupId=, streamId= with these limits
    MAX_NODE = 255
    MAX_NAME = 255


ctypedef struct Exchange:       # one data frame while it is judged
    const ServerProfile* profile
    Request* out
    const uint8_t* p            # the frame
    size_t n
    int64_t now_ms
    bint binary
    uint32_t uniq
    Slice body                  # as received
    Slice text                  # attributes as received
    Attrs attrs                 # entries lie at the start of out.scratch
    bint silent                 # isAck=false
    bint sink                   # syncSend or proxySend: answered in the sink layout
    bint translated             # numeric ids become names
    size_t prefix_n             # completion: what the server adds before `text`
    uint8_t prefix[PREFIX_ROOM]


cdef int answer_close(Exchange* x) noexcept nogil
cdef int answer_code(Exchange* x, int code, Slice message, bint echo) noexcept nogil
cdef int answer_success(Exchange* x) noexcept nogil
cdef int read_controls(Exchange* x, bint* done) noexcept nogil
cdef int judge_names(Exchange* x, bint* done) noexcept nogil
cdef void complete_attrs(Exchange* x, bint trace) noexcept nogil
cdef int refuse_reply(const uint8_t* reply, size_t n, int code, const char* message, Buf* out) noexcept nogil
cdef int tell_known(
    const uint8_t* reply, size_t n, int64_t known, int64_t differed, int64_t reach, Buf* out,
) noexcept nogil
