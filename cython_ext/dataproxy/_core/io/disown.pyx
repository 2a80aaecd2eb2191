"""An executor in a forked child: its descriptors are closed, and nothing else of it is touched."""

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

    Locality: the forked child's only thread, in the hook of fork().  Locks: none.  The connections stay the
    parent's: nothing is shut down, and nothing is taken out of the epoll set, which both processes share.
    """
    cdef Executor* e = <Executor*>executor
    cdef Channel* c = <Channel*>atomic_load(<int64_t*>&e.newest)
    _drop(&e.poller.epfd)
    _drop(&e.wakeup.fd)
    while c != NULL:
        if c.transport.ops == transport_tcp():      # the number of another kind may stand for something else
            _drop(&c.transport.fd)
        c = c.next
