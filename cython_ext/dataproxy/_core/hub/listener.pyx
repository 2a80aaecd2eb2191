"""Bind, listen, accept."""

from libc.errno cimport (
    EAGAIN, ECONNABORTED, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EPROTO, errno,
)
from libc.string cimport memset

from dataproxy._core.base.status cimport ST_LIMIT, ST_OK, ST_SYSTEM, ST_WANT_READ
from dataproxy._core.io.address cimport ADDRESS_TEXT, address_is_any, address_text
from dataproxy._core.plat.atomic cimport atomic_store
from dataproxy._core.plat.socket cimport (
    AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, SO_REUSEADDR, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM, SOL_SOCKET,
    SHUT_RDWR, accept4, bind, close, getsockname, listen, setsockopt, shutdown, sockaddr,
    sockaddr_in, socket,
)


cdef int listener_open(Listener* l, const Address* address, int backlog) noexcept nogil:
    """Bind and listen; on a failure nothing stays open.

    Locality: owner.
    Locks: none.
    """
    cdef Address own
    cdef int chooser
    l.error = 0
    l.fd = -1
    chooser = _bound(l, address)
    # A port that the kernel chose is lost when the socket stops listening, one that was named is kept.
    if chooser >= 0 and (<const sockaddr_in*>&address.raw).sin_port == 0:
        own.n = sizeof(own.raw)
        if getsockname(chooser, <sockaddr*>&own.raw, &own.n) == 0:
            l.fd = _bound(l, &own)
        close(chooser)
    else:
        l.fd = chooser
    if l.fd >= 0 and listen(l.fd, backlog) < 0:
        l.error = errno
        listener_close(l)
    return ST_OK if l.fd >= 0 else ST_SYSTEM


cdef int _bound(Listener* l, const Address* address) noexcept nogil:
    """Return a socket that is bound to the address, -1 on an error.  Locality: owner.  Locks: none."""
    cdef int one = 1, only
    cdef int fd = socket(address.raw.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    if fd < 0:
        l.error = errno
        return -1
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(int))
    if address.raw.ss_family == AF_INET6:
        only = not address_is_any(address)      # "::" stands for both families
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(int))
    if bind(fd, <const sockaddr*>&address.raw, address.n) < 0:
        l.error = errno
        close(fd)
        return -1
    return fd


cdef int listener_port(Listener* l) noexcept nogil:
    """Return the port, which the kernel chose if 0 was asked for.

    Locality: owner.
    Locks: none.
    """
    cdef Address own
    cdef char text[ADDRESS_TEXT]
    memset(&own, 0, sizeof(Address))
    own.n = sizeof(own.raw)
    if getsockname(l.fd, <sockaddr*>&own.raw, &own.n) < 0:
        l.error = errno
        return -1
    return address_text(&own, text)


cdef int listener_accept(Listener* l, int* fd, Address* peer) noexcept nogil:
    """Take one waiting connection.

    Locality: any door loop.
    Locks: none.
    """
    while True:
        memset(peer, 0, sizeof(Address))
        peer.n = sizeof(peer.raw)
        fd[0] = accept4(l.fd, <sockaddr*>&peer.raw, &peer.n, SOCK_NONBLOCK | SOCK_CLOEXEC)
        if fd[0] >= 0:
            return ST_OK
        if errno == EAGAIN:
            return ST_WANT_READ
        # These belong to the connection that was waiting, not to the listener.
        if errno == EINTR or errno == ECONNABORTED or errno == EPROTO or errno == EPERM:
            continue
        if errno == EMFILE or errno == ENFILE or errno == ENOBUFS or errno == ENOMEM:
            return ST_LIMIT
        return ST_SYSTEM


cdef void listener_refuse(Listener* l) noexcept nogil:
    """Have the kernel refuse connections from now on; the descriptor stays.

    Locality: any thread.
    Locks: none.
    """
    atomic_store(&l.shut, 1)    # before the doors find out
    if l.fd >= 0:
        shutdown(l.fd, SHUT_RDWR)


cdef int listener_resume(Listener* l, int backlog) noexcept nogil:
    """Have the kernel take connections again, on the same port.

    Locality: any thread.
    Locks: none.
    """
    if listen(l.fd, backlog) < 0:
        l.error = errno
        return ST_SYSTEM
    atomic_store(&l.shut, 0)
    return ST_OK


cdef void listener_close(Listener* l) noexcept nogil:
    """Release the socket.

    Locality: owner.
    Locks: none.
    """
    if l.fd >= 0:
        close(l.fd)
        l.fd = -1
