"""Requests of RocketMQ's clients, as a server judges them, and the heads of its answers."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.api cimport Request, ServerProfile
from dataproxy._core.wire.rocketmq.header cimport Command
from dataproxy._core.wire.rocketmq.send cimport SendRequest


cdef enum CommandKind:          # Request.call_kind; its serial is the number, version the flag, service the form
    COMMAND_ASK = 1             # any request but the next two
    COMMAND_PULL = 2
    COMMAND_SEND = 3
    COMMAND_ANSWER = 4          # not a request: the peer answers one of the hub's


cdef int request_delimit(const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil
cdef int serve_request(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out
) noexcept nogil
# `scratch` is that of the request, or another one with as much room.
cdef void request_command(const Request* r, Buf* scratch, Command* out) noexcept nogil
# What stands for the place of a message where a broker has an offset in its files.
cdef int64_t handle_of(uint32_t log, uint64_t offset) noexcept nogil
cdef void answer_head(Command* head, int form, int32_t opaque) noexcept nogil       # of an answer without its code
cdef int put_refusal(Buf* out, int form, int32_t opaque, int32_t code, const char* remark) noexcept nogil
# The answer to messages that are stored: `ids` of all, and the offset of the first.
cdef int put_place(
    Buf* out, int form, int32_t opaque, int32_t queue, Slice ids, uint64_t offset
) noexcept nogil
cdef bint is_plain_send(const SendRequest* s) noexcept nogil      # no decision is needed to store it
