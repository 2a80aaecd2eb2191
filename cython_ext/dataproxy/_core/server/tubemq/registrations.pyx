"""Registrations of consumers at the hub's broker: a hash table with chains, and what is decided about one of them.

Locality: any thread.  Locks: the caller holds the table's mutex, but for init and free.
"""

from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put_be32, buf_put_slice
from dataproxy._core.base.siphash cimport hash_bytes
from dataproxy._core.base.slice cimport slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.thread cimport pthread_mutex_destroy, pthread_mutex_init
from dataproxy._core.server.tubemq.limits cimport rules_free

cdef enum:
    BUCKETS = 64                # of a new table
    COST = 64                   # bytes that the allocator and the table take for one, about


cdef int registrations_init(Registrations* t, const HashKey* key, int64_t limit_us, size_t most_bytes) noexcept nogil:
    """Make an empty table; ST_OK or ST_NO_MEMORY."""
    memset(t, 0, sizeof(Registrations))
    pthread_mutex_init(&t.mutex, NULL)
    t.key = key[0]
    t.limit_us = limit_us
    t.most_bytes = most_bytes
    t.size = BUCKETS
    t.buckets = <Registration**>calloc(t.size, sizeof(Registration*))
    return ST_OK if t.buckets != NULL else ST_NO_MEMORY


cdef void registrations_free(Registrations* t) noexcept nogil:
    """Release everything; nobody uses the table any more."""
    cdef size_t i
    if t.buckets == NULL:
        return
    for i in range(t.size):
        while t.buckets[i] != NULL:
            registration_drop(t, t.buckets[i])
    rules_free(&t.rules)
    free(t.buckets)
    t.buckets = NULL
    pthread_mutex_destroy(&t.mutex)


cdef bint _hash(const Registrations* t, Slice group, Slice topic, int32_t partition, uint64_t* out) noexcept nogil:
    """Hash a name under the table's key: peers choose names, and must not choose buckets.  False: no memory."""
    cdef Buf name
    cdef int status
    buf_init(&name)
    status = buf_put_be32(&name, <unsigned int>group.n)
    status |= buf_put_slice(&name, group)
    status |= buf_put_be32(&name, <unsigned int>partition)
    status |= buf_put_slice(&name, topic)
    if status == ST_OK:
        out[0] = hash_bytes(&t.key, name.p, name.n).first
    buf_free(&name)
    return status == ST_OK


cdef Registration* _look(
    const Registrations* t, uint64_t h, Slice group, Slice topic, int32_t partition
) noexcept nogil:
    cdef Registration* r = t.buckets[h & (t.size - 1)]
    while r != NULL:
        if (r.hash == h and r.partition == partition and slice_equals(r.group, group)
                and slice_equals(r.topic, topic)):
            return r
        r = r.next
    return NULL


cdef Registration* registration_find(
    const Registrations* t, Slice group, Slice topic, int32_t partition
) noexcept nogil:
    """Return what is known of a group's partition, or NULL."""
    cdef uint64_t h = 0
    if not _hash(t, group, topic, partition, &h):
        return NULL
    return _look(t, h, group, topic, partition)


cdef Registration* registration_make(Registrations* t, Slice group, Slice topic, int32_t partition) noexcept nogil:
    """Return what is known of a group's partition, made if nothing is; NULL: no room, or no memory."""
    cdef size_t names = group.n + topic.n
    cdef uint64_t h = 0
    cdef Registration* r
    if not _hash(t, group, topic, partition, &h):
        return NULL
    r = _look(t, h, group, topic, partition)
    if r != NULL:
        return r
    if t.bytes + sizeof(Registration) + names + COST > t.most_bytes:
        return NULL
    if t.count >= t.size and not _grow(t):
        return NULL
    r = <Registration*>malloc(sizeof(Registration) + names)
    if r == NULL:
        return NULL
    memset(r, 0, sizeof(Registration))
    r.hash = h
    r.partition = partition
    r.group = slice_of(<uint8_t*>r + sizeof(Registration), group.n)
    r.topic = slice_of(r.group.p + group.n, topic.n)
    memcpy(<uint8_t*>r.group.p, group.p, group.n)
    memcpy(<uint8_t*>r.topic.p, topic.p, topic.n)
    r.confirmed = NO_POSITION
    r.told = NO_POSITION
    r.kept = NO_POSITION
    r.next = t.buckets[h & (t.size - 1)]
    t.buckets[h & (t.size - 1)] = r
    t.count += 1
    t.bytes += sizeof(Registration) + names + COST
    return r


cdef bint _grow(Registrations* t) noexcept nogil:
    """Double the buckets; False: no memory."""
    cdef Registration** wider = <Registration**>calloc(2 * t.size, sizeof(Registration*))
    cdef Registration* r
    cdef size_t i
    if wider == NULL:
        return False
    for i in range(t.size):
        while t.buckets[i] != NULL:
            r = t.buckets[i]
            t.buckets[i] = r.next
            r.next = wider[r.hash & (2 * t.size - 1)]
            wider[r.hash & (2 * t.size - 1)] = r
    free(t.buckets)
    t.buckets = wider
    t.size *= 2
    return True


cdef void registration_drop(Registrations* t, Registration* r) noexcept nogil:
    """Forget a group's partition altogether."""
    cdef Registration** at = &t.buckets[r.hash & (t.size - 1)]
    while at[0] != r:
        at = &at[0].next
    at[0] = r.next
    _disown(t, r)
    t.count -= 1
    t.bytes -= sizeof(Registration) + r.group.n + r.topic.n + COST
    free(r)


