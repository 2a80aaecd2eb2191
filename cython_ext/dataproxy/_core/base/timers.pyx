"""Min-heap of deadlines.  One heap belongs to one thread; time is an argument.

A pairing heap (M. Fredman, R. Sedgewick, D. Sleator, R. Tarjan, Algorithmica 1, 1986): a tree in which no node is due
before its parent.  To arm a node or to move it to an earlier time takes a constant number of steps, to take one out a
number that on average grows with the logarithm of the nodes.

Locality: the thread that owns the heap.  Locks: none.
"""

from libc.stdint cimport int64_t


cdef void timers_init(Timers* t) noexcept nogil:
    """Make an empty heap; its nodes belong to others, so it has nothing to release."""
    t.first = NULL
    t.n = 0


cdef void timer_init(Timer* node, int kind, void* owner) noexcept nogil:
    """Make an idle node."""
    node.due_us = 0
    node.child = node.next = node.before = NULL
    node.armed = False
    node.kind = kind
    node.owner = owner


cdef inline Timer* _meld(Timer* a, Timer* b) noexcept nogil:
    """Make one tree of two, and return its root."""
    cdef Timer* root = a
    cdef Timer* below = b
    if b.due_us < a.due_us:
        root, below = b, a
    below.before = root
    below.next = root.child
    if root.child != NULL:
        root.child.before = below
    root.child = below
    return root


cdef inline void _cut(Timer* node) noexcept nogil:
    """Take a node that has a parent out of its tree, with all below it."""
    if node.before.child == node:
        node.before.child = node.next
    else:
        node.before.next = node.next
    if node.next != NULL:
        node.next.before = node.before
    node.next = node.before = NULL


cdef Timer* _meld_all(Timer* first) noexcept nogil:
    """Make one tree of a node's children, and return its root; NULL has none.

    Two by two from the front, and what comes of that from the back: in this order the average holds.
    """
    cdef Timer* pairs = NULL        # the last one first, by `next`
    cdef Timer* root = NULL
    cdef Timer* a
    cdef Timer* b
    while first != NULL:
        a = first
        b = a.next
        first = NULL
        a.next = a.before = NULL
        if b != NULL:
            first = b.next
            b.next = b.before = NULL
            a = _meld(a, b)
        a.next = pairs
        pairs = a
    while pairs != NULL:
        a = pairs
        pairs = a.next
        a.next = NULL
        root = a if root == NULL else _meld(root, a)
    return root


cdef inline void _add(Timers* t, Timer* node) noexcept nogil:
    t.first = node if t.first == NULL else _meld(t.first, node)


cdef void timers_arm(Timers* t, Timer* node, int64_t due_us) noexcept nogil:
    """Arm ``node`` for ``due_us``, or move it there."""
    if node.armed and due_us > node.due_us and node.child != NULL:
        timers_cancel(t, node)      # some below it may be due before it now
    if not node.armed:
        node.armed = True
        node.due_us = due_us
        t.n += 1
        _add(t, node)
        return
    if due_us < node.due_us and node.before != NULL:
        _cut(node)
        node.due_us = due_us
        _add(t, node)
    node.due_us = due_us


cdef void timers_cancel(Timers* t, Timer* node) noexcept nogil:
    """Disarm ``node``; does nothing if it is not armed."""
    cdef Timer* below
    if not node.armed:
        return
    below = _meld_all(node.child)
    node.child = NULL
    if node.before == NULL:
        t.first = below
    else:
        _cut(node)
        if below != NULL:
            _add(t, below)
    node.armed = False
    t.n -= 1


cdef Timer* timers_pop(Timers* t, int64_t now_us) noexcept nogil:
    """Take the first node that is due at ``now_us``, or NULL."""
    cdef Timer* node = t.first
    if node == NULL or node.due_us > now_us:
        return NULL
    timers_cancel(t, node)
    return node


cdef int64_t timers_next(const Timers* t) noexcept nogil:
    """Return the time in microseconds at which the first node is due, or -1 without one."""
    return t.first.due_us if t.first != NULL else -1
