"""Attempts of a frame: written whole on some connection, and answered or not.

A refusal answers the oldest open attempt on the connection it came over.  Only by knowing which one can the
refusal of an older attempt be kept from ending a frame whose newer attempt is under way.
"""

from libc.stdint cimport int64_t

from dataproxy._core.base.pack cimport ASKED, Pack
from dataproxy._core.io.link cimport Link


cdef inline void _forget(Pack* p, int at) noexcept nogil:
    cdef int i
    p.n_asked -= 1
    for i in range(at, p.n_asked):
        p.asked[i] = p.asked[i + 1]


cdef void attempt_made(Pack* p, const Link* link) noexcept nogil:
    """Note that the last byte of ``p`` was written to ``link``.  Locality: executor.  Locks: none.

    More open attempts than there is room for: the oldest stays open for good, as one whose connection is gone.
    """
    p.attempts += 1
    p.open_attempts += 1
    if p.n_asked == ASKED:
        _forget(p, 0)
    p.asked[p.n_asked].link = link.index
    p.asked[p.n_asked].connect = link.counters.connects
    p.asked[p.n_asked].attempt = p.attempts
    p.n_asked += 1


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
