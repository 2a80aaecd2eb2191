"""Replies to requests that nobody sent, for tests of clients."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t


cdef void misaddress_reply(uint8_t* reply, size_t n) noexcept nogil
