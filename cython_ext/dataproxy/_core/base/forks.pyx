"""Forks, seen by the C library's own hooks: they run whoever forks, Python or not.

A forked child has one thread.  Locks, lists and buffers of the parent's other threads are left as they were in
the middle of whatever those did, so nothing of them is used in the child; only descriptors are closed, which the
two processes share.
"""


from dataproxy._core.plat.thread cimport (
    pthread_atfork, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock,
)

cdef pthread_mutex_t lock
cdef ForkNode* first = NULL     # guarded by lock

this_generation = 1


cdef void forks_watch(ForkNode* n, void (*in_child)(void* context) noexcept nogil, void* context) noexcept nogil:
    """Have ``in_child(context)`` called first thing in every forked child; it may only close descriptors.

    Locality: any thread.  Locks: takes the list's own, a leaf.
    """
    global first
    n.context = context
    n.in_child = in_child
    n.generation = this_generation
    n.previous = NULL
    pthread_mutex_lock(&lock)
    n.next = first
    if first != NULL:
        first.previous = n
    first = n
    pthread_mutex_unlock(&lock)


cdef void forks_unwatch(ForkNode* n) noexcept nogil:
    """Forget it; nothing happens to one that was never watched, or by another process.

    Locality: any thread.  Locks: takes the list's own, a leaf.
    """
    global first
    if n.generation != this_generation:
        return
    pthread_mutex_lock(&lock)
    if n.previous != NULL:
        n.previous.next = n.next
    else:
        first = n.next
    if n.next != NULL:
        n.next.previous = n.previous
    pthread_mutex_unlock(&lock)
    n.generation = 0


cdef void _before() noexcept nogil:
    """Let nobody be in the middle of the list while the process is copied.  Locality: the forking thread."""
    pthread_mutex_lock(&lock)


cdef void _in_parent() noexcept nogil:
    """Go on.  Locality: the forking thread."""
    pthread_mutex_unlock(&lock)


cdef void _in_child() noexcept nogil:
    """Become another generation, and give up what belongs to the parent.  Locality: the child's only thread."""
    global first, this_generation
    cdef ForkNode* n = first
    this_generation += 1
    while n != NULL:
        n.in_child(n.context)
        n = n.next
    first = NULL
    pthread_mutex_unlock(&lock)


pthread_mutex_init(&lock, NULL)
if pthread_atfork(_before, _in_parent, _in_child) != 0:
    raise MemoryError("no memory to register the fork handler")