cdef void _disown(Registrations* t, Registration* r) noexcept nogil:
    """Let nobody have it; what waits for its confirm is read again."""
    t.bytes -= r.owner.n + r.filters.n
    free(<void*>r.owner.p)
    free(<void*>r.filters.p)
    r.owner = slice_of(NULL, 0)
    r.filters = slice_of(NULL, 0)
    r.pending = 0
    _change(t, r)


cdef inline void _change(Registrations* t, Registration* r) noexcept nogil:
    t.version += 1
    r.version = t.version


cdef bint _keep(Slice text, Slice* out) noexcept nogil:
    """Copy bytes into a block of their own; False: no memory."""
    cdef uint8_t* p = NULL
    if text.n:
        p = <uint8_t*>malloc(text.n)
        if p == NULL:
            return False
        memcpy(p, text.p, text.n)
    out[0] = slice_of(p, text.n)
    return True


cdef int registration_take(
    Registrations* t, Registration* r, Slice client, Slice filters, int64_t now_us
) noexcept nogil:
    """Register a client, anew if it has the partition already."""
    cdef Slice owner
    cdef Slice items
    if r.owner.n and not slice_equals(r.owner, client):
        registration_expire(t, r, now_us)
        return REG_TAKEN
    if t.bytes - r.owner.n - r.filters.n + client.n + filters.n > t.most_bytes or not _keep(client, &owner):
        return REG_FULL
    if not _keep(filters, &items):
        free(<void*>owner.p)
        return REG_FULL
    if r.owner.n == 0:
        memset(&r.limit, 0, sizeof(Limit))
    _disown(t, r)
    r.owner = owner
    r.filters = items
    r.until_us = now_us + t.limit_us
    r.asked_us = now_us
    t.bytes += owner.n + items.n
    return REG_OK


cdef int registration_use(const Registrations* t, Registration* r, Slice client, int64_t now_us) noexcept nogil:
    """Begin an owner's time anew; a client that has no registration is told who has one: nobody, or another."""
    if r == NULL or r.owner.n == 0 or r.until_us < now_us:
        return REG_UNKNOWN
    if not slice_equals(r.owner, client):
        return REG_OTHER
    r.until_us = now_us + t.limit_us
    return REG_OK


cdef int registration_leave(
    Registrations* t, Registration* r, Slice client, bint consumed, int64_t now_us
) noexcept nogil:
    """End a client's registration; what it has read last is confirmed, or read again."""
    cdef int code = registration_use(t, r, client, now_us)
    if code == REG_OK:
        registration_commit(t, r, consumed)
        _disown(t, r)
    return code


cdef bint registration_expire(Registrations* t, Registration* r, int64_t now_us) noexcept nogil:
    """Take a partition from an owner whose time is over; tell whether that was so."""
    if r.owner.n == 0 or r.until_us >= now_us:
        return False
    _disown(t, r)
    return True


cdef int64_t registration_begin(
    Registrations* t, Registration* r, int status, int64_t wanted, int64_t least, int64_t end
) noexcept nogil:
    """Return where a new registration begins; ``wanted`` below 0: where it is told by ``status``."""
    r.pending = 0
    if status == READ_END:
        r.confirmed = end
    elif wanted >= 0:
        r.confirmed = min(max(wanted, least), end)
    elif r.confirmed == NO_POSITION:
        r.confirmed = least if status == READ_STORED else end
    elif r.confirmed > end:
        r.confirmed = end
    _change(t, r)
    return r.confirmed


cdef int64_t registration_locate(
    Registrations* t, Registration* r, bint consumed, bint manual, int64_t least, int64_t end
) noexcept nogil:
    """Return where a request for messages begins, between the oldest message and the end.

    ``manual``: behind what was read last, which stays unconfirmed; else what was read last is confirmed or read again.
    """
    cdef int64_t at
    if not manual:
        registration_commit(t, r, consumed)
    at = r.confirmed + r.pending
    if at < least:
        r.confirmed = at = least
        r.pending = 0
        _change(t, r)
    return min(at, end)     # beyond it: the group has moved on since the end was looked at


cdef bint registration_book(
    Registrations* t, Registration* r, const Standing* seen, int64_t scanned, bint matched, bint manual
) noexcept nogil:
    """Note what a request has read; where no message matched, nobody will confirm it.

    False: owner or positions have changed since they were ``seen``, and nothing is noted.
    """
    if r == NULL or r.version != seen.version or r.pending != seen.pending:
        return False
    if scanned == 0:
        return True
    r.pending = r.pending + scanned if manual else scanned
    if not matched and not manual:
        registration_commit(t, r, True)
    return True


cdef int64_t registration_commit(Registrations* t, Registration* r, bint consumed) noexcept nogil:
    """Confirm what was read last, or let it be read again; return the position."""
    if r.pending == 0:
        return r.confirmed
    if consumed:
        r.confirmed += r.pending
    r.pending = 0
    _change(t, r)
    return r.confirmed


cdef void registration_reset(Registrations* t, Registration* r, int64_t position) noexcept nogil:
    """Let the group go on at a position; what its member has read counts for nothing, also if it confirms it."""
    r.confirmed = position
    r.pending = 0
    _change(t, r)
