"""Hooks of the C library for forks: they run for every fork, whether Python made it or not.

A forked child has one thread.  Locks, lists and buffers that the parent's other threads were using may be in any
state, so the child uses none of them.  It only closes the descriptors that both processes share.
"""


from dataproxy._core.plat.thread cimport (
    pthread_atfork, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock,
)

cdef pthread_mutex_t lock
cdef ForkNode* first = NULL     # guarded by lock

this_generation = 1


cdef void forks_watch(ForkNode* n, void (*in_child)(void* context) noexcept nogil, void* context) noexcept nogil:
    """Ask for a call of ``in_child(context)`` in every forked child, before other code; it may only close descriptors.

    Locality: any thread.  Locks: takes the list's lock, a leaf.
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
    """Remove a node from the list; does nothing if it was never watched, or was watched by another process.

    Locality: any thread.  Locks: takes the list's lock, a leaf.
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
    """Take the list's lock, so that no thread changes the list meanwhile.  Locality: the forking thread."""
    pthread_mutex_lock(&lock)


cdef void _in_parent() noexcept nogil:
    """Release the list's lock.  Locality: the forking thread."""
    pthread_mutex_unlock(&lock)


cdef void _in_child() noexcept nogil:
    """Change the generation, and call the functions of all nodes.  Locality: the child's only thread."""
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
