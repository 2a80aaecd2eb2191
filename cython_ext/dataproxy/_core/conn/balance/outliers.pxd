"""Proxies that do worse than their peers: taken out, asked by heartbeats, and taken back."""

from libc.stdint cimport int64_t

from dataproxy._core.conn.connection cimport ANSWERS_KEPT, Connection, ConnectionPool


cdef inline void outlier_answer(Connection* conn, int64_t took_us) noexcept nogil:
    """Note how long an answer to a frame took.  Locality: executor.  Locks: none."""
    conn.answers[conn.n_answers % ANSWERS_KEPT] = took_us
    conn.n_answers += 1


cdef void outlier_failure(ConnectionPool* pool, const Connection* conn, int64_t now_us) noexcept nogil
cdef void outlier_refusal(ConnectionPool* pool, const Connection* conn, int64_t now_us) noexcept nogil
cdef void outlier_connected(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil
cdef void outlier_probed(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil
cdef void outliers_judge(ConnectionPool* pool, int64_t now_us) noexcept nogil
