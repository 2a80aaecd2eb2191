"""Answers of a broker to a producer.

An answer has the number of its request.  Its code is TubeMQ's, which begins where statuses of HTTP do, so a constant
is added: 403 becomes 1403.  A broker that fails in the middle of its work, or does not say what happened, may have
stored the message.

Locality: any thread.  Locks: none.
"""

from libc.string cimport memcpy, memset

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be32
from dataproxy._core.wire.api cimport EV_ACK, EV_UNKNOWN
from dataproxy._core.wire.tubemq.const cimport (
    AT_SERIAL, BROKER_CODES, BROKER_CODE_MOST, CODE_EXCEPTION, CODE_OK, CODE_UNSPECIFIED, FRAME_HEAD, METHOD_SEND,
    RPC_SUCCESS, SLICE_HEAD,
)
from dataproxy._core.wire.tubemq.frame cimport FrameScan, scan_frame
from dataproxy._core.wire.tubemq.rpc cimport Answer, read_answer
from dataproxy._core.wire.tubemq.send cimport Sent, read_sent

cdef enum:
    JOINED_MOST = 65536         # bytes of an answer in several slices: the text of a Java exception with its frames
    CODE_FAILED = 500           # from here on the broker itself has failed, but for those that say what they mean
    CODE_UNAVAILABLE = 503


cdef int reply_delimit(const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil:
    """Find the first frame."""
    cdef FrameScan scan
    cdef int status
    memset(&scan, 0, sizeof(FrameScan))
    status = scan_frame(&scan, p, n, max_frame)
    size[0] = scan.at if status == ST_OK else 0
    return status


cdef bint _join(const uint8_t* p, size_t n, uint8_t* room, Slice* payload) noexcept nogil:
    """Find the payload; that of several slices is copied into ``room``.  False if it is too large for that."""
    cdef size_t size = load_be32(p + FRAME_HEAD)
    cdef size_t at = FRAME_HEAD
    payload[0] = slice_of(p + FRAME_HEAD + SLICE_HEAD, size)
    if FRAME_HEAD + SLICE_HEAD + size == n:
        return True
    payload[0] = slice_of(room, 0)
    while at < n:
        size = load_be32(p + at)
        if size > JOINED_MOST - payload.n:
            return False
        memcpy(room + payload.n, p + at + SLICE_HEAD, size)
        payload.n += size
        at += SLICE_HEAD + size
    return True


cdef Slice _borrowed(Slice text, const uint8_t* p, const uint8_t* room) noexcept nogil:
    """Return a text of a joined payload as a part of the frame: as much of it as the first slice has."""
    cdef size_t first = load_be32(p + FRAME_HEAD)
    cdef size_t at
    if not room <= text.p < room + JOINED_MOST:
        return text
    at = <size_t>(text.p - room)
    return slice_of(p + FRAME_HEAD + SLICE_HEAD + at, min(text.n, first - at)) if at < first else slice_of(NULL, 0)


cdef void _refusal(WireEvent* event, int code) noexcept nogil:
    if not 0 < code <= BROKER_CODE_MOST or code == CODE_OK:
        code = CODE_UNSPECIFIED
    event.code = BROKER_CODES + code
    event.unsure = code >= CODE_FAILED and code != CODE_UNAVAILABLE


cdef int read_reply(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil:
    """Read one whole answer."""
    cdef uint8_t room[JOINED_MOST]
    cdef FrameScan scan
    cdef Slice payload
    cdef Answer answer
    cdef Sent sent
    memset(event, 0, sizeof(WireEvent))
    memset(&scan, 0, sizeof(FrameScan))
    event.load = -1
    event.reach = -1
    if scan_frame(&scan, p, n, n) != ST_OK or scan.at != n:
        return ST_PROTOCOL
    if not _join(p, n, room, &payload) or read_answer(payload, &answer) != ST_OK:
        return ST_PROTOCOL
    event.kind = EV_ACK
    event.has_seq = True
    event.seq = load_be32(p + AT_SERIAL)
    event.msg_type = METHOD_SEND
    if answer.status != RPC_SUCCESS:
        _refusal(event, CODE_EXCEPTION)
        event.message = _borrowed(answer.trace if answer.trace.n else answer.exception, p, room)
        return ST_OK
    if answer.method != METHOD_SEND:
        event.kind = EV_UNKNOWN
        event.msg_type = answer.method
        return ST_OK
    if read_sent(answer.data, &sent) != ST_OK:
        return ST_PROTOCOL
    if not sent.success:
        _refusal(event, sent.code)
        event.message = _borrowed(sent.text, p, room)
    return ST_OK
