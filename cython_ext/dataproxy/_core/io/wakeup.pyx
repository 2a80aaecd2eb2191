"""An eventfd with a flag in front of it."""

from dataproxy._core.base.status cimport ST_OK, ST_SYSTEM
from dataproxy._core.io.poller cimport POLL_READ, poller_add_fd
from dataproxy._core.plat.atomic cimport atomic_store, atomic_swap
from dataproxy._core.plat.eventfd cimport EFD_CLOEXEC, EFD_NONBLOCK, eventfd, eventfd_read, eventfd_t, eventfd_write
from dataproxy._core.plat.socket cimport close


cdef int wakeup_open(Wakeup* w) noexcept nogil:
    """Make the eventfd.

    Locality: owner.
    Locks: none.
    """
    atomic_store(&w.pending, 0)
    w.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
    return ST_OK if w.fd >= 0 else ST_SYSTEM


cdef void wakeup_close(Wakeup* w) noexcept nogil:
    """Release the eventfd.

    Locality: owner, once no other thread can signal.
    Locks: none.
    """
    if w.fd >= 0:
        close(w.fd)
        w.fd = -1


cdef int wakeup_watch(Wakeup* w, Poller* p, void* tag) noexcept nogil:
    """Register in the owner's poller.

    Locality: owner.
    Locks: none.
    """
    return poller_add_fd(p, w.fd, tag, POLL_READ)


cdef void wakeup_signal(Wakeup* w) noexcept nogil:
    """Wake the owner unless a wake-up is pending already.

    Locality: any thread.
    Locks: none.
    """
    if atomic_swap(&w.pending, 1) == 0:
        eventfd_write(w.fd, 1)


cdef void wakeup_clear(Wakeup* w) noexcept nogil:
    """Make the next signal write again.

    Locality: owner.
    Locks: none.

    The eventfd is drained before the flag goes: the other way round, a signal in between would leave
    the flag set over an empty eventfd, and all later signals would be lost.  A signal in between
    writes nothing, but its work is posted already and the owner looks right after this call.
    """
    cdef eventfd_t value = 0
    eventfd_read(w.fd, &value)
    atomic_swap(&w.pending, 0)
