"""Deadline heap: intrusive nodes, so arming and cancelling allocate nothing per timer."""

from libc.stdint cimport int64_t


cdef enum:
    NOT_ARMED = -1


ctypedef struct Timer:
    int64_t due_us      # when it fires
    int64_t slot        # place in the heap, NOT_ARMED outside it
    int kind            # used by the owner of the heap only: the kind of object that the node belongs to
    void* owner


ctypedef struct Timers:     # owned by one thread
    Timer** heap
    int64_t n
    int64_t cap


cdef void timers_init(Timers* t) noexcept nogil
cdef void timers_free(Timers* t) noexcept nogil
cdef void timer_init(Timer* node, int kind, void* owner) noexcept nogil
cdef int timers_arm(Timers* t, Timer* node, int64_t due_us) noexcept nogil
cdef void timers_cancel(Timers* t, Timer* node) noexcept nogil
cdef Timer* timers_pop(Timers* t, int64_t now_us) noexcept nogil
cdef int64_t timers_next(const Timers* t) noexcept nogil
