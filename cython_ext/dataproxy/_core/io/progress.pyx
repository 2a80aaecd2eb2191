"""Progress of a connection, and since when a frame's answer is late.

The kernel takes bytes long before the peer has them: megabytes wait in a socket's send buffer while a slow link carries
them, and for ever when the peer's host is gone.  So a connection that owes something is looked at eight times
in ``ack_timeout``: what its socket still holds says how far the peer's host has acknowledged the stream.

- A frame's time runs from when it reached the peer's host: at a look that still finds some of it here, it starts again.
- A proxy answers in order.  So its time also starts again with the answer to the frame in front of it: ``detach``
  hands the time of a frame that leaves the flight on to the next, and the one at the head is late before all others.
- A connection on which bytes wait moves when the peer's host acknowledges some of them, or when a reply comes.
"""

from libc.stdint cimport int64_t

from dataproxy._core.base.pack cimport Pack
from dataproxy._core.base.timers cimport timers_arm
from dataproxy._core.io.link cimport Link, LinkConfig, LinkPool
from dataproxy._core.plat.atomic cimport relaxed_load

cdef enum:
    LOOKS = 8               # in one ack_timeout
    LEAST_US = 1000


cdef int64_t look_every_us(const LinkConfig* config) noexcept nogil:
    """Return the time between two looks at a connection that owes something.  Locality: any thread.  Locks: none."""
    cdef int64_t every = config.ack_timeout_us // LOOKS
    return every if every > LEAST_US else LEAST_US


cdef void progress_begin(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil:
    """Begin with a new connection.  Locality: executor.  Locks: none."""
    link.acked = relaxed_load(&link.counters.sent_bytes)
    link.heartbeat_end = link.acked
    link.waits = False
    link.moved_us = now_us


cdef void progress_wrote(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil:
    """Note that something was given to a socket that held nothing, as far as is known.

    Locality: executor.
    Locks: none.
    """
    cdef int64_t look = now_us + look_every_us(&pool.config)
    link.waits = True
    link.moved_us = now_us
    if link.timer.slot < 0 or look < link.timer.due_us:
        timers_arm(&pool.timers, &link.timer, look)


cdef void progress_look(LinkPool* pool, Link* link, int64_t held, int64_t now_us) noexcept nogil:
    """Enter that the socket still holds so many bytes of all that it was given.  Locality: executor.  Locks: none."""
    cdef int64_t acked = relaxed_load(&link.counters.sent_bytes) - held
    cdef Pack* p = link.flight.tail
    cdef bint waits = held > 0 or link.queue.head != NULL or link.control_sent < link.control.n
    if acked > link.acked or (waits and not link.waits):
        link.moved_us = now_us
    elif link.last_read_us > link.moved_us:
        link.moved_us = link.last_read_us
    if acked > link.acked:
        link.acked = acked
    link.waits = waits
    while p != NULL and p.sent_end > link.acked:        # in the order of writing: those in front have arrived
        p.sent_us = now_us
        p = p.prev


cdef bint progress_stalled(const LinkPool* pool, const Link* link, int64_t now_us) noexcept nogil:
    """Tell whether bytes wait and nothing has moved for ``ack_timeout``.  Locality: executor.  Locks: none."""
    return link.waits and now_us - link.moved_us >= pool.config.ack_timeout_us
