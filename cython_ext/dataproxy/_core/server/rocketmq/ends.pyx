"""Both ends of a connection, as RocketMQ's messages and answers name them.

Locality: any thread.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memcpy, memset

from dataproxy._core.base.address cimport Address
from dataproxy._core.plat.socket cimport AF_INET, AF_INET6, getsockname, ntohs, sockaddr, sockaddr_in, sockaddr_in6
from dataproxy._core.server.calls cimport Endpoint

cdef uint8_t[12] MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]


cdef int address_bytes(const Address* a, uint8_t out[16], size_t* n) noexcept nogil:
    """Write the bytes of a host, of an IPv4 address in IPv6 form those of IPv4, and return the port."""
    cdef const sockaddr_in* v4 = <const sockaddr_in*>&a.raw
    cdef const sockaddr_in6* v6 = <const sockaddr_in6*>&a.raw
    cdef const uint8_t* raw = <const uint8_t*>&v6.sin6_addr
    n[0] = 0
    if a.raw.ss_family == AF_INET:
        n[0] = 4
        memcpy(out, &v4.sin_addr, 4)
        return ntohs(v4.sin_port)
    if a.raw.ss_family == AF_INET6:
        n[0] = 4 if memcmp(raw, MAPPED, sizeof(MAPPED)) == 0 else 16
        memcpy(out, raw + 16 - n[0], n[0])
        return ntohs(v6.sin6_port)
    return -1


cdef void ends_note(int fd, const Address* peer, Endpoint* near, Endpoint* far) noexcept nogil:
    """Note the addresses of both ends of a connection."""
    cdef Address own
    own.n = sizeof(own.raw)
    if getsockname(fd, <sockaddr*>&own.raw, &own.n) == 0:
        near.port = address_bytes(&own, near.address, &near.n)
    far.port = address_bytes(peer, far.address, &far.n)


cdef Host host_of(const Endpoint* end) noexcept nogil:
    """Return an end of a connection as a host."""
    cdef Host host
    memset(&host, 0, sizeof(Host))
    memcpy(host.address, end.address, end.n)
    host.n, host.port = end.n, end.port
    return host
