"""An executor of the parent, seen in a forked child: its descriptors are closed, and nothing else is changed.

Locality: the forked child's only thread, in the hook of fork().  Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.io.executor cimport Channel, Executor
from dataproxy._core.io.transport cimport transport_tcp
from dataproxy._core.plat.atomic cimport atomic_load
from dataproxy._core.plat.socket cimport close


cdef void _drop(int* fd) noexcept nogil:
    if fd[0] >= 0:
        close(fd[0])
        fd[0] = -1


cdef void executor_disown(void* executor) noexcept nogil:
    """Close the inherited copies of an executor's descriptors.

    The connections continue in the parent.  So nothing is shut down, and nothing is removed from the epoll set,
    which both processes share.
    """
    cdef Executor* e = <Executor*>executor
    cdef Channel* c = <Channel*>atomic_load(<int64_t*>&e.newest)
    _drop(&e.poller.epfd)
    _drop(&e.wakeup.fd)
    while c != NULL:
        if c.transport.ops == transport_tcp():      # the number of another kind may stand for something else
            _drop(&c.transport.fd)
        c = c.next
