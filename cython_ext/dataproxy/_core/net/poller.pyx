"""One epoll set: interest bits in, readiness bits out; and its wake-up, an eventfd with a flag in front of it.

Locality: the loop that owns the set, except where a function says otherwise.  Locks: none.
"""

from libc.errno cimport EINTR, errno
from libc.stdint cimport uint32_t

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.status cimport ST_OK, ST_SYSTEM
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_replace, atomic_store, atomic_swap
from dataproxy._core.plat.epoll cimport (
    EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL,
    EPOLL_CTL_MOD, epoll_create1, epoll_ctl, epoll_event, epoll_wait,
)
from dataproxy._core.plat.eventfd cimport EFD_CLOEXEC, EFD_NONBLOCK, eventfd, eventfd_write
from dataproxy._core.plat.sched cimport sched_yield
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
    if interest & POLL_EDGE:
        event.events |= EPOLLET
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


cdef int wakeup_open(Wakeup* w) noexcept nogil:
    """Make the eventfd; ST_OK or ST_SYSTEM.

    Locality: owner.
    """
    atomic_store(&w.pending, WK_QUIET)
    atomic_store(&w.signallers, 0)
    w.generation = this_generation
    w.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
    return ST_OK if w.fd >= 0 else ST_SYSTEM


cdef void wakeup_close(Wakeup* w) noexcept nogil:
    """Release the eventfd; later signals do nothing.

    Locality: owner, or who has joined it, after its last look at the flag.

    A thread that has put something into the inbox signals behind its lock, so it may still be on the way to the
    eventfd, whose number may soon stand for something else.  It is waited for, for the length of a `write`.  Who
    changes the flag after this function did finds it set; who did before has been counted.  A forked child has none
    of the threads that its parent counted.
    """
    if w.fd >= 0:
        atomic_swap(&w.pending, WK_CALLED)
        while w.generation == this_generation and atomic_load(&w.signallers) > 0:
            sched_yield()
        close(w.fd)
        w.fd = -1


cdef int wakeup_watch(Wakeup* w, Poller* p, void* tag) noexcept nogil:
    """Register the eventfd in the owner's poller; ST_OK or ST_SYSTEM.

    Locality: owner.
    """
    return poller_add_fd(p, w.fd, tag, POLL_READ | POLL_EDGE)


cdef void wakeup_signal(Wakeup* w) noexcept nogil:
    """Wake the owner unless a wake-up is pending already.

    Locality: any thread.
    """
    atomic_add(&w.signallers, 1)
    if atomic_swap(&w.pending, WK_CALLED) == WK_QUIET:
        eventfd_write(w.fd, 1)
    atomic_add(&w.signallers, -1)


cdef void wakeup_clear(Wakeup* w) noexcept nogil:
    """Reset the flag, so that the next signal writes to the eventfd again.

    Locality: owner.

    The eventfd is never read: it reports each write once, and its 64 bits do not fill up.  A signal before this call
    writes nothing if the flag is set, but its work is in the inbox already, and the owner reads the inbox right after
    this call.  A signal after it writes again.
    """
    atomic_swap(&w.pending, WK_QUIET)


cdef void wakeup_poll(Wakeup* w) noexcept nogil:
    """Begin to look at the flag in place of sleeping: signals write nothing until ``wakeup_rest``.  Locality: owner."""
    atomic_replace(&w.pending, WK_QUIET, WK_POLLED)


cdef bint wakeup_called(const Wakeup* w) noexcept nogil:
    """Tell whether there was a signal since the flag was cleared.  Locality: owner."""
    return atomic_load(&w.pending) == WK_CALLED


cdef bint wakeup_rest(Wakeup* w) noexcept nogil:
    """End ``wakeup_poll``; False if there was a signal, which may have written nothing.  Locality: owner."""
    return atomic_replace(&w.pending, WK_POLLED, WK_QUIET)
