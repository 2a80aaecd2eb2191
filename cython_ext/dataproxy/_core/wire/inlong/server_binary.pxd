"""Binary requests, type 7, as a server judges them."""

from dataproxy._core.wire.inlong.answer cimport Exchange


cdef int serve_binary(Exchange* x) noexcept nogil
