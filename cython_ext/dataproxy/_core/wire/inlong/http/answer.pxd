"""Answers of the server role: a result code and a text as JSON, with status 200."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


cdef enum:
    CODE_NOT_READY = 1
    CODE_CLOSED = 2
    CODE_DECODE = 31
    CODE_METHOD = 32
    CODE_PATH = 35
    CODE_TYPE = 36
    CODE_NO_GROUP = 100
    CODE_NO_STREAM = 101
    CODE_NO_BODY = 103
    CODE_BLANK = 111
    CODE_QUEUE = 114
    CODE_TOPIC = 115
    CODE_UNKNOWN = 2147483647


cdef bint code_closes(int code) noexcept nogil          # the connection ends after an answer with this code
# ST_OK or ST_NO_MEMORY; `raw` leaves the text without escapes, as the reference server does.
cdef int put_answer(Buf* out, int code, Slice text, Slice callback, bint raw, bint closes) noexcept nogil
cdef int put_too_large(Buf* out) noexcept nogil
cdef int refuse_answer(const uint8_t* reply, size_t n, int code, const char* message, Buf* out) noexcept nogil
cdef int tell_nothing(
    const uint8_t* reply, size_t n, int64_t known, int64_t differed, int64_t reach, Buf* out,
) noexcept nogil
cdef void keep_address(uint8_t* reply, size_t n, uint32_t seq) noexcept nogil
