"""One epoll set, level-triggered but for the wake-up of the loop that owns it.

Its owner gives a tag to every member.  Many signals before the loop clears them cost one write.
"""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.net.transport cimport Transport


cdef enum PollBits:
    POLL_READ = 1           # bytes or the end of the stream can be read
    POLL_WRITE = 2
    POLL_HANGUP = 4         # error or both sides closed; always reported, there may still be bytes to read
    POLL_EDGE = 8           # interest only: reported once for each change, not as long as it lasts


cdef enum:
    POLL_BATCH = 256        # most events of one wait


ctypedef struct PollEvent:
    void* tag
    int ready               # PollBits


ctypedef struct Poller:     # owned by one loop
    int epfd                # -1 while closed
    int error               # errno of the last ST_SYSTEM


cdef int poller_open(Poller* p) noexcept nogil
cdef void poller_close(Poller* p) noexcept nogil
# Interest: POLL_READ | POLL_WRITE, or 0 for hang-ups only.  ST_OK or ST_SYSTEM.
cdef int poller_add(Poller* p, Transport* t, void* tag, int interest) noexcept nogil
cdef int poller_set(Poller* p, Transport* t, void* tag, int interest) noexcept nogil
cdef void poller_remove(Poller* p, Transport* t) noexcept nogil     # before the transport is closed
# The same for descriptors of io itself (wake-ups, listeners).
cdef int poller_add_fd(Poller* p, int fd, void* tag, int interest) noexcept nogil
cdef void poller_remove_fd(Poller* p, int fd) noexcept nogil
# Wait up to timeout_us (negative: for ever) for at most `limit` (capped by POLL_BATCH) events.  Returns
# their number; 0 on timeout or interruption; ST_SYSTEM.  The timeout is rounded up to milliseconds.
cdef int poller_wait(Poller* p, PollEvent* out, int limit, int64_t timeout_us) noexcept nogil


cdef enum WakeupState:
    WK_QUIET = 0            # the owner sleeps or works: the next signal writes to the eventfd
    WK_CALLED = 1           # from a signal until the owner clears it
    WK_POLLED = 2           # the owner looks at this flag all the time: the next signal writes nothing


ctypedef struct Wakeup:     # an eventfd with a flag in front of it
    int fd                  # -1 while closed
    int64_t pending         # atomic: WakeupState
    int64_t signallers      # atomic: threads inside of wakeup_signal
    uint32_t generation     # of the process that opened it


cdef int wakeup_open(Wakeup* w) noexcept nogil                              # ST_OK or ST_SYSTEM
cdef void wakeup_close(Wakeup* w) noexcept nogil                            # waits for signals under way
cdef int wakeup_watch(Wakeup* w, Poller* p, void* tag) noexcept nogil       # reports POLL_READ with the tag
cdef void wakeup_signal(Wakeup* w) noexcept nogil                           # any thread, after posting
cdef void wakeup_clear(Wakeup* w) noexcept nogil                            # owner, before looking at the inbox
cdef void wakeup_poll(Wakeup* w) noexcept nogil                             # owner: signals write nothing until
cdef bint wakeup_rest(Wakeup* w) noexcept nogil                             # this; False if there was one
cdef bint wakeup_called(const Wakeup* w) noexcept nogil                     # owner: whether there was one
