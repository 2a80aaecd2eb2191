"""Binary min-heap of deadlines.  One heap belongs to one thread; time is an argument.

Locality: the thread that owns the heap.  Locks: none.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK


cdef void timers_init(Timers* t) noexcept nogil:
    """Make an empty heap."""
    t.heap = NULL
    t.n = 0
    t.cap = 0


cdef void timers_free(Timers* t) noexcept nogil:
    """Release the heap (the nodes belong to others)."""
    free(t.heap)
    timers_init(t)


cdef void timer_init(Timer* node, int kind, void* owner) noexcept nogil:
    """Make an idle node."""
    node.due_us = 0
    node.slot = NOT_ARMED
    node.kind = kind
    node.owner = owner


cdef inline void _place(Timers* t, int64_t slot, Timer* node) noexcept nogil:
    t.heap[slot] = node
    node.slot = slot


cdef void _rise(Timers* t, int64_t slot) noexcept nogil:
    cdef Timer* node = t.heap[slot]
    cdef int64_t parent
    while slot > 0:
        parent = (slot - 1) // 2
        if t.heap[parent].due_us <= node.due_us:
            break
        _place(t, slot, t.heap[parent])
        slot = parent
    _place(t, slot, node)


cdef void _sink(Timers* t, int64_t slot) noexcept nogil:
    cdef Timer* node = t.heap[slot]
    cdef int64_t child
    while True:
        child = 2 * slot + 1
        if child >= t.n:
            break
        if child + 1 < t.n and t.heap[child + 1].due_us < t.heap[child].due_us:
            child += 1
        if t.heap[child].due_us >= node.due_us:
            break
        _place(t, slot, t.heap[child])
        slot = child
    _place(t, slot, node)


cdef int timers_arm(Timers* t, Timer* node, int64_t due_us) noexcept nogil:
    """Arm or move ``node`` to ``due_us``; ST_OK or ST_NO_MEMORY."""
    cdef Timer** grown
    cdef int64_t cap
    if node.slot == NOT_ARMED:
        if t.n == t.cap:
            cap = t.cap * 2 if t.cap else 64
            grown = <Timer**>realloc(t.heap, <size_t>cap * sizeof(Timer*))
            if grown == NULL:
                return ST_NO_MEMORY
            t.heap = grown
            t.cap = cap
        node.due_us = due_us
        _place(t, t.n, node)
        t.n += 1
        _rise(t, node.slot)
        return ST_OK
    if due_us < node.due_us:
        node.due_us = due_us
        _rise(t, node.slot)
    else:
        node.due_us = due_us
        _sink(t, node.slot)
    return ST_OK


cdef void timers_cancel(Timers* t, Timer* node) noexcept nogil:
    """Disarm ``node``; does nothing if it is not armed."""
    cdef int64_t slot = node.slot
    cdef Timer* last
    if slot == NOT_ARMED:
        return
    node.slot = NOT_ARMED
    t.n -= 1
    last = t.heap[t.n]
    if last == node:
        return
    _place(t, slot, last)
    _rise(t, slot)
    _sink(t, last.slot)


cdef Timer* timers_pop(Timers* t, int64_t now_us) noexcept nogil:
    """Take the first node that is due at ``now_us``, or NULL."""
    cdef Timer* node
    if t.n == 0 or t.heap[0].due_us > now_us:
        return NULL
    node = t.heap[0]
    timers_cancel(t, node)
    return node


cdef int64_t timers_next(const Timers* t) noexcept nogil:
    """Return the time in microseconds at which the first node is due, or -1 without one."""
    return t.heap[0].due_us if t.n else -1
