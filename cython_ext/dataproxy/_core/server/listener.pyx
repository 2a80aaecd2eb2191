"""Bind, listen, accept.

Locks: none.
"""

from libc.errno cimport (
    EADDRINUSE, EAGAIN, ECONNABORTED, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EPROTO, errno,
)
from libc.string cimport memset

from dataproxy._core.base.status cimport ST_LIMIT, ST_OK, ST_SYSTEM, ST_WANT_READ
from dataproxy._core.base.address cimport ADDRESS_TEXT, address_is_any, address_text
from dataproxy._core.plat.atomic cimport atomic_store
from dataproxy._core.plat.socket cimport (
    AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, SO_REUSEADDR, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM, SOL_SOCKET,
    SHUT_RDWR, accept4, bind, close, getsockname, listen, setsockopt, shutdown, sockaddr,
    sockaddr_in, socket,
)


cdef enum:
    PORT_TRIES = 64         # ports that the kernel may choose for one family and that are in use in the other


cdef void listener_init(Listener* l) noexcept nogil:
    """Make a listener without sockets.

    Locality: owner.
    """
    cdef int i
    memset(l, 0, sizeof(Listener))
    for i in range(<int>FAMILIES):
        l.fds[i] = -1


cdef int listener_open(Listener* l, const Address* address, const Address* other, int backlog) noexcept nogil:
    """Bind and listen, with ``other`` in both families on one port; on a failure nothing stays open.

    Locality: owner.
    """
    cdef bint chosen = (<const sockaddr_in*>&address.raw).sin_port == 0
    cdef int tries = <int>PORT_TRIES if chosen and other != NULL else 1
    while tries > 0:
        tries -= 1
        l.error = 0
        if _bind_both(l, address, other) == ST_OK and _listen(l, backlog) == ST_OK:
            return ST_OK
        listener_close(l)
        if l.error != EADDRINUSE:
            break
    return ST_SYSTEM


cdef int _bind_both(Listener* l, const Address* address, const Address* other) noexcept nogil:
    """Bind a socket for each address, the second to the port of the first.  Locality: owner."""
    cdef Address own, second
    cdef int chooser = _bound(l, address)
    l.fds[0] = chooser
    if chooser < 0:
        return ST_SYSTEM
    own.n = sizeof(own.raw)
    if getsockname(chooser, <sockaddr*>&own.raw, &own.n) < 0:
        l.error = errno
        return ST_SYSTEM
    # A port that the kernel chose is lost when the socket stops listening; a port given by number is kept.
    if (<const sockaddr_in*>&address.raw).sin_port == 0:
        l.fds[0] = _bound(l, &own)
        close(chooser)
    if l.fds[0] >= 0 and other != NULL:
        second = other[0]       # the port stands at the same place in addresses of both families
        (<sockaddr_in*>&second.raw).sin_port = (<const sockaddr_in*>&own.raw).sin_port
        l.fds[1] = _bound(l, &second)
    return ST_OK if l.error == 0 else ST_SYSTEM


cdef int _listen(Listener* l, int backlog) noexcept nogil:
    """Listen in every family, or in none.  Locality: any thread."""
    cdef int i
    for i in range(<int>FAMILIES):
        if l.fds[i] >= 0 and listen(l.fds[i], backlog) < 0:
            l.error = errno
            _shut(l)
            return ST_SYSTEM
    return ST_OK


cdef void _shut(Listener* l) noexcept nogil:
    """Make the kernel refuse connections in every family.  Locality: any thread."""
    cdef int i
    for i in range(<int>FAMILIES):
        if l.fds[i] >= 0:
            shutdown(l.fds[i], SHUT_RDWR)


cdef int _bound(Listener* l, const Address* address) noexcept nogil:
    """Return a socket that is bound to the address, -1 on an error.  Locality: owner."""
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
    """
    cdef Address own
    cdef char text[ADDRESS_TEXT]
    memset(&own, 0, sizeof(Address))
    own.n = sizeof(own.raw)
    if getsockname(l.fds[0], <sockaddr*>&own.raw, &own.n) < 0:
        l.error = errno
        return -1
    return address_text(&own, text)


cdef int listener_accept(Listener* l, int family, int* fd, Address* peer) noexcept nogil:
    """Take one waiting connection of a family, 0 or 1.

    Locality: any server loop.
    """
    while True:
        memset(peer, 0, sizeof(Address))
        peer.n = sizeof(peer.raw)
        fd[0] = accept4(l.fds[family], <sockaddr*>&peer.raw, &peer.n, SOCK_NONBLOCK | SOCK_CLOEXEC)
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
    """Have the kernel refuse connections from now on; the descriptors stay.

    Locality: any thread.
    """
    atomic_store(&l.shut, 1)    # before the server loops find out
    _shut(l)


cdef int listener_resume(Listener* l, int backlog) noexcept nogil:
    """Have the kernel take connections again, on the same port.

    Locality: any thread.
    """
    if _listen(l, backlog) != ST_OK:
        return ST_SYSTEM
    atomic_store(&l.shut, 0)
    return ST_OK


cdef void listener_close(Listener* l) noexcept nogil:
    """Release the sockets.

    Locality: owner.
    """
    cdef int i
    for i in range(<int>FAMILIES):
        if l.fds[i] >= 0:
            close(l.fds[i])
            l.fds[i] = -1
