"""Hash table of packs by sequence number: linear probing with backward-shift deletion.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free

from dataproxy._core.base.pack cimport Pack
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK


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
    if t.slots[i] == NULL:
        t.n += 1
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
