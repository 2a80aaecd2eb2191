"""Attempts of a frame: written whole on some connection, and answered or not.

An answer counts over a connection that has an open attempt of its frame, and over no other: whoever was not sent a
frame cannot have stored it.  A refusal answers the oldest open attempt there.  Only by knowing which one can the
refusal of an older attempt be kept from ending a frame whose newer attempt is under way.
"""

from libc.stdint cimport int64_t

from dataproxy._core.base.pack cimport ASKED, Asked, Pack
from dataproxy._core.io.link cimport Link, LinkPool
from dataproxy._core.io.linkstate cimport LS_ACTIVE


cdef inline void _forget(Pack* p, int at) noexcept nogil:
    cdef int i
    p.n_asked -= 1
    for i in range(at, p.n_asked):
        p.asked[i] = p.asked[i + 1]


cdef bint _is_gone(const LinkPool* pool, const Asked* a) noexcept nogil:
    cdef const Link* link = pool.links[a.link]
    return link.state != LS_ACTIVE or link.counters.connects != a.connect


cdef int _least(const LinkPool* pool, const Pack* p) noexcept nogil:
    """Return the attempt whose answer would be missed least: none can come, or a later one is open there too."""
    cdef int i, k
    for i in range(p.n_asked):
        if _is_gone(pool, &p.asked[i]):
            return i
    for i in range(p.n_asked):
        for k in range(i + 1, p.n_asked):
            if p.asked[k].link == p.asked[i].link:
                return i
    return 0


cdef void attempt_made(const LinkPool* pool, Pack* p, const Link* link) noexcept nogil:
    """Note that the last byte of ``p`` was written to ``link``.  Locality: executor.  Locks: none.

    More open attempts than there is room for: one of them stays open for good, as one whose connection is gone.
    """
    p.attempts += 1
    p.open_attempts += 1
    if p.n_asked == ASKED:
        _forget(p, _least(pool, p))
    p.asked[p.n_asked].link = link.index
    p.asked[p.n_asked].connect = link.counters.connects
    p.asked[p.n_asked].attempt = p.attempts
    p.n_asked += 1


cdef bint attempt_open(const Pack* p, const Link* link) noexcept nogil:
    """Tell whether an attempt of ``p`` waits for its answer over this connection.  Locality: executor.  Locks: none."""
    cdef int i
    for i in range(p.n_asked):
        if p.asked[i].link == link.index and p.asked[i].connect == link.counters.connects:
            return True
    return False


cdef int attempt_refused(Pack* p, const Link* link) noexcept nogil:
    """Close the attempt that a refusal over ``link`` answers, and return its number; 0 when none is open there.

    Locality: executor.
    Locks: none.
    """
    cdef int i, attempt
    cdef int64_t connect = link.counters.connects
    for i in range(p.n_asked):
        if p.asked[i].link == link.index and p.asked[i].connect == connect:
            attempt = p.asked[i].attempt
            _forget(p, i)
            p.open_attempts -= 1
            return attempt
    return 0
