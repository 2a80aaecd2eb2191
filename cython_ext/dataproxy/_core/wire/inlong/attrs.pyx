"""Strict reading of attribute text: one ``=`` in every entry, no key twice."""

from libc.stdlib cimport qsort
from libc.string cimport memchr, memcmp, memcpy

from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.slice cimport slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL


cdef enum:
    FEW_KEYS = 24               # up to here comparing each with each is the fastest


cdef int attrs_read(Slice text, Buf* store, Attrs* out) noexcept nogil:
    """Split ``text`` into entries at the start of ``store``; ST_PROTOCOL for a malformed one.

    Locality: owner of ``store``.  Locks: none.
    """
    cdef const uint8_t* at = text.p
    cdef const uint8_t* end = text.p + text.n
    cdef const uint8_t* stop
    cdef Attr entry
    store.n = 0
    out.n = 0
    out.present = 0
    if attr_is_blank(text):
        return ST_OK
    while True:
        stop = <const uint8_t*>memchr(at, 38, <size_t>(end - at))
        if stop == NULL:
            stop = end
        if not _read_entry(at, stop, &entry):
            return ST_PROTOCOL
        if entry.known != KEY_OTHER:
            if attrs_has(out, entry.known):
                return ST_PROTOCOL
            out.present |= <uint32_t>1 << entry.known
            out.value[entry.known] = entry.value
        if buf_reserve(store, sizeof(Attr)) != ST_OK:
            return ST_NO_MEMORY
        memcpy(store.p + store.n, &entry, sizeof(Attr))
        store.n += sizeof(Attr)
        out.n += 1
        if stop == end:
            break
        at = stop + 1
    return _check_unique(store, out.n)


cdef bint attr_is_blank(Slice s) noexcept nogil:
    """Tell whether nothing but blanks is there.  Locality: any thread.  Locks: none."""
    cdef size_t i
    for i in range(s.n):
        if s.p[i] > 32:
            return False
    return True


cdef bint attr_is(Slice s, const char* lower, size_t n) noexcept nogil:
    """Compare with a lower-case ASCII word, letter case ignored.  Locality: any thread.  Locks: none."""
    cdef size_t i
    cdef uint8_t c
    if s.n != n:
        return False
    for i in range(n):
        c = s.p[i]
        if 65 <= c <= 90:
            c = <uint8_t>(c + 32)
        if c != <uint8_t>lower[i]:
            return False
    return True


cdef bint _read_entry(const uint8_t* at, const uint8_t* stop, Attr* entry) noexcept nogil:
    # The whole entry is trimmed, not key and value.
    cdef const uint8_t* cut
    while at < stop and at[0] <= 32:
        at += 1
    while at < stop and (stop - 1)[0] <= 32:
        stop -= 1
    cut = <const uint8_t*>memchr(at, 61, <size_t>(stop - at))
    if cut == NULL or memchr(cut + 1, 61, <size_t>(stop - cut - 1)) != NULL:
        return False
    entry.key = slice_of(at, <size_t>(cut - at))
    entry.value = slice_of(cut + 1, <size_t>(stop - cut - 1))
    entry.known = _classify(at, entry.key.n)
    return True


cdef int _classify(const uint8_t* p, size_t n) noexcept nogil:
    if n == 7:
        if memcmp(p, b"groupId", 7) == 0: return KEY_GROUP
        if memcmp(p, b"node2ip", 7) == 0: return KEY_NODE2
    elif n == 8:
        if memcmp(p, b"streamId", 8) == 0: return KEY_STREAM
        if memcmp(p, b"syncSend", 8) == 0: return KEY_SYNC_SEND
    elif n == 2:
        if memcmp(p, b"dt", 2) == 0: return KEY_DT
        if memcmp(p, b"cp", 2) == 0: return KEY_CP
        if memcmp(p, b"rt", 2) == 0: return KEY_RT
        if memcmp(p, b"mt", 2) == 0: return KEY_MT
    elif n == 3:
        if memcmp(p, b"cnt", 3) == 0: return KEY_CNT
    elif n == 4:
        if memcmp(p, b"rtms", 4) == 0: return KEY_RTMS
    elif n == 5:
        if memcmp(p, b"isAck", 5) == 0: return KEY_IS_ACK
    elif n == 6:
        if memcmp(p, b"rtime2", 6) == 0: return KEY_RTIME2
    elif n == 9:
        if memcmp(p, b"proxySend", 9) == 0: return KEY_PROXY_SEND
    elif n == 12:
        if memcmp(p, b"partitionKey", 12) == 0: return KEY_PARTITION
    return KEY_OTHER


cdef int _check_unique(Buf* store, size_t n) noexcept nogil:
    cdef Attr* entries = <Attr*>store.p
    cdef Attr* sorted_entries
    cdef size_t i
    cdef size_t k
    if n <= FEW_KEYS:
        for i in range(1, n):
            if entries[i].known == KEY_OTHER:
                for k in range(i):
                    if slice_equals(entries[i].key, entries[k].key):
                        return ST_PROTOCOL
        return ST_OK
    # Many keys: sorted, so that a frame full of keys costs no quadratic time.
    if buf_reserve(store, n * sizeof(Attr)) != ST_OK:
        return ST_NO_MEMORY
    sorted_entries = <Attr*>(store.p + store.n)
    memcpy(sorted_entries, store.p, n * sizeof(Attr))
    qsort(sorted_entries, n, sizeof(Attr), _compare_keys)
    for i in range(1, n):
        if slice_equals(sorted_entries[i - 1].key, sorted_entries[i].key):
            return ST_PROTOCOL
    return ST_OK


cdef int _compare_keys(const void* a, const void* b) noexcept nogil:
    cdef const Attr* left = <const Attr*>a
    cdef const Attr* right = <const Attr*>b
    if left.key.n != right.key.n:
        return -1 if left.key.n < right.key.n else 1
    return memcmp(left.key.p, right.key.p, left.key.n)
