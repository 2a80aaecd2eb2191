"""Requests as a server judges them: all are calls, whose header is known to be one.

A message goes on with the fields that were found; who answers other requests reads their header again.

Locality: any thread.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice, slice_is, slice_of, slice_text
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.wire.api cimport REQ_CALL, request_begin
from dataproxy._core.wire.rocketmq.const cimport (
    CODE_PULL, CODE_SEND, CODE_SEND_BATCH, CODE_SEND_V2, FLAG_RESPONSE, LANGUAGE_ANSWERED, SYS_TRANSACTION,
    VERSION_ANSWERED,
)
from dataproxy._core.wire.rocketmq.frame cimport delimit_frame, split_frame
from dataproxy._core.wire.rocketmq.header cimport Command, read_command
from dataproxy._core.wire.rocketmq.properties cimport property_value
from dataproxy._core.wire.rocketmq.send cimport SendRequest, Sent, put_sent
from dataproxy._core.wire.rocketmq.write cimport CommandWriter, write_begin, write_end, write_header

cdef enum:
    OFFSET_BITS = 39            # of a handle: the store's number of the log stands above them


cdef int request_delimit(const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil:
    """Find the first frame."""
    return delimit_frame(p, n, max_frame, size)


cdef int64_t handle_of(uint32_t log, uint64_t offset) noexcept nogil:
    """Return what stands for the place of a message where a broker has an offset in its files."""
    return <int64_t>(<uint64_t>log << OFFSET_BITS | offset)


cdef int serve_request(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil:
    """Judge one whole frame; ``out`` is filled in any case."""
    cdef Command command
    cdef int status
    request_begin(out)
    status = read_command(p, n, &out.scratch, &command)
    if status != ST_OK or not command.numbered:     # without a number no answer finds its request
        return ST_NO_MEMORY if status == ST_NO_MEMORY else ST_OK
    out.serial = <uint32_t>command.opaque
    out.msg_type = out.method = command.code
    out.version = command.flag
    out.service = command.form
    out.call = slice_of(p, n)
    out.fields = command.fields
    out.action = REQ_CALL
    out.call_kind = COMMAND_ASK
    if command.flag & FLAG_RESPONSE:
        out.call_kind = COMMAND_ANSWER
    elif command.code == CODE_PULL:
        out.call_kind = COMMAND_PULL
    elif command.code == CODE_SEND or command.code == CODE_SEND_V2 or command.code == CODE_SEND_BATCH:
        out.call_kind = COMMAND_SEND
    return ST_OK


cdef void request_command(const Request* r, Buf* scratch, Command* out) noexcept nogil:
    """Make the command of a request again, of which fields and body are read; the header is not read once more."""
    memset(out, 0, sizeof(Command))
    out.form, out.opaque, out.code, out.flag = r.service, <int32_t>r.serial, r.method, r.version
    out.numbered = True
    out.fields = r.fields
    out.extended = r.fields.n > 0
    out.body = split_frame(r.call.p, r.call.n).body
    out.scratch = scratch
    out.mark = scratch.n


cdef bint is_plain_send(const SendRequest* s) noexcept nogil:
    """Tell whether a message is to be delivered as it is: not later, not half, not again, and without a reply."""
    cdef Slice value
    if s.sys_flag & SYS_TRANSACTION or s.reconsume_times > 0 or (s.topic.n and s.topic.p[0] == 37):     # %RETRY%
        return False
    if property_value(s.properties, slice_text(b"DELAY"), &value) and not slice_is(value, b"0"):
        return False
    if property_value(s.properties, slice_text(b"REPLY_TO_CLIENT"), &value):    # it gets the name of the cluster
        return False
    return not (property_value(s.properties, slice_text(b"TRAN_MSG"), &value) and slice_is(value, b"true"))


cdef void answer_head(Command* head, int form, int32_t opaque) noexcept nogil:
    """Fill in what all answers have."""
    memset(head, 0, sizeof(Command))
    head.form, head.opaque, head.flag = form, opaque, FLAG_RESPONSE
    head.language, head.version = LANGUAGE_ANSWERED, VERSION_ANSWERED
    head.numbered = True


cdef int put_refusal(Buf* out, int form, int32_t opaque, int32_t code, const char* remark) noexcept nogil:
    """Append an answer with a code and its reason."""
    cdef CommandWriter w
    cdef Command head
    answer_head(&head, form, opaque)
    head.code, head.extended = code, True       # a client looks into the fields of any answer to a message
    head.remark = slice_text(remark)
    write_begin(&w, out, &head)
    write_header(&w)
    return write_end(&w)


cdef int put_place(
    Buf* out, int form, int32_t opaque, int32_t queue, Slice ids, uint64_t offset
) noexcept nogil:
    """Append the answer to messages that are stored."""
    cdef Command head
    cdef Sent sent
    answer_head(&head, form, opaque)
    memset(&sent, 0, sizeof(Sent))
    sent.stored = True
    sent.ids, sent.queue, sent.offset = ids, queue, <int64_t>offset
    return put_sent(out, &head, &sent)
