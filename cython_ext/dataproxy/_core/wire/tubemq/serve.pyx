"""Requests as a server judges them: the call is read, a message to store is checked, everything else is a call.

A message is stored before it is answered.  Its answer is prepared with the time, and written again when its place is
known: that is where its id and its offset come from.

Checks and their order are those of a Java broker: token, topic, partition, size, checksum, and at last whether the
broker takes messages at all.

Locality: server loop.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset, strlen

from dataproxy._core.base.buf cimport buf_put, buf_reserve
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_NO_MEMORY, ST_OK
from dataproxy._core.base.text cimport is_utf8, write_decimal
from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.api cimport (
    CALL_CONFIRM, CALL_CONTROL, CALL_FETCH, REQ_CALL, REQ_REPLY, REQ_STORE, request_begin,
)
from dataproxy._core.wire.tubemq.answers cimport add_answer, add_exception
from dataproxy._core.wire.tubemq.const cimport (
    AT_SERIAL, CHECKSUM_NONE, CODE_OK, FRAME_HEAD, INDEX_SIZE, METHOD_COMMIT, METHOD_GET, METHOD_SEND, RPC_ERROR,
    RPC_FATAL, SLICE_HEAD,
)
from dataproxy._core.wire.tubemq.frame cimport FrameScan, gather_frame, scan_frame
from dataproxy._core.wire.tubemq.payload cimport payload_checksum
from dataproxy._core.wire.tubemq.rpc cimport Answer, Call, read_answer, read_call
from dataproxy._core.wire.tubemq.send cimport SendRequest, Sent, put_sent, read_send, read_sent
from dataproxy._core.wire.tubemq.stored cimport put_stored, stored_id

cdef enum:                      # codes of answers
    SENT_BAD = 400
    SENT_FORBIDDEN = 403
    SENT_UNPROVEN = 415
    SENT_OVERFLOW = 419
    SENT_FAILED = 500
    SENT_UNAVAILABLE = 503


cdef enum:
    NAME_MOST = 255             # bytes of a topic and of a filter item: as many as names of the store have
    PAYLOAD_MORE = 10240        # bytes of a payload beyond those of the largest message, for attributes
    SENT_MOST = 1024            # bytes of an answer to a message
    WORDS_MOST = 512            # bytes of a refusal's text


cdef enum:                      # codes in which the server says why it could not store (InLong's)
    SERVER_NOT_READY = 1
    SERVER_STOPPED = 2
    SERVER_NO_NAME = 113
    SERVER_BUSY = 114


cdef int request_delimit(FrameMark* mark, const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil:
    """Go on looking for the end of the first frame."""
    cdef FrameScan* scan = <FrameScan*>mark
    cdef int status = scan_frame(scan, p, n, max_frame)
    size[0] = scan.at if status == ST_OK else 0
    return status


cdef int serve_request(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil:
    """Judge one whole frame; ``out`` is filled in any case."""
    cdef FrameScan scan
    cdef Slice payload
    cdef Call call
    request_begin(out)
    memset(&scan, 0, sizeof(FrameScan))
    if scan_frame(&scan, p, n, n) != ST_OK:
        return ST_OK                    # close
    payload = slice_of(p + FRAME_HEAD + SLICE_HEAD, scan.payload)
    if scan.slices > 1:
        if buf_reserve(&out.scratch, scan.payload) != ST_OK:
            return ST_NO_MEMORY
        payload = gather_frame(p, &scan, out.scratch.p)
        out.scratch.n = scan.payload
    out.serial = scan.serial
    memset(&call, 0, sizeof(Call))
    if read_call(payload, &call) != ST_OK:
        return _unreadable(out, b"IPC server unable to read a call: its headers or its body cannot be parsed")
    out.msg_type = call.method
    out.version = call.version
    out.service = call.service
    out.method = call.method
    out.call = call.request
    if not 1 <= call.version <= 3:
        return _except(out, RPC_ERROR, b"org.apache.inlong.tubemq.corerpc.exception.UnknownProtocolException",
                       b"this version of the protocol is not known; there are 1, 2, 3")
    if call.method == METHOD_SEND:
        return _send(profile, now_ms, out)
    out.action = REQ_CALL
    out.call_kind = (CALL_FETCH if call.method == METHOD_GET else CALL_CONFIRM if call.method == METHOD_COMMIT
                     else CALL_CONTROL)
    return ST_OK


cdef int _except(Request* out, int status, const char* name, const char* words) noexcept nogil:
    """Answer with an exception."""
    out.action = REQ_REPLY
    out.code = SENT_BAD
    return add_exception(&out.reply, out.serial, status, slice_of(name, strlen(name)), slice_of(words, strlen(words)))


cdef int _unreadable(Request* out, const char* words) noexcept nogil:
    return _except(out, RPC_FATAL, b"com.google.protobuf.InvalidProtocolBufferException", words)


cdef int _send(const ServerProfile* profile, int64_t now_ms, Request* out) noexcept nogil:
    """Judge a message."""
    cdef SendRequest send
    cdef const char* words = NULL
    cdef Sent sent
    cdef int code
    if read_send(out.call, &send) != ST_OK:
        return _unreadable(out, b"IPC server unable to read call parameters: they are no SendMessageRequestP2B")
    out.group = send.topic
    out.stream = send.type
    code = _judge(profile, &send, &words)
    if code != CODE_OK:
        out.action = REQ_REPLY
        out.code = code
        return _refuse(&out.reply, out.serial, code, words)
    memset(&sent, 0, sizeof(Sent))
    sent.success = True
    sent.code = CODE_OK
    sent.time_ms = now_ms
    if _put_success(&out.reply, out.serial, &sent) != ST_OK:
        return ST_NO_MEMORY
    out.partition = send.partition
    out.records = 1
    out.data_time_ms = now_ms
    out.action = REQ_STORE
    return _store(profile, &send, now_ms, out)


cdef int _store(const ServerProfile* profile, const SendRequest* send, int64_t now_ms, Request* out) noexcept nogil:
    """Make the entry."""
    cdef int status = put_stored(&out.entry, send, now_ms, &out.body, &out.body_at)
    cdef size_t tail
    if status != ST_OK or profile.borrow_body:
        return status
    if buf_reserve(&out.entry, out.body.n) != ST_OK:
        return ST_NO_MEMORY
    tail = out.entry.n - out.body_at
    _move_up(out.entry.p + out.body_at, tail, out.body.n)
    if out.body.n:
        memcpy(out.entry.p + out.body_at, out.body.p, out.body.n)
    out.entry.n += out.body.n
    out.body = slice_of(NULL, 0)
    return ST_OK


cdef void _move_up(uint8_t* p, size_t n, size_t by) noexcept nogil:
    """Make room for ``by`` bytes in front of ``n`` bytes, which are few."""
    cdef size_t i
    for i in range(n):
        p[by + n - 1 - i] = p[n - 1 - i]


cdef int _judge(const ServerProfile* profile, const SendRequest* send, const char** words) noexcept nogil:
    """Return the code of a message's answer, and with a refusal its text."""
    if profile.most_token >= 0 and not (
            send.has_visit and profile.least_token <= send.visit <= profile.most_token):
        words[0] = b"Visit Authorized Token is not correct"
        return SENT_UNPROVEN
    if not _is_topic(send.topic) or (
            profile.known != NULL and not profile.known(profile.context, send.topic, send.type)):
        words[0] = b"topicName not existed, please check your configure"
        return SENT_FORBIDDEN
    if send.partition < 0 or <uint32_t>send.partition >= profile.partitions:
        words[0] = b"partitionId not existed, please check your configure"
        return SENT_FORBIDDEN
    if send.type.n and not _is_name(send.type):
        words[0] = b"msgType is over 255 bytes, is not UTF-8, or has a control character, & or ="
        return SENT_BAD
    if send.payload.n == 0:
        words[0] = b"data length is zero!"
        return SENT_BAD
    if send.payload.n > profile.max_message + PAYLOAD_MORE:
        words[0] = b"data length over max length"
        return SENT_BAD
    if send.checksum != CHECKSUM_NONE and send.checksum != payload_checksum(send.payload):
        words[0] = b"Checksum failure of message from the client"
        return SENT_FORBIDDEN
    if profile.service_code != 0:
        words[0] = b"Write StoreService temporary unavailable!"
        return SENT_UNAVAILABLE if profile.service_code <= SERVER_STOPPED else _code(profile.service_code)
    return CODE_OK


