"""Numeric socket addresses over inet_pton and inet_ntop.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memset

from dataproxy._core.base.status cimport ST_INVALID, ST_OK
from dataproxy._core.plat.socket cimport (
    AF_INET, AF_INET6, htons, inet_ntop, inet_pton, ntohs, sockaddr_in, sockaddr_in6,
)

cdef uint8_t[12] MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]


cdef int address_parse(const char* host, uint16_t port, Address* out) noexcept nogil:
    """Fill ``out`` from a numeric IPv4 or IPv6 text; ST_OK or ST_INVALID."""
    cdef sockaddr_in* v4 = <sockaddr_in*>&out.raw
    cdef sockaddr_in6* v6 = <sockaddr_in6*>&out.raw
    memset(out, 0, sizeof(Address))
    if inet_pton(AF_INET, host, &v4.sin_addr) == 1:
        v4.sin_family = <unsigned short>AF_INET
        v4.sin_port = htons(port)
        out.n = sizeof(sockaddr_in)
        return ST_OK
    memset(out, 0, sizeof(Address))
    if inet_pton(AF_INET6, host, &v6.sin6_addr) == 1:
        v6.sin6_family = <unsigned short>AF_INET6
        v6.sin6_port = htons(port)
        out.n = sizeof(sockaddr_in6)
        return ST_OK
    return ST_INVALID


cdef int address_text(const Address* a, char text[ADDRESS_TEXT]) noexcept nogil:
    """Write the numeric host into ``text`` and return the port; -1 if it is not an internet address."""
    cdef const sockaddr_in* v4 = <const sockaddr_in*>&a.raw
    cdef const sockaddr_in6* v6 = <const sockaddr_in6*>&a.raw
    cdef const uint8_t* raw
    text[0] = 0
    if a.raw.ss_family == AF_INET:
        inet_ntop(AF_INET, &v4.sin_addr, text, ADDRESS_TEXT)
        return ntohs(v4.sin_port)
    if a.raw.ss_family == AF_INET6:
        raw = <const uint8_t*>&v6.sin6_addr
        if memcmp(raw, MAPPED, sizeof(MAPPED)) == 0:     # an IPv4 peer of a socket that serves both families
            inet_ntop(AF_INET, raw + sizeof(MAPPED), text, ADDRESS_TEXT)
        else:
            inet_ntop(AF_INET6, raw, text, ADDRESS_TEXT)
        return ntohs(v6.sin6_port)
    return -1


cdef bint address_is_any(const Address* a) noexcept nogil:
    """Tell whether an address is "::", the IPv6 address that stands for all addresses of the machine."""
    cdef const uint8_t* raw = <const uint8_t*>&(<const sockaddr_in6*>&a.raw).sin6_addr
    cdef size_t i
    if a.raw.ss_family != AF_INET6:
        return False
    for i in range(16):
        if raw[i]:
            return False
    return True
