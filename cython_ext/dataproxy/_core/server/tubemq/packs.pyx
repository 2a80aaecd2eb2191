"""Packs of messages: where a request begins, what it wants, and the answer with what the store has of it.

Owner, filters and position are looked at in the middle of a visit, when the extent of the log is known; what was read
is noted behind it.  If another request has moved the position meanwhile, which another server loop may do, the pack is
not given: whoever confirmed it would confirm what that one has read.

Locality: any thread, with a reader of its own.  Locks: takes the mutex of the registrations, and those that the
store's visitor takes.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset, strlen
from libc.time cimport strftime, time_t, tm

from dataproxy._core.base.buf cimport buf_free, buf_put, buf_put_slice, buf_reserve
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_CLOSED, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.plat.calendar cimport localtime_r
from dataproxy._core.plat.endian cimport load_be16
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock
from dataproxy._core.server.store.header cimport QueueHeader, header_end, header_read
from dataproxy._core.server.store.visits cimport Seen, seen_ahead, visit_free, visit_init
from dataproxy._core.server.tubemq.broker cimport CODE_LIMITED, CODE_NOTHING
from dataproxy._core.server.tubemq.limits cimport limit_check, limit_count
from dataproxy._core.server.tubemq.registrations cimport (
    INDEX_BYTES, REG_OK, Registration, Registrations, registration_book, registration_find, registration_locate,
    registration_use,
)
from dataproxy._core.wire.tubemq.const cimport CHECKSUM_NONE, FLAG_ATTRIBUTE
from dataproxy._core.wire.tubemq.deliver cimport TubeParts, parts_checksum, put_pack
from dataproxy._core.wire.tubemq.get cimport Got
from dataproxy._core.wire.tubemq.stored cimport StoredMessage, put_attribute_head, read_stored, stored_id


cdef void packs_init(PackReader* p) noexcept nogil:
    """Make a reader without memory.  Locks: none."""
    memset(p, 0, sizeof(PackReader))
    visit_init(&p.visit)
    p.minute = -1


cdef void packs_free(PackReader* p) noexcept nogil:
    """Release the memory of a reader.  Locks: none."""
    visit_free(&p.visit)
    buf_free(&p.parts)
    buf_free(&p.heads)
    buf_free(&p.ends)
    buf_free(&p.streams)
    buf_free(&p.filters)


cdef int pack_read(TubeBroker* b, PackReader* p, PackCall* x) noexcept nogil:
    """Visit the partition, append the answer if there are messages, and note what was read."""
    cdef Visit* v = &p.visit
    cdef size_t before = x.out.n
    cdef int status
    x.broker, x.reader = b, p
    v.topic = x.asked.topic
    v.partition = <uint32_t>x.asked.partition
    v.most_entries = PACK_MESSAGES
    v.enough_bytes = PACK_ENOUGH
    v.most_bytes = PACK_MOST
    v.around = PACK_AROUND
    v.place = _place
    v.take = _take
    v.context = <void*>x
    status = b.visit(b.store, v)
    v.streams = NULL
    v.n_streams = 0
    if status != ST_OK:
        return status
    x.n = v.seen.n // sizeof(Seen)
    x.more = x.n > 0 and v.stop < v.next
    if not _book(x):
        x.out.n = before
        x.n = 0
        x.code = CODE_NOTHING
        return ST_CLOSED
    if x.n > 0:
        relaxed_add(&b.packs, 1)
        relaxed_add(&b.messages, <int64_t>x.n)
        relaxed_add(&b.bytes, <int64_t>v.seen_bytes)
    return ST_OK


cdef bint _book(PackCall* x) noexcept nogil:
    """Note what was read; False: another request has moved the position."""
    cdef Registrations* t = x.broker.registrations
    cdef const Visit* v = &x.reader.visit
    cdef Registration* r
    cdef bint booked
    pthread_mutex_lock(&t.mutex)
    r = registration_find(t, x.asked.group, x.asked.topic, x.asked.partition)
    booked = registration_book(t, r, &x.now, <int64_t>v.stop * INDEX_BYTES - x.at, x.n > 0, x.asked.manual)
    if booked:
        x.now.version, x.now.pending = r.version, r.pending
        if x.n > 0:
            limit_count(&r.limit, x.bytes)
    pthread_mutex_unlock(&t.mutex)
    return booked


cdef int _place(void* context) noexcept nogil:
    """Find where the request begins, and what it wants; ST_CLOSED: the client has no right to the partition."""
    cdef PackCall* x = <PackCall*>context
    cdef Registrations* t = x.broker.registrations
    cdef Visit* v = &x.reader.visit
    cdef Registration* r
    cdef int status = ST_OK
    pthread_mutex_lock(&t.mutex)
    r = registration_find(t, x.asked.group, x.asked.topic, x.asked.partition)
    x.code = registration_use(t, r, x.asked.client, x.now_us)
    if x.code == REG_OK:
        r.asked_us = x.now_us
    if x.code == REG_OK and x.since != NULL and (r.version != x.since.version or r.pending != x.since.pending):
        x.code = CODE_NOTHING       # another request has read the partition, or moved its position
    if x.code == REG_OK:
        x.at = registration_locate(t, r, False, x.asked.manual, <int64_t>v.first * INDEX_BYTES,
                                   <int64_t>v.next * INDEX_BYTES)
        x.now.version, x.now.pending = r.version, r.pending
        v.offset = <uint64_t>x.at // INDEX_BYTES
        status = _filter(x.reader, r.filters) if _allow(x, v, t, r) else ST_CLOSED
    else:
        status = ST_CLOSED
    pthread_mutex_unlock(&t.mutex)
    v.streams = <const Slice*>x.reader.streams.p
    v.n_streams = x.reader.streams.n // sizeof(Slice)
    return status


cdef bint _allow(PackCall* x, Visit* v, const Registrations* t, Registration* r) noexcept nogil:
    """Let flow rules bound the pack; False: the group has read enough for now.

    At the end there is nothing to bound, and a client that keeps to its group's rules itself says so.  Locks: the
    caller holds the mutex of the registrations.
    """
    cdef int64_t allowed
    if x.asked.escape or v.offset >= v.next:
        return True
    allowed = limit_check(&r.limit, &t.rules, r.group, _backlog(v, v.offset), x.now_us, x.wall_ms)
    if allowed < 0:
        x.code = CODE_LIMITED
        x.wait_ms = <int32_t>(-1 - allowed)
        return False
    v.enough_bytes = min(v.enough_bytes, <size_t>allowed)
    v.most_bytes = min(v.most_bytes, <size_t>allowed)
    return True


cdef int _filter(PackReader* p, Slice items) noexcept nogil:
    """Take the items of a filter, each behind two bytes of length; ST_OK or ST_NO_MEMORY.  Locks: none."""
    cdef Slice one
    cdef size_t at = 0
    p.streams.n = p.filters.n = 0
    if buf_put_slice(&p.filters, items) != ST_OK:
        return ST_NO_MEMORY
    while at + 2 <= p.filters.n:
        one = slice_of(p.filters.p + at + 2, load_be16(p.filters.p + at))
        if buf_put(&p.streams, &one, sizeof(Slice)) != ST_OK:
            return ST_NO_MEMORY
        at += 2 + one.n
    return ST_OK


cdef int _take(void* context) noexcept nogil:
    """Write the answer with what was seen.  Locks: none."""
    cdef PackCall* x = <PackCall*>context
    cdef PackReader* p = x.reader
    cdef Visit* v = &p.visit
    cdef size_t n = v.seen.n // sizeof(Seen)
    cdef Got g
    cdef int status
    if n == 0:
        return ST_OK
    status = _parts(p, v, n, &x.bytes)
    if status != ST_OK:
        return status
    memset(&g, 0, sizeof(Got))
    g.success = True
    g.code = REG_OK
    g.text = slice_of(<const char*>b"OK!", 3)
    g.offset = <int64_t>v.offset * INDEX_BYTES
    g.max_offset = <int64_t>v.next * INDEX_BYTES
    g.backlog = _backlog(v, v.stop)
    return put_pack(x.out, x.serial, &g, <const TubeParts*>p.parts.p, n)


cdef int64_t _backlog(const Visit* v, uint64_t at) noexcept nogil:
    """Return the bytes from an offset on, from the mean size of the log's entries: they are not looked at."""
    if v.tally.entries == 0 or at >= v.next:
        return 0
    return <int64_t>((v.next - at) * (v.tally.bytes // v.tally.entries))


cdef int _parts(PackReader* p, const Visit* v, size_t n, size_t* bytes) noexcept nogil:
    """Find head and body of each message; a second pass sets the heads, which have moved while there came more.

    ``bytes``: of all payloads.
    """
    cdef const Seen* seen = <const Seen*>v.seen.p
    cdef TubeParts* parts
    cdef size_t* ends
    cdef size_t i, end
    cdef size_t start = 0
    p.parts.n = p.heads.n = p.ends.n = 0
    if buf_reserve(&p.parts, n * sizeof(TubeParts)) != ST_OK or buf_reserve(&p.ends, n * sizeof(size_t)) != ST_OK:
        return ST_NO_MEMORY
    parts = <TubeParts*>p.parts.p
    ends = <size_t*>p.ends.p
    for i in range(n):
        seen_ahead(seen, n, i)
        if not _part(p, v.partition, &seen[i], &parts[i]):
            return ST_NO_MEMORY
        ends[i] = p.heads.n
    for i in range(n):
        end = ends[i]
        parts[i].head = slice_of(p.heads.p + start, end - start)
        if parts[i].checksum == CHECKSUM_NONE:
            parts[i].checksum = parts_checksum(&parts[i])
        bytes[0] += parts[i].head.n + parts[i].body.n
        start = end
    return ST_OK


cdef bint _part(PackReader* p, uint32_t partition, const Seen* seen, TubeParts* out) noexcept nogil:
    """Describe one message, without its head, which is appended to ``p.heads``; False: no memory."""
    cdef StoredMessage stored
    cdef QueueHeader header
    cdef size_t head = header_end(seen.value)
    cdef Slice container = slice_of(seen.value.p + head, seen.value.n - head)
    cdef int status
    out.id = stored_id(partition, seen.offset)
    status = read_stored(container, &p.heads, &stored)
    if status == ST_NO_MEMORY:
        return False
    if status == ST_OK:
        out.flag, out.checksum = stored.flag, stored.checksum
        out.body = stored.body
        return True
    out.flag, out.checksum = FLAG_ATTRIBUTE, CHECKSUM_NONE
    out.body = container
    header.data_time_ms = 0
    header_read(seen.value.p, seen.value.n, &header, &head)
    return put_attribute_head(&p.heads, seen.stream, _time(p, header.data_time_ms)) == ST_OK


cdef Slice _time(PackReader* p, int64_t time_ms) noexcept nogil:
    """Return a time in TubeMQ's form, yyyyMMddHHmm; that of the last minute is kept."""
    cdef time_t seconds
    cdef tm parts
    if time_ms // 60000 != p.minute:
        p.minute = time_ms // 60000
        seconds = <time_t>(p.minute * 60)
        if localtime_r(&seconds, &parts) == NULL or strftime(p.time, sizeof(p.time), b"%Y%m%d%H%M", &parts) == 0:
            p.time[0] = 0
    return slice_of(p.time, strlen(p.time))
