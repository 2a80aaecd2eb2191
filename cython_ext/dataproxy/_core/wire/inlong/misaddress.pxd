"""Replies to other requests than the one that was answered, for tests of clients."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t


cdef void misaddress_reply(uint8_t* reply, size_t n, uint32_t seq) noexcept nogil
