"""Text inside of other text: JSON strings, base64, escaped delimited text."""

from libc.stdint cimport uint8_t

from dataproxy._core.base.buf cimport Buf


ctypedef struct Marks:          # the characters that mean something in delimited text
    bint special[256]           # to be escaped or quoted
    bint refused[256]           # cannot travel at all
    bint any_plain              # numbers, dates or names of values can hold a special one
    int escape                  # -1: none
    int quote


cdef int put_json_text(Buf* out, const uint8_t* p, size_t n) noexcept nogil
cdef int put_base64(Buf* out, const uint8_t* p, size_t n) noexcept nogil
cdef int escape_from(Buf* out, size_t start, const Marks* marks) noexcept nogil
