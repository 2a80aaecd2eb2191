"""Both ends of a connection, as RocketMQ's messages and answers name them."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from dataproxy._core.base.address cimport Address
from dataproxy._core.server.calls cimport Endpoint
from dataproxy._core.wire.rocketmq.stored cimport Host


cdef void ends_note(int fd, const Address* peer, Endpoint* near, Endpoint* far) noexcept nogil
# Write the bytes of a host, 4 or 16 of them, and return the port; -1: it is no internet address.
cdef int address_bytes(const Address* a, uint8_t out[16], size_t* n) noexcept nogil
cdef Host host_of(const Endpoint* end) noexcept nogil
