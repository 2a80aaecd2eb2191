"""Subscriptions by which nothing was pulled for some time, for the alarm of the hub's thread.

Locality: GIL, but for the copy.  Locks: takes Remoting.mutex.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put, buf_put_slice
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock
from dataproxy._core.server.rocketmq.keyed cimport keyed_key, keyed_next
from dataproxy._core.server.rocketmq.remoting cimport Remoting, Subscribed, Subscription

cdef enum:
    SILENT_MOST = 10000


cdef int _copy(const Remoting* r, int64_t before_us, Buf* out) noexcept nogil:
    """Append such subscriptions, each behind the number of its connection.  Locks: the caller holds the mutex."""
    cdef const void* row = keyed_next(&r.subscriptions, NULL)
    cdef const Subscription* s
    cdef Slice connection
    cdef int status = ST_OK
    cdef int found = 0
    while row != NULL and found < <int>SILENT_MOST and status == ST_OK:
        connection = keyed_key(&r.subscriptions, row)
        s = (<const Subscribed*>row).first
        while s != NULL:
            if s.pulled_us < before_us:
                found += 1
                status |= buf_put_slice(out, connection)
                status |= buf_put(out, s, sizeof(Subscription))
                status |= buf_put_slice(out, s.group)
                status |= buf_put_slice(out, s.topic)
            s = s.next
        row = keyed_next(&r.subscriptions, row)
    return status


cdef list silent_rows(Remoting* r, int64_t before_us):
    """Return (connection, group, topic, us) of them, at most about 10,000."""
    cdef list found = []
    cdef Subscription one
    cdef uint64_t connection
    cdef Buf rows
    cdef size_t at = 0
    cdef size_t topic_at
    cdef int status
    buf_init(&rows)
    with nogil:
        pthread_mutex_lock(&r.mutex)
        status = _copy(r, before_us, &rows)
        pthread_mutex_unlock(&r.mutex)
    try:
        if status != ST_OK:
            raise MemoryError
        while at < rows.n:
            memcpy(&connection, rows.p + at, sizeof(connection))
            memcpy(&one, rows.p + at + sizeof(connection), sizeof(one))     # of its slices only the lengths are true
            at += sizeof(connection) + sizeof(one)
            topic_at = at + one.group.n
            group = (<bytes>rows.p[at:topic_at]).decode("utf-8", "replace")
            at = topic_at + one.topic.n
            topic = (<bytes>rows.p[topic_at:at]).decode("utf-8", "replace")
            found.append((connection, group, topic, one.pulled_us))
    finally:
        buf_free(&rows)
    return found
