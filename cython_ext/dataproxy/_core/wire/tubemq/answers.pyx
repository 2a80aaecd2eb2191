"""Answers of a server as whole frames.

Locality: owner of the buffer.  Locks: none.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.wire.tubemq.const cimport PAYLOAD_MOST
from dataproxy._core.wire.tubemq.frame cimport cut_frame, frame_heads
from dataproxy._core.wire.tubemq.rpc cimport answer_size, exception_size, put_answer, put_exception

cdef enum:
    TEXT_MOST = 65536           # bytes of an exception's text that are sent


cdef uint8_t* _open(Buf* out, size_t payload) noexcept nogil:
    """Return where a frame's payload is to be written; NULL: no memory."""
    if buf_reserve(out, frame_heads(payload) + payload) != ST_OK:
        return NULL
    return out.p + out.n + frame_heads(payload)


cdef void _close(Buf* out, uint32_t serial, size_t payload) noexcept nogil:
    cut_frame(out.p + out.n, serial, payload)
    out.n += frame_heads(payload) + payload


cdef int add_answer(Buf* out, uint32_t serial, int32_t method, Slice message) noexcept nogil:
    """Append the answer of success to a call of ``method`` with this number."""
    cdef size_t payload = answer_size(method, message.n)
    cdef uint8_t* at
    if payload > PAYLOAD_MOST:
        return ST_LIMIT
    at = _open(out, payload)
    if at == NULL:
        return ST_NO_MEMORY
    at = put_answer(at, method, message.n)
    if message.n:
        memcpy(at, message.p, message.n)
    _close(out, serial, payload)
    return ST_OK


cdef int add_exception(Buf* out, uint32_t serial, int status, Slice name, Slice trace) noexcept nogil:
    """Append an answer of failure with the name of a Java class and a text; ``status`` is RPC_ERROR or RPC_FATAL."""
    cdef size_t payload
    cdef uint8_t* at
    trace = slice_of(trace.p, min(trace.n, <size_t>TEXT_MOST))
    payload = exception_size(status, name, trace)
    at = _open(out, payload)
    if at == NULL:
        return ST_NO_MEMORY
    put_exception(at, status, name, trace)
    _close(out, serial, payload)
    return ST_OK
