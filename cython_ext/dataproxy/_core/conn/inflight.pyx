"""Frames in flight: a hash table of packs by sequence number, and the attempts of each pack.

The table uses linear probing with backward-shift deletion.

An attempt is the whole frame written to one connection; it is open until it is answered.  An answer counts only if it
comes over a connection that has an open attempt of its frame: a proxy that was not sent a frame cannot have stored it.
An open attempt is kept as long as its connection lives, because slow proxies may answer after the frame has been sent
to the next proxy.  There is one entry for each connection, so their number bounds the number of entries.

A refusal answers the oldest open attempt over its connection.  The attempts must be told apart, because the refusal
of an older attempt must not end a frame whose newer attempt is under way.

Locality: executor.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.conn.connection cimport CS_ACTIVE
from dataproxy._core.pack.pack cimport ASKED, Asked
from dataproxy._core.plat.assertion cimport dp_assert


cdef int inflight_init(InFlight* t) noexcept nogil:
    """Make an empty table; ST_OK or ST_NO_MEMORY."""
    t.n = 0
    t.mask = 255
    t.slots = <Pack**>calloc(256, sizeof(Pack*))
    return ST_OK if t.slots != NULL else ST_NO_MEMORY


cdef void inflight_free(InFlight* t) noexcept nogil:
    """Release the table (not the packs)."""
    free(t.slots)
    t.slots = NULL
    t.n = 0


cdef inline size_t _home(const InFlight* t, uint32_t seq) noexcept nogil:
    return (<size_t>seq * <size_t>0x9E3779B1 >> 7) & t.mask      # spreads neighbouring numbers


cdef void _insert(InFlight* t, Pack* p) noexcept nogil:
    cdef size_t i = _home(t, p.seq)
    while t.slots[i] != NULL:
        if t.slots[i].seq == p.seq:
            break
        i = (i + 1) & t.mask
    dp_assert(t.slots[i] == NULL or t.slots[i] == p, "two packs in flight have two numbers: seq=%u, n=%zu", p.seq, t.n)
    if t.slots[i] == NULL:
        t.n += 1
    dp_assert(t.n <= t.mask, "the table has a free slot: n=%zu, mask=%zu", t.n, t.mask)
    t.slots[i] = p


cdef int inflight_put(InFlight* t, Pack* p) noexcept nogil:
    """Add ``p`` under its number, if it is not there yet; ST_OK or ST_NO_MEMORY."""
    cdef Pack** old = t.slots
    cdef size_t i, old_cap = t.mask + 1
    if (t.n + 1) * 2 > old_cap:
        t.slots = <Pack**>calloc(old_cap * 2, sizeof(Pack*))
        if t.slots == NULL:
            t.slots = old
            return ST_NO_MEMORY
        t.mask = old_cap * 2 - 1
        t.n = 0
        for i in range(old_cap):
            if old[i] != NULL:
                _insert(t, old[i])
        free(old)
    _insert(t, p)
    return ST_OK


cdef Pack* inflight_get(const InFlight* t, uint32_t seq) noexcept nogil:
    """Return the pack with this number, or NULL."""
    cdef size_t i = _home(t, seq)
    while t.slots[i] != NULL:
        if t.slots[i].seq == seq:
            return t.slots[i]
        i = (i + 1) & t.mask
    return NULL


cdef void inflight_remove(InFlight* t, uint32_t seq) noexcept nogil:
    """Remove this number; does nothing if it is unknown."""
    cdef size_t i = _home(t, seq), j, home
    while t.slots[i] != NULL and t.slots[i].seq != seq:
        i = (i + 1) & t.mask
    if t.slots[i] == NULL:
        return
    dp_assert(t.n > 0, "n > 0: n=%zu, seq=%u", t.n, seq)
    t.n -= 1
    j = i
    while True:
        j = (j + 1) & t.mask
        if t.slots[j] == NULL:
            break
        home = _home(t, t.slots[j].seq)
        if ((j - home) & t.mask) >= ((j - i) & t.mask):      # its probe sequence crosses the free slot
            t.slots[i] = t.slots[j]
            i = j
    t.slots[i] = NULL


cdef inline Asked* _entries(const Pack* p) noexcept nogil:
    return p.asked_more if p.asked_more != NULL else <Asked*>p.asked


cdef Asked* _find(const Pack* p, const Connection* conn) noexcept nogil:
    cdef Asked* entries = _entries(p)
    cdef int64_t connect = conn.counters.connects
    cdef int i
    for i in range(p.n_asked):
        if entries[i].conn == conn.index and entries[i].connect == connect:
            return &entries[i]
    return NULL


cdef void _leave_out_gone(const ConnectionPool* pool, Pack* p) noexcept nogil:
    """Forget the attempts over connections that are gone: no answer can come over them."""
    cdef Asked* entries = _entries(p)
    cdef const Connection* conn
    cdef int i, kept = 0
    for i in range(p.n_asked):
        conn = pool.connections[entries[i].conn]
        if conn.state == CS_ACTIVE and conn.counters.connects == entries[i].connect:
            entries[kept] = entries[i]
            kept += 1
    p.n_asked = kept


cdef int _grow(Pack* p) noexcept nogil:
    cdef int room = 2 * (p.asked_room if p.asked_more != NULL else ASKED)
    cdef Asked* grown = <Asked*>realloc(p.asked_more, <size_t>room * sizeof(Asked))
    if grown == NULL:
        return ST_NO_MEMORY
    if p.asked_more == NULL:
        memcpy(grown, p.asked, sizeof(p.asked))
    p.asked_more = grown
    p.asked_room = room
    return ST_OK


cdef void attempt_made(const ConnectionPool* pool, Pack* p, const Connection* conn) noexcept nogil:
    """Note that the last byte of ``p`` was written to ``conn``.

    If there is no memory for the entry, an answer over any connection counts from then on.  The other choice would
    be to ignore a true answer.
    """
    cdef Asked* asked = _find(p, conn)
    p.attempts += 1
    p.open_attempts += 1
    if asked == NULL:
        if p.n_asked == (p.asked_room if p.asked_more != NULL else ASKED):
            _leave_out_gone(pool, p)
        if p.n_asked == (p.asked_room if p.asked_more != NULL else ASKED) and _grow(p) != ST_OK:
            p.asked_lost = True
            return
        asked = _entries(p) + p.n_asked
        p.n_asked += 1
        asked.conn = conn.index
        asked.connect = conn.counters.connects
        asked.open = 0
    asked.open += 1
    asked.attempt = p.attempts


cdef bint attempt_open(const Pack* p, const Connection* conn) noexcept nogil:
    """Tell whether an attempt of ``p`` waits for its answer over this connection."""
    return _find(p, conn) != NULL or p.asked_lost


cdef bint attempt_refused(Pack* p, const Connection* conn) noexcept nogil:
    """Close the attempt that a refusal over ``conn`` answers, and tell whether it was the newest of ``p``."""
    cdef Asked* asked = _find(p, conn)
    cdef bint newest
    if asked == NULL:
        dp_assert(p.asked_lost, "a refusal answers an open attempt: seq=%u, connection=%d", p.seq, conn.index)
        return False
    dp_assert(asked.open > 0 and p.open_attempts >= asked.open,
              "open_attempts >= asked.open > 0: open_attempts=%d, asked.open=%d", p.open_attempts, asked.open)
    p.open_attempts -= 1
    asked.open -= 1
    if asked.open > 0:
        return False
    newest = asked.attempt == p.attempts
    p.n_asked -= 1
    asked[0] = _entries(p)[p.n_asked]
    return newest


cdef void attempts_end(Pack* p) noexcept nogil:
    """Forget all attempts of ``p``, which has its result."""
    if p.asked_more != NULL:
        free(p.asked_more)
        p.asked_more = NULL
    p.n_asked = 0
