"""Deadline heap of intrusive nodes: nothing is allocated, so arming cannot fail."""

from libc.stdint cimport int64_t


ctypedef struct Timer:
    int64_t due_us      # when it fires
    Timer* child        # the first of some nodes that are not due before it
    Timer* next         # the next child of the same node
    Timer* before       # the child before it, or the node whose first child it is; NULL: it is the heap's first
    bint armed          # it is in a heap
    int kind            # used by the owner of the heap only: the kind of object that the node belongs to
    void* owner


ctypedef struct Timers:     # owned by one thread
    Timer* first        # that is due first, or NULL
    int64_t n


cdef void timers_init(Timers* t) noexcept nogil
cdef void timer_init(Timer* node, int kind, void* owner) noexcept nogil
cdef void timers_arm(Timers* t, Timer* node, int64_t due_us) noexcept nogil
cdef void timers_cancel(Timers* t, Timer* node) noexcept nogil
cdef Timer* timers_pop(Timers* t, int64_t now_us) noexcept nogil
cdef int64_t timers_next(const Timers* t) noexcept nogil
