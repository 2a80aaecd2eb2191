"""One whole frame from a client, judged: heartbeats here, data frames by their layout.

Locality: server loop.  Locks: none.
"""

from libc.stdint cimport int16_t, int32_t, uint16_t, uint32_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.endian cimport load_be16, load_be32, store_be16, store_be32
from dataproxy._core.wire.api cimport REQ_REPLY, request_begin
from dataproxy._core.wire.inlong.answer cimport Exchange
from dataproxy._core.wire.inlong.const cimport (
    HB_BODY,
    HB_BODY_LEN,
    HB_FIXED,
    HB_TIME,
    HB_VERSION,
    LENGTH_SIZE,
    LOAD_UNKNOWN,
    MAGIC,
    MAX_LOAD,
    TYPE_BINARY,
    TYPE_BINARY_HEARTBEAT,
    TYPE_COMMON,
    TYPE_HEARTBEAT,
    TYPE_MASK,
    TYPE_PAIRS,
)
from dataproxy._core.wire.inlong.server_binary cimport serve_binary
from dataproxy._core.wire.inlong.server_text cimport serve_text


cdef int serve_frame(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil:
    """Judge one whole frame; ``out`` is filled in any case."""
    cdef Exchange x
    request_begin(out)
    if n <= LENGTH_SIZE or load_be32(p) != n - LENGTH_SIZE:
        return ST_OK
    out.msg_type = p[LENGTH_SIZE] & TYPE_MASK
    out.heartbeat = out.msg_type == TYPE_HEARTBEAT or out.msg_type == TYPE_BINARY_HEARTBEAT
    if out.msg_type == TYPE_HEARTBEAT:
        return _answer_heartbeat(out)
    if out.msg_type == TYPE_BINARY_HEARTBEAT:
        return _answer_binary_heartbeat(profile, p, n, now_ms, out)
    x.profile = profile
    x.out = out
    x.p = p
    x.n = n
    x.now_ms = now_ms
    x.uniq = 0
    x.body = slice_of(NULL, 0)
    x.text = slice_of(NULL, 0)
    x.silent = False
    x.sink = False
    x.translated = False
    x.prefix_n = 0
    if out.msg_type == TYPE_BINARY:
        return serve_binary(&x)
    if TYPE_COMMON <= out.msg_type <= TYPE_PAIRS:
        return serve_text(&x)
    return ST_OK                # no known type: close


cdef int _answer_heartbeat(Request* out) noexcept nogil:
    if buf_reserve(&out.reply, LENGTH_SIZE + 1) != ST_OK:
        return ST_NO_MEMORY
    store_be32(out.reply.p, 1)
    out.reply.p[LENGTH_SIZE] = TYPE_HEARTBEAT
    out.reply.n = LENGTH_SIZE + 1
    out.action = REQ_REPLY
    return ST_OK


cdef int _answer_binary_heartbeat(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil:
    cdef int64_t body_n
    cdef int64_t attr_n
    cdef int64_t attr_at
    cdef int load = LOAD_UNKNOWN
    cdef uint8_t* at
    if n < HB_FIXED:
        return ST_OK
    body_n = <int32_t>load_be32(p + HB_BODY_LEN)
    attr_at = HB_BODY + body_n
    if body_n < 0 or attr_at > <int64_t>n - 2:
        return ST_OK
    attr_n = <int16_t>load_be16(p + attr_at)
    if attr_n < 0 or attr_at + 2 + attr_n > <int64_t>n - 2 or load_be16(p + attr_at + 2 + attr_n) != MAGIC:
        return ST_OK
    if profile.load >= 0 and not profile.compat:
        load = min(profile.load, MAX_LOAD)
    if buf_reserve(&out.reply, HB_FIXED + 2 + <size_t>attr_n) != ST_OK:
        return ST_NO_MEMORY
    at = out.reply.p
    store_be32(at, <uint32_t>(HB_FIXED + 2 + attr_n - LENGTH_SIZE))
    at[LENGTH_SIZE] = TYPE_BINARY_HEARTBEAT
    store_be32(at + HB_TIME, <uint32_t>(now_ms // 1000))
    at[HB_VERSION] = p[HB_VERSION]
    store_be32(at + HB_BODY_LEN, 2)
    store_be16(at + HB_BODY, <uint16_t>load)
    store_be16(at + HB_BODY + 2, <uint16_t>attr_n)
    memcpy(at + HB_BODY + 4, p + attr_at + 2, <size_t>attr_n)
    store_be16(at + HB_BODY + 4 + attr_n, MAGIC)
    out.reply.n = HB_FIXED + 2 + <size_t>attr_n
    out.action = REQ_REPLY
    return ST_OK
