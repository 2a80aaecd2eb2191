"""One epoll set: interest bits in, readiness bits out.

Locality: the loop that owns the set.  Locks: none.
"""

from libc.errno cimport EINTR, errno
from libc.stdint cimport uint32_t

from dataproxy._core.base.status cimport ST_OK, ST_SYSTEM
from dataproxy._core.plat.epoll cimport (
    EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLRDHUP,
    epoll_create1, epoll_ctl, epoll_event, epoll_wait,
)
from dataproxy._core.plat.socket cimport close


cdef int poller_open(Poller* p) noexcept nogil:
    """Make the epoll set; ST_OK or ST_SYSTEM."""
    p.error = 0
    p.epfd = epoll_create1(EPOLL_CLOEXEC)
    if p.epfd < 0:
        p.error = errno
        return ST_SYSTEM
    return ST_OK


cdef void poller_close(Poller* p) noexcept nogil:
    """Release the epoll set."""
    if p.epfd >= 0:
        close(p.epfd)
        p.epfd = -1


cdef int _control(Poller* p, int op, int fd, void* tag, int interest) noexcept nogil:
    """Tell epoll about one descriptor."""
    cdef epoll_event event
    event.events = 0
    event.data.ptr = tag
    if interest & POLL_READ:
        # Half-close is watched only together with reading.  Otherwise a loop that has stopped reading on purpose
        # would be woken all the time, because epoll is level-triggered.
        event.events |= EPOLLIN | EPOLLRDHUP
    if interest & POLL_WRITE:
        event.events |= EPOLLOUT
    if epoll_ctl(p.epfd, op, fd, &event) < 0:
        p.error = errno
        return ST_SYSTEM
    return ST_OK


cdef int poller_add(Poller* p, Transport* t, void* tag, int interest) noexcept nogil:
    """Watch a transport; ST_OK or ST_SYSTEM."""
    return _control(p, EPOLL_CTL_ADD, t.fd, tag, interest)


cdef int poller_set(Poller* p, Transport* t, void* tag, int interest) noexcept nogil:
    """Change the interest of a watched transport; ST_OK or ST_SYSTEM."""
    return _control(p, EPOLL_CTL_MOD, t.fd, tag, interest)


cdef void poller_remove(Poller* p, Transport* t) noexcept nogil:
    """Stop watching a transport."""
    poller_remove_fd(p, t.fd)


cdef int poller_add_fd(Poller* p, int fd, void* tag, int interest) noexcept nogil:
    """Watch a descriptor of io itself; ST_OK or ST_SYSTEM."""
    return _control(p, EPOLL_CTL_ADD, fd, tag, interest)


cdef int poller_set_fd(Poller* p, int fd, void* tag, int interest) noexcept nogil:
    """Change the interest of a watched descriptor; ST_OK or ST_SYSTEM."""
    return _control(p, EPOLL_CTL_MOD, fd, tag, interest)


cdef void poller_remove_fd(Poller* p, int fd) noexcept nogil:
    """Stop watching a descriptor."""
    cdef epoll_event event
    event.events = 0
    event.data.ptr = NULL
    if fd >= 0:
        epoll_ctl(p.epfd, EPOLL_CTL_DEL, fd, &event)


cdef int poller_wait(Poller* p, PollEvent* out, int limit, int64_t timeout_us) noexcept nogil:
    """Wait for readiness; returns the number of events, 0 on timeout or interruption, or ST_SYSTEM."""
    cdef epoll_event events[POLL_BATCH]
    cdef int most = POLL_BATCH
    cdef int timeout_ms = -1
    cdef int i
    cdef int n
    cdef uint32_t bits
    if timeout_us >= 0:
        timeout_ms = 3600000
        if timeout_us // 1000 < 3600000:
            timeout_ms = <int>((timeout_us + 999) // 1000)
    if limit < most:
        most = limit
    n = epoll_wait(p.epfd, events, most, timeout_ms)
    if n < 0:
        if errno == EINTR:
            return 0
        p.error = errno
        return ST_SYSTEM
    for i in range(n):
        bits = events[i].events
        out[i].tag = events[i].data.ptr
        out[i].ready = 0
        if bits & (EPOLLIN | EPOLLRDHUP):
            out[i].ready |= POLL_READ
        if bits & EPOLLOUT:
            out[i].ready |= POLL_WRITE
        if bits & (EPOLLERR | EPOLLHUP):
            out[i].ready |= POLL_HANGUP
    return n
