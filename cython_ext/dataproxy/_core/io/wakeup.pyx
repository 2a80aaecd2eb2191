"""An eventfd with a flag in front of it.

Locks: none.
"""

from dataproxy._core.base.status cimport ST_OK, ST_SYSTEM
from dataproxy._core.io.poller cimport POLL_READ, poller_add_fd
from dataproxy._core.plat.atomic cimport atomic_store, atomic_swap
from dataproxy._core.plat.eventfd cimport EFD_CLOEXEC, EFD_NONBLOCK, eventfd, eventfd_read, eventfd_t, eventfd_write
from dataproxy._core.plat.socket cimport close


cdef int wakeup_open(Wakeup* w) noexcept nogil:
    """Make the eventfd; ST_OK or ST_SYSTEM.

    Locality: owner.
    """
    atomic_store(&w.pending, 0)
    w.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
    return ST_OK if w.fd >= 0 else ST_SYSTEM


cdef void wakeup_close(Wakeup* w) noexcept nogil:
    """Release the eventfd.

    Locality: owner, once no other thread can signal.
    """
    if w.fd >= 0:
        close(w.fd)
        w.fd = -1


cdef int wakeup_watch(Wakeup* w, Poller* p, void* tag) noexcept nogil:
    """Register the eventfd in the owner's poller; ST_OK or ST_SYSTEM.

    Locality: owner.
    """
    return poller_add_fd(p, w.fd, tag, POLL_READ)


cdef void wakeup_signal(Wakeup* w) noexcept nogil:
    """Wake the owner unless a wake-up is pending already.

    Locality: any thread.
    """
    if atomic_swap(&w.pending, 1) == 0:
        eventfd_write(w.fd, 1)


cdef void wakeup_clear(Wakeup* w) noexcept nogil:
    """Reset the flag, so that the next signal writes to the eventfd again.

    Locality: owner.

    The eventfd is emptied before the flag is reset.  In the other order, a signal in between would leave the flag set
    with an empty eventfd, and all later signals would be lost.  In this order, a signal in between writes nothing, but
    its work is in the inbox already, and the owner reads the inbox right after this call.
    """
    cdef eventfd_t value = 0
    eventfd_read(w.fd, &value)
    atomic_swap(&w.pending, 0)