cdef bint _is_name(Slice name) noexcept nogil:
    """Tell whether the store's attribute text can hold a name: it has no escaping."""
    cdef size_t i
    if name.n == 0 or name.n > NAME_MOST:
        return False
    for i in range(name.n):
        if name.p[i] == 38 or name.p[i] == 61 or name.p[i] < 32 or name.p[i] == 127:
            return False
    return is_utf8(name)


cdef bint _is_topic(Slice name) noexcept nogil:
    """Tell whether TubeMQ's texts can hold the name of a topic as well: they separate with ``# : , @`` and blanks."""
    cdef size_t i
    for i in range(name.n):
        if (name.p[i] == 35 or name.p[i] == 58 or name.p[i] == 44 or name.p[i] == 64 or name.p[i] == 32):
            return False
    return _is_name(name)


cdef int _put_success(Buf* out, uint32_t serial, Sent* sent) noexcept nogil:
    """Append the answer to a message that is stored; its text is the id."""
    cdef uint8_t digits[24]
    cdef uint8_t message[SENT_MOST]
    cdef uint8_t* end
    sent.text = slice_of(digits, write_decimal(digits, <uint64_t>sent.id))
    end = put_sent(message, sent)
    return add_answer(out, serial, METHOD_SEND, slice_of(message, <size_t>(end - message)))


