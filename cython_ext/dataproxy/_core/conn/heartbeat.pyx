"""Heartbeats: sent only while the send queue is empty.  While frames wait, ``conn/progress`` watches the connection.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.conn.connection cimport LE_DEAF, LF_CLOSE, LF_WRITE, Link, LinkPool
from dataproxy._core.conn.sendq cimport mark_dirty, sendq_empty
from dataproxy._core.plat.atomic cimport relaxed_store


cdef void link_silent(LinkPool* pool, Link* link, int event) noexcept nogil:
    """Ask for the close of a link whose peer does not answer."""
    link.close_event = event
    mark_dirty(pool, link, LF_CLOSE)


cdef void heartbeat_due(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil:
    """Send a heartbeat if it is due and the send queue is empty, else skip this round.

    After ``heartbeat_retries`` unanswered heartbeats in a row the link is closed and replaced.  A heartbeat that is not
    written yet, or has not reached the peer's host, does not count as unanswered, and no other is sent meanwhile.
    """
    if pool.config.heartbeat_us == 0 or now_us < link.heartbeat_at_us:
        return
    link.heartbeat_at_us = now_us + pool.config.heartbeat_us
    if link.control_sent < link.control.n or link.heartbeat_end > link.acked:
        return
    if link.unanswered >= pool.config.heartbeat_retries:
        link_silent(pool, link, LE_DEAF)
        return
    if not sendq_empty(link):
        return
    if pool.wire.heartbeat(pool.config.heartbeat_kind, pool.wall_offset_ms + now_us // 1000, &link.control) != ST_OK:
        link.control.n = 0
        return
    link.unanswered += 1
    relaxed_store(&link.counters.unanswered, link.unanswered)
    mark_dirty(pool, link, LF_WRITE)
