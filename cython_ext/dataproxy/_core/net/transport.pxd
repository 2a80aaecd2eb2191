"""A byte stream to a peer behind a function table: plain TCP is here, TLS in ``tls``.

Callers see statuses and no descriptor.  An operation that cannot continue returns the readiness it waits for.  This
may be the other direction (a TLS transport may have to read before it can send).
"""

from libc.stdint cimport int64_t

from dataproxy._core.base.address cimport Address
from dataproxy._core.plat.socket cimport iovec


ctypedef struct TransportOptions:
    bint nagle              # let the kernel delay small segments
    int send_buffer         # bytes; 0 = the system's choice
    int recv_buffer


ctypedef struct Transport   # declared below


ctypedef struct TransportOps:
    const char* name
    # Make a closed transport's endpoint for an address family: ST_OK or ST_SYSTEM.  `options` may be NULL.
    int (*open)(Transport* t, int family, const TransportOptions* options) noexcept nogil
    # Begin a non-blocking connect: ST_OK at once, ST_WANT_WRITE (then `finish`), ST_SYSTEM.
    int (*start)(Transport* t, const Address* peer) noexcept nogil
    # Result of a connect, after the readiness that it asked for: ST_OK, ST_WANT_*, ST_SYSTEM.
    int (*finish)(Transport* t) noexcept nogil
    # Read up to n bytes: ST_OK (*got > 0), ST_WANT_READ, ST_WANT_WRITE, ST_EOF, ST_SYSTEM.
    int (*recv)(Transport* t, void* p, size_t n, size_t* got) noexcept nogil
    # Write as much as the socket takes now: ST_OK (*sent > 0, maybe less than all), ST_WANT_*, ST_SYSTEM.
    int (*send)(Transport* t, const iovec* parts, int n, size_t* sent) noexcept nogil
    # Number of written bytes that the peer's host has not acknowledged; 0 if that is not known.
    int64_t (*held)(Transport* t) noexcept nogil
    # End this side of the stream; the peer's bytes can still be read: ST_OK or ST_SYSTEM.
    int (*end)(Transport* t) noexcept nogil
    # Release the descriptor; does nothing if it is closed.
    void (*close)(Transport* t) noexcept nogil


ctypedef struct Transport:  # owned by one loop; never copied while open
    const TransportOps* ops
    int fd                  # -1 while closed; only transport and poller touch it
    int error               # errno of the last ST_SYSTEM, or one of TlsFault (net/tls)
    void* state             # the transport's own (TLS stream); NULL for TCP
    # Bytes that `send` has taken and that are not in the socket: `send` without parts writes them.  0 for TCP.
    size_t unsent
    bint more               # `recv` has more to give, though the socket may be empty; False for TCP
    # Set by the owner before `open`, for transports that need it; borrowed.
    void* context           # TlsHolder
    const char* name        # the peer's host, as the user knows it
    const char* label       # of the peer; sessions are kept by it


cdef const TransportOps* transport_tcp() noexcept nogil
cdef void transport_init(Transport* t, const TransportOps* ops) noexcept nogil
# Take over a connected descriptor (it becomes non-blocking and belongs to `t`); ST_OK or ST_SYSTEM.
cdef int transport_adopt(Transport* t, int fd, const TransportOptions* options) noexcept nogil
cdef int transport_peer(Transport* t, Address* out) noexcept nogil
