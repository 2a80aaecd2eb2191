"""The listening sockets of one port of a hub, shared by its server loops."""

from libc.stdint cimport int64_t

from dataproxy._core.base.address cimport Address
from dataproxy._core.wire.api cimport WireOps


cdef enum:
    # Sockets of a listener: for a name with IPv4 and IPv6 addresses one of each, on the same port.
    FAMILIES = 2


ctypedef struct Listener:
    int fds[FAMILIES]       # -1 while closed; the second one also where the host has one address alone
    int port                # constant while open
    int error               # errno of the last ST_SYSTEM
    const WireOps* wire     # what is spoken there; constant
    size_t max_frame        # bytes of the largest frame that is taken; constant
    # Atomics.
    int64_t shut            # 1: the kernel refuses connections
    int64_t kills           # times that all its connections were to be closed
    int64_t accepted        # connections so far
    int64_t compat          # copies the reference server's quirks
    int64_t service_code    # 0, or the code that every data request gets
    int64_t load            # LoadSource (server/state), or 0..65534


cdef void listener_init(Listener* l) noexcept nogil
# `other` is the address of the other family, NULL without one: ST_OK or ST_SYSTEM.
cdef int listener_open(Listener* l, const Address* address, const Address* other, int backlog) noexcept nogil
cdef int listener_port(Listener* l) noexcept nogil                                          # -1 on an error
# ST_OK with a non-blocking descriptor and the peer's address; ST_WANT_READ when nobody is waiting;
# ST_LIMIT when the process is out of descriptors or the system out of memory; ST_SYSTEM.
cdef int listener_accept(Listener* l, int family, int* fd, Address* peer) noexcept nogil
cdef void listener_refuse(Listener* l) noexcept nogil               # the port stays ours
cdef int listener_resume(Listener* l, int backlog) noexcept nogil   # ST_OK or ST_SYSTEM
cdef void listener_close(Listener* l) noexcept nogil
