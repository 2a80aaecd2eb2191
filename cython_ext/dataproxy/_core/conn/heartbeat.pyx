"""Heartbeats: sent only while the send queue is empty.  While frames wait, ``conn/progress`` watches the connection.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.base.timers cimport timers_arm
from dataproxy._core.conn.connection cimport CE_DEAF, CF_CLOSE, CF_WRITE, Connection, ConnectionPool
from dataproxy._core.conn.sendq cimport mark_dirty, sendq_empty
from dataproxy._core.plat.atomic cimport relaxed_store


cdef void connection_silent(ConnectionPool* pool, Connection* conn, int event) noexcept nogil:
    """Ask for the close of a connection whose peer does not answer."""
    conn.close_event = event
    mark_dirty(pool, conn, CF_CLOSE)


cdef void heartbeat_at(ConnectionPool* pool, Connection* conn, int64_t at_us) noexcept nogil:
    """Let the next heartbeat of an active connection be due at ``at_us`` at the latest."""
    if pool.config.heartbeat_us == 0 or conn.heartbeat_at_us <= at_us:
        return
    conn.heartbeat_at_us = at_us
    if not conn.timer.armed or at_us < conn.timer.due_us:
        timers_arm(&pool.timers, &conn.timer, at_us)


cdef void heartbeat_due(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    """Send a heartbeat if it is due and the send queue is empty, else skip this round.

    After ``heartbeat_retries`` unanswered heartbeats in a row the connection is closed and replaced.  A heartbeat that
    is not written yet, or has not reached the peer's host, does not count as unanswered, and no other is sent
    meanwhile.
    """
    if pool.config.heartbeat_us == 0 or now_us < conn.heartbeat_at_us:
        return
    conn.heartbeat_at_us = now_us + pool.config.heartbeat_us
    if conn.endpoint >= 0 and pool.health[conn.endpoint].out and pool.health[conn.endpoint].out_until_us > now_us:
        conn.heartbeat_at_us = min(conn.heartbeat_at_us, pool.health[conn.endpoint].out_until_us)
    if conn.control_sent < conn.control.n or conn.heartbeat_end > conn.acked:
        return
    # Where answers come in turn, an unanswered heartbeat keeps all frames waiting.
    if conn.unanswered >= pool.config.heartbeat_retries or (pool.in_turn and conn.unanswered > 0):
        connection_silent(pool, conn, CE_DEAF)
        return
    if not sendq_empty(conn) or (pool.in_turn and conn.owed > 0):
        return
    if pool.wire.heartbeat(pool.config.heartbeat_kind, pool.wall_offset_ms + now_us // 1000, &conn.control) != ST_OK:
        conn.control.n = 0
        return
    conn.asked_us = now_us
    conn.unanswered += 1
    relaxed_store(&conn.counters.unanswered, conn.unanswered)
    mark_dirty(pool, conn, CF_WRITE)
