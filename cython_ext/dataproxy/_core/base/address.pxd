"""Numeric socket addresses: text to sockaddr and back (name lookup is done above, in Python)."""

from libc.stdint cimport uint16_t

from dataproxy._core.plat.socket cimport sockaddr_storage, socklen_t


cdef enum:
    ADDRESS_TEXT = 64       # room for any numeric address and its NUL


ctypedef struct Address:
    sockaddr_storage raw
    socklen_t n             # bytes of `raw` in use


# Fill `out` from a numeric IPv4 or IPv6 text: ST_OK or ST_INVALID.
cdef int address_parse(const char* host, uint16_t port, Address* out) noexcept nogil
# Write the numeric host into `text` and return the port.  An IPv4 address in IPv6 form is written as IPv4.
# -1: not an internet address, and `text` is "".
cdef int address_text(const Address* a, char text[ADDRESS_TEXT]) noexcept nogil
# Tell whether an address is "::".
cdef bint address_is_any(const Address* a) noexcept nogil
