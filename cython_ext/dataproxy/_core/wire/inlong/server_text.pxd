"""Text requests, types 2 to 6, as a server judges them."""

from dataproxy._core.wire.inlong.answer cimport Exchange


cdef int serve_text(Exchange* x) noexcept nogil
