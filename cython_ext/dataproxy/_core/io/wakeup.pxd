"""Wake-up of a loop: many signals before the loop clears them cost one write."""

from libc.stdint cimport int64_t

from dataproxy._core.io.poller cimport Poller


ctypedef struct Wakeup:
    int fd                  # -1 while closed
    int64_t pending         # atomic: 1 from a signal until the owner clears it


cdef int wakeup_open(Wakeup* w) noexcept nogil                              # ST_OK or ST_SYSTEM
cdef void wakeup_close(Wakeup* w) noexcept nogil                            # nobody may signal any more
cdef int wakeup_watch(Wakeup* w, Poller* p, void* tag) noexcept nogil       # reports POLL_READ with the tag
cdef void wakeup_signal(Wakeup* w) noexcept nogil                           # any thread, after posting
cdef void wakeup_clear(Wakeup* w) noexcept nogil                            # owner, before looking at the inbox
