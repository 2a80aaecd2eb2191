"""Strict reading of attribute text: one ``=`` in every entry, no key twice.

Locks: none.
"""

from libc.string cimport memchr, memcmp, memset

import os

from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.siphash cimport HashKey, hash_bytes, hash_key
from dataproxy._core.base.slice cimport slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL


cdef enum:
    FEW_KEYS = 24               # up to here comparing each with each is the fastest
    NO_ENTRY = 0xFFFFFFFF

cdef bytes _random = os.urandom(16)
cdef HashKey KEY = hash_key(_random)    # random: no peer can choose keys with equal hashes; results do not depend on it


cdef int attrs_read(Slice text, Buf* store, Attrs* out) noexcept nogil:
    """Split ``text`` into entries at the start of ``store``; ST_PROTOCOL for a malformed one.

    The work is linear: the memory for all entries is known before the first one is read, and the first repeated key
    ends the reading.
    Locality: owner of ``store``.
    """
    cdef const uint8_t* at = text.p
    cdef const uint8_t* end = text.p + text.n
    cdef const uint8_t* stop
    cdef Attr* entry
    cdef uint32_t* places = NULL
    cdef size_t most
    cdef size_t mask = 0
    store.n = 0
    out.n = 0
    out.present = 0
    if attr_is_blank(text):
        return ST_OK
    most = _count_entries(text)
    if most > FEW_KEYS:
        mask = _places_for(most) - 1
    if most >= NO_ENTRY or buf_reserve(store, most * sizeof(Attr) + (mask + 1) * sizeof(uint32_t)) != ST_OK:
        return ST_NO_MEMORY
    if mask > 0:
        places = <uint32_t*>(store.p + most * sizeof(Attr))
        memset(places, 0xFF, (mask + 1) * sizeof(uint32_t))
    while True:
        stop = <const uint8_t*>memchr(at, 38, <size_t>(end - at))
        if stop == NULL:
            stop = end
        entry = <Attr*>store.p + out.n
        if not _read_entry(at, stop, entry):
            return ST_PROTOCOL
        if entry.known != KEY_OTHER:
            if attrs_has(out, entry.known):
                return ST_PROTOCOL
            out.present |= <uint32_t>1 << entry.known
            out.value[entry.known] = entry.value
        elif not _is_new(<Attr*>store.p, out.n, places, mask):
            return ST_PROTOCOL
        store.n += sizeof(Attr)
        out.n += 1
        if stop == end:
            return ST_OK
        at = stop + 1


cdef size_t _count_entries(Slice text) noexcept nogil:
    cdef size_t n = 1
    cdef size_t i
    for i in range(text.n):
        n += text.p[i] == 38
    return n


cdef size_t _places_for(size_t n) noexcept nogil:
    # A power of two with at least as much room again.
    cdef size_t places = 64
    while places < 2 * n:
        places *= 2
    return places


cdef bint _is_new(const Attr* entries, size_t n, uint32_t* places, size_t mask) noexcept nogil:
    # Tells whether no entry before number `n` has its key; known keys are told apart by their numbers.
    cdef size_t i
    if mask == 0:
        for i in range(n):
            if slice_equals(entries[n].key, entries[i].key):
                return False
        return True
    i = <size_t>hash_bytes(&KEY, entries[n].key.p, entries[n].key.n).first & mask
    while places[i] != NO_ENTRY:
        if slice_equals(entries[n].key, entries[places[i]].key):
            return False
        i = (i + 1) & mask
    places[i] = <uint32_t>n
    return True


cdef bint attr_is_blank(Slice s) noexcept nogil:
    """Tell whether nothing but blanks is there.  Locality: any thread."""
    cdef size_t i
    for i in range(s.n):
        if s.p[i] > 32:
            return False
    return True


cdef bint attr_is(Slice s, const char* lower, size_t n) noexcept nogil:
    """Compare with a lower-case ASCII word, letter case ignored.  Locality: any thread."""
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
