"""Plain TCP as a transport: EINTR is retried here, and SIGPIPE is never raised.

Locks: none.
"""

from libc.errno cimport EAGAIN, EINPROGRESS, EINTR, EISCONN, errno
from libc.stdint cimport int64_t
from libc.string cimport memset

from dataproxy._core.base.status cimport ST_EOF, ST_OK, ST_SYSTEM, ST_WANT_READ, ST_WANT_WRITE
from dataproxy._core.plat.socket cimport (
    F_GETFL, F_SETFL, IPPROTO_TCP, MSG_NOSIGNAL, O_NONBLOCK, SIOCOUTQ, SO_ERROR, SO_KEEPALIVE, SO_RCVBUF, SO_SNDBUF,
    SHUT_WR, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM, SOL_SOCKET, TCP_NODELAY, close, connect, fcntl, getpeername,
    getsockopt, ioctl, msghdr, recv, sendmsg, setsockopt, shutdown, sockaddr, socket, socklen_t,
)


cdef TransportOps TCP
TCP.name = "tcp"
TCP.open = tcp_open
TCP.start = tcp_start
TCP.finish = tcp_finish
TCP.recv = tcp_recv
TCP.send = tcp_send
TCP.held = tcp_held
TCP.end = tcp_end
TCP.close = tcp_close


cdef const TransportOps* transport_tcp() noexcept nogil:
    """Return the table of plain TCP.

    Locality: any thread.
    """
    return &TCP


cdef void transport_init(Transport* t, const TransportOps* ops) noexcept nogil:
    """Make ``t`` a closed transport with the function table ``ops``.

    Locality: owner.
    """
    t.ops = ops
    t.fd = -1
    t.error = 0
    t.state = NULL
    t.unsent = 0
    t.more = False
    t.context = NULL
    t.name = NULL
    t.label = NULL


cdef int tcp_open(Transport* t, int family, const TransportOptions* options) noexcept nogil:
    """Make a non-blocking, close-on-exec stream socket; ST_OK or ST_SYSTEM.  Locality: owner."""
    t.fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    if t.fd < 0:
        return _failed(t)
    return _apply(t, options)


cdef int transport_adopt(Transport* t, int fd, const TransportOptions* options) noexcept nogil:
    """Take over a connected descriptor; ST_OK or ST_SYSTEM.

    Locality: owner.
    """
    cdef int flags = fcntl(fd, F_GETFL)
    t.fd = fd
    if flags < 0:
        return _failed(t)
    if not flags & O_NONBLOCK and fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0:
        return _failed(t)
    return _apply(t, options)


cdef int transport_peer(Transport* t, Address* out) noexcept nogil:
    """Read the peer's address; ST_OK or ST_SYSTEM.

    Locality: owner.
    """
    memset(out, 0, sizeof(Address))
    out.n = sizeof(out.raw)
    if getpeername(t.fd, <sockaddr*>&out.raw, &out.n) < 0:
        return _failed(t)
    return ST_OK


cdef int _failed(Transport* t) noexcept nogil:
    """Keep errno beside the status.  Locality: owner."""
    t.error = errno
    return ST_SYSTEM


cdef int _apply(Transport* t, const TransportOptions* options) noexcept nogil:
    """Set the socket options; options that this kind of socket does not have are skipped.

    Locality: owner.
    """
    cdef int one = 1
    setsockopt(t.fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(int))
    if options == NULL or not options.nagle:
        setsockopt(t.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(int))
    if options != NULL and options.send_buffer > 0:
        if setsockopt(t.fd, SOL_SOCKET, SO_SNDBUF, &options.send_buffer, sizeof(int)) < 0:
            return _failed(t)
    if options != NULL and options.recv_buffer > 0:
        if setsockopt(t.fd, SOL_SOCKET, SO_RCVBUF, &options.recv_buffer, sizeof(int)) < 0:
            return _failed(t)
    return ST_OK


cdef int tcp_start(Transport* t, const Address* peer) noexcept nogil:
    """Begin a non-blocking connect.  Locality: owner."""
    if connect(t.fd, <const sockaddr*>&peer.raw, peer.n) == 0 or errno == EISCONN:
        return ST_OK
    # An interrupted connect continues in the background, like one in progress.
    if errno == EINPROGRESS or errno == EINTR:
        return ST_WANT_WRITE
    return _failed(t)


cdef int tcp_finish(Transport* t) noexcept nogil:
    """Fetch the result of a connect.  Locality: owner."""
    cdef int error = 0
    cdef socklen_t n = sizeof(int)
    cdef Address peer
    if getsockopt(t.fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0:
        return _failed(t)
    if error != 0:
        t.error = error
        return ST_SYSTEM
    # No error and no peer: the handshake is not complete (this call came too early).
    if transport_peer(t, &peer) != ST_OK:
        return ST_WANT_WRITE
    return ST_OK


cdef int tcp_recv(Transport* t, void* p, size_t n, size_t* got) noexcept nogil:
    """Read up to ``n`` bytes.  Locality: owner."""
    cdef ssize_t r
    got[0] = 0
    while True:
        r = recv(t.fd, p, n, 0)
        if r > 0:
            got[0] = <size_t>r
            return ST_OK
        if r == 0:
            return ST_EOF
        if errno == EAGAIN:
            return ST_WANT_READ
        if errno != EINTR:
            return _failed(t)


cdef int tcp_send(Transport* t, const iovec* parts, int n, size_t* sent) noexcept nogil:
    """Write as many bytes as the socket takes now.  Locality: owner."""
    cdef msghdr message
    cdef ssize_t r
    sent[0] = 0
    memset(&message, 0, sizeof(msghdr))
    message.msg_iov = <iovec*>parts
    message.msg_iovlen = <size_t>n
    while True:
        r = sendmsg(t.fd, &message, MSG_NOSIGNAL)
        if r >= 0:
            sent[0] = <size_t>r
            return ST_OK
        if errno == EAGAIN:
            return ST_WANT_WRITE
        if errno != EINTR:
            return _failed(t)


cdef int64_t tcp_held(Transport* t) noexcept nogil:
    """Return the bytes that the socket still holds, unacknowledged by the peer's host.  Locality: owner."""
    cdef int waiting = 0
    return waiting if ioctl(t.fd, SIOCOUTQ, &waiting) == 0 else 0


cdef int tcp_end(Transport* t) noexcept nogil:
    """End this side of the stream.  Locality: owner."""
    return ST_OK if shutdown(t.fd, SHUT_WR) == 0 else _failed(t)


cdef void tcp_close(Transport* t) noexcept nogil:
    """Release the descriptor.  Locality: owner."""
    cdef int fd = t.fd
    t.fd = -1                   # before close(): a child forked in between must not close a number that is in use again
    if fd >= 0:
        close(fd)
