"""Progress of a connection, and since when a frame's answer is late.

The kernel takes bytes long before the peer has them: megabytes wait in a socket's send buffer while a slow network
carries them, and they wait for ever if the peer's host is gone.  So a connection with unanswered frames is looked at
eight times in ``ack_timeout``: the number of bytes that its socket still holds shows how many bytes the peer's host has
acknowledged.

- The ack timeout of a frame runs from its arrival at the peer's host.  It starts again at each look that still finds
  a part of the frame in the socket.
- A proxy answers in order.  So the timeout also starts again with the answer to the frame before it: ``detach`` gives
  the time of a frame that leaves the in-flight list to the next frame.  The first frame of the list is late first.
- A connection on which bytes wait makes progress when the peer's host acknowledges some bytes, or when a reply comes.

Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.base.timers cimport timers_arm
from dataproxy._core.conn.connection cimport Connection, ConnectionConfig, ConnectionPool
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport relaxed_load

cdef enum:
    LOOKS = 8               # in one ack_timeout
    LEAST_US = 1000


cdef int64_t look_every_us(const ConnectionConfig* config) noexcept nogil:
    """Return the microseconds between two looks at a connection with unanswered frames.  Locality: any thread."""
    cdef int64_t every = config.ack_timeout_us // LOOKS
    return every if every > LEAST_US else LEAST_US


cdef void progress_begin(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    """Reset the progress: the connection has a new socket.  Locality: executor."""
    conn.acked = relaxed_load(&conn.counters.sent_bytes)
    conn.heartbeat_end = conn.acked
    conn.waits = False
    conn.moved_us = now_us


cdef void progress_wrote(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    """Note that bytes were written to a socket that held no bytes at the last look.

    Locality: executor.
    """
    cdef int64_t look = now_us + look_every_us(&pool.config)
    conn.waits = True
    conn.moved_us = now_us
    if not conn.timer.armed or look < conn.timer.due_us:
        timers_arm(&pool.timers, &conn.timer, look)


cdef void progress_look(ConnectionPool* pool, Connection* conn, int64_t held, int64_t now_us) noexcept nogil:
    """Note that the socket still holds ``held`` of the bytes that were written to it.  Locality: executor."""
    cdef int64_t acked = relaxed_load(&conn.counters.sent_bytes) - held
    cdef Pack* p = conn.flight.tail
    cdef bint waits = held > 0 or conn.queue.head != NULL or conn.control_sent < conn.control.n
    if acked > conn.acked or (waits and not conn.waits):
        conn.moved_us = now_us
    elif conn.last_read_us > conn.moved_us:
        conn.moved_us = conn.last_read_us
    if acked > conn.acked:
        conn.acked = acked
    conn.waits = waits
    while p != NULL and p.sent_end > conn.acked:        # in the order of writing: the frames before it have arrived
        dp_assert(p.prev == NULL or p.prev.sent_end <= p.sent_end,
                  "frames in flight are in the order of writing: sent_end=%ld after %ld", p.sent_end, p.prev.sent_end)
        p.sent_us = now_us
        p = p.prev


cdef bint progress_stalled(const ConnectionPool* pool, const Connection* conn, int64_t now_us) noexcept nogil:
    """Tell whether bytes wait and nothing has moved for ``ack_timeout``.  Locality: executor."""
    return conn.waits and now_us - conn.moved_us >= pool.config.ack_timeout_us
