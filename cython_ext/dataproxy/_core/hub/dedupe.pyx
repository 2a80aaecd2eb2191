"""Judging the messages of an entry against the window, and writing the entry again without those that are known."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport buf_free, buf_put, buf_reserve
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.hub.entry cimport ID_OF_REST, Entry, EntryId
from dataproxy._core.hub.header cimport HEADER_AT_RECORDS, HEADER_AT_SIZE
from dataproxy._core.hub.window cimport WINDOW_KNOWN, WINDOW_OTHER, window_add, window_free, window_look
from dataproxy._core.plat.endian cimport load_be16, store_be32


cdef void dedupe_free(Dedupe* d) noexcept nogil:
    """Release window and buffers.  Locality: owner.  Locks: none."""
    window_free(&d.window)
    buf_free(&d.dropped)
    buf_free(&d.unpacked)
    buf_free(&d.value)


cdef int dedupe_entry(Dedupe* d, Entry* entry, int64_t now_ms, Rest* rest) noexcept nogil:
    """Tell what of an entry is new and add its ids to the window.

    What is not stored is counted in the entry; in the window the duplicates, and the conflicts, stored or not.
    Locality: appending thread.
    Locks: none.
    """
    cdef const EntryId* ids = <const EntryId*>entry.ids.p
    cdef size_t n = entry.ids.n // sizeof(EntryId)
    cdef bint rest_known = False
    cdef uint32_t lost = 0      # conflicts that are not stored
    cdef size_t i
    cdef int verdict
    entry.duplicates = 0
    rest.value = entry.value
    rest.records = entry.records
    d.dropped.n = 0
    for i in range(n):
        verdict = window_look(&d.window, &ids[i], now_ms)
        if verdict == WINDOW_OTHER:
            d.window.differed += ids[i].messages
            if d.first_wins and ids[i].given:
                lost += ids[i].messages
                verdict = WINDOW_KNOWN
        if verdict == WINDOW_KNOWN:
            entry.duplicates += ids[i].messages
            if ids[i].item == ID_OF_REST:
                rest_known = True
            elif _mark(d, entry, ids[i].item) != ST_OK:
                return ST_NO_MEMORY
            continue
        if window_add(&d.window, ids[i].high, ids[i].low, ids[i].digest, now_ms) != ST_OK:
            return ST_NO_MEMORY
    d.window.found += entry.duplicates - lost
    if entry.duplicates == 0:
        return ST_OK
    rest.records = entry.items - entry.duplicates
    return _shorten(d, entry, rest_known, lost, rest) if rest.records > 0 else ST_OK


cdef int _mark(Dedupe* d, Entry* entry, uint32_t item) noexcept nogil:
    """Note that a message is known.  Locality: appending thread.  Locks: none."""
    if d.dropped.n == 0:
        if buf_reserve(&d.dropped, entry.items) != ST_OK:
            return ST_NO_MEMORY
        memset(d.dropped.p, 0, entry.items)
        d.dropped.n = entry.items
    d.dropped.p[item] = 1
    return ST_OK


cdef int _shorten(Dedupe* d, Entry* entry, bint rest_known, uint32_t lost, Rest* rest) noexcept nogil:
    """Write the entry again with the new messages alone; ``lost`` of the others are conflicts.

    Locality: appending thread.
    Locks: none.
    """
    cdef size_t head = load_be16(entry.value.p + HEADER_AT_SIZE)
    cdef int status
    if d.dropped.n == 0:
        if buf_reserve(&d.dropped, entry.items) != ST_OK:
            return ST_NO_MEMORY
        memset(d.dropped.p, 0, entry.items)
    d.value.n = 0
    if buf_put(&d.value, entry.value.p, head) != ST_OK:
        return ST_NO_MEMORY
    store_be32(d.value.p + HEADER_AT_RECORDS, rest.records)
    status = d.wire.without(entry.value.p + head, entry.value.n - head, d.dropped.p, rest_known, &d.unpacked, &d.value)
    if status == ST_NO_MEMORY:
        return status
    if status == ST_OK:
        rest.value = slice_of(d.value.p, d.value.n)
        return ST_OK
    # The container could be read a moment ago, so it only has become too large: it is stored as it came.
    d.window.found -= entry.duplicates - lost
    entry.duplicates = 0
    rest.records = entry.records
    return ST_OK