cdef int _refuse(Buf* out, uint32_t serial, int code, const char* words) noexcept nogil:
    """Append an answer that refuses a message."""
    cdef uint8_t message[SENT_MOST]
    cdef Sent sent
    memset(&sent, 0, sizeof(Sent))
    sent.code = code
    sent.text = slice_of(words, min(strlen(words), <size_t>WORDS_MOST))
    return add_answer(out, serial, METHOD_SEND, slice_of(message, <size_t>(put_sent(message, &sent) - message)))


cdef int _code(int code) noexcept nogil:
    """Return the broker's code for one of the server's own; what is TubeMQ's already stays."""
    if code == SERVER_NOT_READY or code == SERVER_STOPPED:
        return SENT_UNAVAILABLE
    if code == SERVER_NO_NAME:
        return SENT_FORBIDDEN
    if code == SERVER_BUSY:
        return SENT_OVERFLOW
    return code if SENT_BAD <= code < 600 else SENT_FAILED


cdef int refuse_sent(const uint8_t* reply, size_t n, int code, const char* message, Buf* out) noexcept nogil:
    """Append a refusal in the place of a prepared success.  Locality: any thread."""
    if n < FRAME_HEAD:
        return ST_INVALID
    return _refuse(out, load_be32(reply + AT_SERIAL), _code(code), message)


cdef int tell_nothing(
    const uint8_t* reply, size_t n, int64_t known, int64_t differed, int64_t reach, Buf* out,
) noexcept nogil:
    """Append a success: messages have no ids, so none of them was known before.  Locality: any thread."""
    return buf_put(out, reply, n)


cdef int tell_place(const uint8_t* reply, size_t n, uint32_t partition, uint64_t offset, Buf* out) noexcept nogil:
    """Append the success of a message that is stored there.  Locality: any thread."""
    cdef FrameScan scan
    cdef Answer answer
    cdef Sent sent
    memset(&scan, 0, sizeof(FrameScan))
    if scan_frame(&scan, reply, n, n) != ST_OK or scan.slices != 1:
        return ST_INVALID
    if read_answer(slice_of(reply + FRAME_HEAD + SLICE_HEAD, scan.payload), &answer) != ST_OK:
        return ST_INVALID
    if read_sent(answer.data, &sent) != ST_OK:
        return ST_INVALID
    sent.id = stored_id(partition, offset)
    sent.offset = <int64_t>offset * INDEX_SIZE
    return _put_success(out, scan.serial, &sent)


cdef void misaddress_answer(uint8_t* reply, size_t n, uint32_t seq) noexcept nogil:
    """Change the number in an answer.  Locality: any thread."""
    if n >= FRAME_HEAD:
        store_be32(reply + AT_SERIAL, seq)
