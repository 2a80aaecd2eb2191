"""Large blocks of memory that are used again soon: packs and their columns come and go a thousand times a second.

An allocator gives large blocks back to the system as soon as they are freed, and the system gives them again page by
page, with a fault for each: a quarter of the time of a reader of large bodies.  So a few are kept for the whole
process.  The one that came back last is taken first: the processor may still have it in its caches.

Under AddressSanitizer nothing is kept, which would hide the use of a block that was freed.

Locality: any thread.  Locks: a flag for which nobody waits; whoever finds it taken goes to the allocator.  So a child
of a fork that was made meanwhile keeps nothing, and nothing else is different for it.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memmove

from dataproxy._core.plat.atomic cimport atomic_store, atomic_swap
from dataproxy._core.plat.sanitizer cimport UNDER_ASAN


cdef enum:
    HEAD = 16               # bytes in front of a block: its room, and what keeps its alignment
    KEPT_FROM = 65536       # bytes of a block; the allocator keeps smaller ones itself
    KEPT_TO = 2097152
    SLOTS = 8               # a pack that is read, one that is used and their columns, of two readers


cdef uint8_t* kept[SLOTS]   # from the oldest to the newest
cdef int n_kept = 0
cdef int64_t taken = 0      # the flag


cdef inline size_t _room(const uint8_t* whole) noexcept nogil:
    return (<const size_t*>whole)[0]


cdef inline bint _enter() noexcept nogil:
    return not UNDER_ASAN and atomic_swap(&taken, 1) == 0


cdef inline void _leave() noexcept nogil:
    atomic_store(&taken, 0)


cdef uint8_t* _take(size_t n, size_t most) noexcept nogil:
    """Take the newest block with at least ``n`` and at most ``most`` bytes; NULL: there is none."""
    global n_kept
    cdef uint8_t* found = NULL
    cdef int i
    if not _enter():
        return NULL
    for i in range(n_kept - 1, -1, -1):
        if n <= _room(kept[i]) <= most:
            found = kept[i]
            n_kept -= 1
            memmove(&kept[i], &kept[i + 1], <size_t>(n_kept - i) * sizeof(kept[0]))
            break
    _leave()
    return found


cdef uint8_t* block_alloc(size_t n) noexcept nogil:
    """Return a block of at least ``n`` bytes, aligned to 16, for ``block_free``; NULL without memory."""
    cdef size_t room = n
    cdef uint8_t* whole = NULL
    if KEPT_FROM <= n <= KEPT_TO:
        room = (n + n // 8 + KEPT_FROM - 1) & ~<size_t>(KEPT_FROM - 1)     # the next one may be a little larger
        whole = _take(n, 2 * room)
    if whole == NULL:
        whole = <uint8_t*>malloc(HEAD + room)
        if whole == NULL:
            return NULL
        (<size_t*>whole)[0] = room
    return whole + HEAD


cdef void block_free(void* p) noexcept nogil:
    """Give a block back; NULL is none."""
    global n_kept
    cdef uint8_t* whole
    cdef uint8_t* oldest = NULL
    if p == NULL:
        return
    whole = <uint8_t*>p - HEAD
    if KEPT_FROM <= _room(whole) and _room(whole) <= 2 * KEPT_TO and _enter():
        if n_kept == SLOTS:
            oldest = kept[0]
            n_kept -= 1
            memmove(&kept[0], &kept[1], <size_t>n_kept * sizeof(kept[0]))
        kept[n_kept] = whole
        n_kept += 1
        _leave()
        whole = oldest
    free(whole)


cdef void blocks_drop() noexcept nogil:
    """Free what is kept: the last one that needs many of them ends."""
    global n_kept
    if not _enter():
        return
    while n_kept:
        n_kept -= 1
        free(kept[n_kept])
    _leave()
