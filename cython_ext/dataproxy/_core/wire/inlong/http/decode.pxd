"""Answers of a server, as a client reads them."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from dataproxy._core.wire.api cimport WireEvent


cdef int read_answer(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil
