"""Making and releasing entries, and reading their ids.

The caller fills an ``Entry`` on its stack with borrowed slices (group, stream, InLongMsg in ``value``,
reply).  It gets a heap block that owns copies of them, with the queue header before the value.  A large value for a
store that keeps it without a copy is in a block of its own, and the store takes this block.

Ids and bodies are hashed on the thread that read the request, so that the committing thread only looks them up.

Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.server.store.header cimport QueueHeader, header_size, header_write
from dataproxy._core.base.buf cimport (
    Buf, buf_free, buf_put, buf_put_be16, buf_put_be32, buf_put_slice, buf_put_u8, buf_reserve,
)
from dataproxy._core.base.siphash cimport Hash128, HashKey, hash_bytes
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.wire.api cimport StoredIds, StoredItem, WireOps

cdef enum IdKind:
    KIND_PACK = 1
    KIND_OWN = 2
    KIND_ROWS = 3

cdef enum:
    BUFFER_KEEP = 1 << 20     # larger buffers are given back after use
    DASH = 45
    DOT = 46
    ROW_TEXT = 17           # of the Spark sink: six digits number its row, eleven are the digest of its block
    ROW_HIGH = 4            # digits of the row number that are the same for all rows of a block
    ROW_NUMBER = 6
    NO_DIGIT = 64
    NO_ROW = 256
    TILDE = 126
    COLUMNS_TEXT = 22       # of the Spark sink, where ids are made of columns: 128 bits


cdef Entry* entry_new(
    const Entry* parts, Slice source, Slice node, const Middle* middle, const StoreOps* ops,
) noexcept nogil:
    """Return a copy of ``parts`` in one block, or two, or NULL.

    Locality: any thread.
    """
    cdef QueueHeader header
    cdef Entry* entry
    cdef uint8_t* at
    cdef uint8_t* value
    cdef void* block = NULL
    cdef size_t head, size
    cdef size_t room = ops.room
    header.receive_ms = parts.receive_ms
    header.data_time_ms = parts.data_time_ms
    header.records = parts.records
    header.stream = 0
    header.stored_ms = 0
    header.source = source
    header.node = node
    head = header_size(&header)
    size = head + parts.value.n + middle.bytes.n
    if size < ops.keeps:
        room = 0
    entry = <Entry*>malloc(sizeof(Entry) + parts.ids.n + (size if room == 0 else 0) + parts.group.n + parts.stream.n
                           + parts.reply.n)
    if entry == NULL:
        return NULL
    if room:
        block = malloc(room + size)
        if block == NULL:
            free(entry)
            return NULL
    entry[0] = parts[0]
    entry.next = NULL
    entry.fault = NULL
    entry.block = block
    entry.kind = ENTRY_MESSAGES
    entry.back = NULL
    entry.joint = NULL
    entry.offset = 0
    entry.log = 0
    entry.duplicates = 0
    entry.conflicts = 0
    entry.reach_ms = -1
    entry.status = 0
    at = _copy(<uint8_t*>entry + sizeof(Entry), &entry.ids)    # first, for their alignment
    value = <uint8_t*>block + room if room else at
    header_write(&header, value)
    _join(value + head, parts.value, middle)
    entry.value = slice_of(value, size)
    if room == 0:
        at += size
    at = _copy(at, &entry.group)
    at = _copy(at, &entry.stream)
    _copy(at, &entry.reply)
    return entry


cdef Entry* entry_offset(const Entry* parts) noexcept nogil:
    """Return a position of a consumer group in one block, or NULL.

    Locality: any thread.
    """
    cdef Entry* entry = <Entry*>malloc(sizeof(Entry) + parts.group.n + parts.stream.n + parts.reply.n)
    cdef uint8_t* at = <uint8_t*>entry + sizeof(Entry)
    if entry == NULL:
        return NULL
    memset(entry, 0, sizeof(Entry))
    entry.origin = parts.origin
    entry.session = parts.session
    entry.kind = parts.kind
    entry.serial = parts.serial
    entry.version = parts.version
    entry.back = parts.back
    entry.partition = parts.partition
    entry.offset = parts.offset
    entry.group = parts.group
    entry.stream = parts.stream
    entry.reply = parts.reply
    entry.reach_ms = -1
    at = _copy(at, &entry.group)
    at = _copy(at, &entry.stream)
    _copy(at, &entry.reply)
    return entry


cdef void _join(uint8_t* to, Slice value, const Middle* middle) noexcept nogil:
    """Write a value with its middle.  Locality: any thread."""
    cdef size_t first = middle.at if middle.bytes.n else value.n
    if value.n == 0:
        return
    memcpy(to, value.p, first)
    if middle.bytes.n:
        memcpy(to + first, middle.bytes.p, middle.bytes.n)
        memcpy(to + first + middle.bytes.n, value.p + first, value.n - first)


cdef void entry_free(Entry* entry) noexcept nogil:
    """Release one entry, and what it shares with others if it is the last.  Locality: owner, one thread for all."""
    if entry.joint != NULL:
        entry.joint.holders -= 1
        if entry.joint.holders == 0:
            buf_free(&entry.joint.ids)
            free(entry.joint)
    free(entry.fault)
    free(entry.block)
    free(entry)


cdef void entry_free_chain(Entry* chain) noexcept nogil:
    """Release every entry of a chain.  Locality: owner."""
    cdef Entry* following
    while chain != NULL:
        following = chain.next
        entry_free(chain)
        chain = following


cdef size_t entry_footprint(const Entry* entry) noexcept nogil:
    """Return the bytes of memory one entry holds.  Locality: any thread."""
    return sizeof(Entry) + entry.ids.n + entry.value.n + entry.group.n + entry.stream.n + entry.reply.n


cdef uint8_t* _copy(uint8_t* at, Slice* slice) noexcept nogil:
    """Copy the bytes of a slice to ``at``, point the slice there, return the place behind.

    Locality: any thread.
    """
    if slice.n:
        memcpy(at, slice.p, slice.n)
    slice.p = at
    return at + slice.n


cdef void ids_init(IdReader* r, const WireOps* wire, const HashKey* key) noexcept nogil:
    """Make a reader; ``key`` outlives it.  Locality: owner."""
    memset(r, 0, sizeof(IdReader))
    r.wire = wire
    r.key = key


cdef void ids_free(IdReader* r) noexcept nogil:
    """Release the memory.  Locality: owner."""
    buf_free(&r.unpacked)
    buf_free(&r.items)
    buf_free(&r.rest)
    buf_free(&r.name)
    buf_free(&r.ids)


cdef int ids_read(IdReader* r, Entry* parts) noexcept nogil:
    """Find and hash the ids in an InLongMsg; an unreadable InLongMsg has no ids.  ST_OK or ST_NO_MEMORY.

    Locality: owner.
    """
    cdef StoredIds found
    cdef int status
    parts.ids = slice_of(NULL, 0)
    parts.items = 0
    r.ids.n = 0
    r.last_row.n = 0
    status = r.wire.stored_ids(parts.value.p, parts.value.n, &r.unpacked, &r.items, &found)
    if status == ST_NO_MEMORY:
        return status
    if status == ST_OK:
        r.name.n = 0
        status = buf_put_be16(&r.name, <unsigned short>parts.group.n)
        status |= buf_put_slice(&r.name, parts.group)
        status |= buf_put_be16(&r.name, <unsigned short>parts.stream.n)
        status |= buf_put_slice(&r.name, parts.stream)
        if status == ST_OK:
            status = _put_items(r, &found, parts) if found.count > 0 else _put_whole(r, &found, parts)
        if status != ST_OK:
            return ST_NO_MEMORY
        parts.ids = slice_of(r.ids.p, r.ids.n)
    _give_back(&r.unpacked)
    _give_back(&r.items)
    _give_back(&r.rest)
    return ST_OK


cdef void _give_back(Buf* buffer) noexcept nogil:
    """Release a buffer that has become large.  Locality: owner."""
    if buffer.cap > BUFFER_KEEP:
        buf_free(buffer)


cdef int _put_whole(IdReader* r, const StoredIds* found, Entry* parts) noexcept nogil:
    """Add the one id of a pack whose messages have no ids of their own.  Locality: owner."""
    parts.items = parts.records
    if found.pack.n == 0 or parts.records == 0:
        return ST_OK
    return _put_id(r, KIND_PACK, found.pack, hash_bytes(r.key, found.payload.p, found.payload.n).first, ID_OF_REST,
                   parts.records, ID_MADE)


cdef int _put_items(IdReader* r, const StoredIds* found, Entry* parts) noexcept nogil:
    """Add the messages' own ids, and the id of the pack for the other messages.  Locality: owner."""
    cdef const StoredItem* item
    cdef uint32_t rest = 0
    cdef uint32_t skipped = 0
    cdef uint32_t i
    cdef int status
    parts.items = <uint32_t>found.count
    r.rest.n = 0
    for i in range(parts.items):
        item = <const StoredItem*>r.items.p + i
        if item.id.n > 0:
            skipped += 1
            status = _put_own(r, item, i)
        else:
            rest += 1
            status = _put_rest(r, item.body, skipped) if found.pack.n > 0 else ST_OK
            skipped = 0
        if status != ST_OK:
            return ST_NO_MEMORY
    if rest == 0 or found.pack.n == 0:
        return ST_OK
    return _put_id(r, KIND_PACK, found.pack, hash_bytes(r.key, r.rest.p, r.rest.n).first, ID_OF_REST, rest,
                   ID_MADE)


cdef int _put_own(IdReader* r, const StoredItem* item, uint32_t i) noexcept nogil:
    """Put the own id of one message.  Locality: owner."""
    cdef uint32_t row = _row_of(item.id)
    if row == NO_ROW:
        r.last_row.n = 0
        return _put_id(r, KIND_OWN, item.id, hash_bytes(r.key, item.body.p, item.body.n).first, i, 1,
                       ID_MADE if id_is_made(item.id) else ID_GIVEN)
    if _same_block(r.last_row, item.id):
        r.last_row = item.id
        return _put_row(r, i, row)
    r.last_row = item.id
    return _put_block(r, item.id, i, row)


cdef int _put_block(IdReader* r, Slice id, uint32_t i, uint32_t row) noexcept nogil:
    """Put the first row of a block.  Locality: owner."""
    cdef size_t prefix = r.name.n
    cdef size_t number = id.n - ROW_TEXT
    cdef Hash128 named
    cdef EntryId entry_id
    cdef int status = buf_put_u8(&r.name, KIND_ROWS)
    status |= buf_put_slice(&r.name, slice_of(id.p, number + ROW_HIGH))
    status |= buf_put_u8(&r.name, <uint8_t>(_digit(id.p[number + ROW_HIGH]) >> 2))
    status |= buf_put_slice(&r.name, slice_of(id.p + number + ROW_NUMBER, ROW_TEXT - ROW_NUMBER))
    if status != ST_OK:
        return ST_NO_MEMORY
    named = hash_bytes(r.key, r.name.p, r.name.n)
    r.name.n = prefix
    memset(&entry_id, 0, sizeof(EntryId))
    entry_id.high = named.first
    entry_id.low = named.second
    entry_id.item = i
    entry_id.messages = 1
    entry_id.row = row
    entry_id.kind = ID_ROWS
    return buf_put(&r.ids, &entry_id, sizeof(EntryId))


cdef int _put_row(IdReader* r, uint32_t i, uint32_t row) noexcept nogil:
    """Put a further row of the block that was put last.  Locality: owner."""
    cdef EntryId* last = <EntryId*>(r.ids.p + r.ids.n) - 1
    cdef EntryId one = last[0]
    if row == last.row + last.messages and i == last.item + last.messages:
        last.messages += 1
        return ST_OK
    one.item = i
    one.messages = 1
    one.row = row
    return buf_put(&r.ids, &one, sizeof(EntryId))


cdef int _put_rest(IdReader* r, Slice body, uint32_t skipped) noexcept nogil:
    """Add a message without an id in the form of plain packs; messages with ids before it are added as empty ones.

    Locality: owner.
    """
    cdef int status = buf_reserve(&r.rest, 4 * <size_t>skipped + 4 + body.n)
    if status != ST_OK:
        return status
    memset(r.rest.p + r.rest.n, 0, 4 * <size_t>skipped)
    r.rest.n += 4 * <size_t>skipped
    buf_put_be32(&r.rest, <uint32_t>body.n)
    return buf_put_slice(&r.rest, body)


cdef bint id_is_made(Slice id) noexcept nogil:
    """Tell whether an id has a form that this package makes by itself.

    A producer names the messages of a divided pack ``<13 characters>-<hex>.<place>``, the Spark sink its rows
    ``<8 characters>.[<micro-batch>.]<partition>.<17 characters>`` or, with the option ``idFrom``,
    ``<8 characters>.[<micro-batch>.]~<22 characters>``, the last ones base64url.
    Locality: any thread.
    """
    cdef size_t at = 14
    if id.n > 16 and id.p[13] == DASH:
        while at < id.n and _is_hex(id.p[at]):
            at += 1
        return at > 14 and at + 1 < id.n and id.p[at] == DOT and _digits(id, at + 1) == id.n
    return _is_row(id) or _is_of_columns(id)


cdef bint _is_of_columns(Slice id) noexcept nogil:
    """Tell whether an id has the form of those that the Spark sink makes of columns.  Locality: any thread."""
    cdef size_t tilde = id.n - COLUMNS_TEXT - 1
    cdef size_t at
    if id.n < COLUMNS_TEXT + 10 or id.p[8] != DOT or id.p[tilde] != TILDE:
        return False
    at = _digits(id, 9)
    at += at > 9 and id.p[at] == DOT
    return at == tilde and id.p[at - 1] == DOT and _are_base64(id, tilde + 1)


cdef bint _is_row(Slice id) noexcept nogil:
    """Tell whether an id has the form of those of the Spark sink's rows.  Locality: any thread."""
    cdef size_t at
    cdef size_t end
    if id.n < ROW_TEXT + 11 or id.p[8] != DOT or id.p[id.n - ROW_TEXT - 1] != DOT:
        return False
    end = id.n - ROW_TEXT - 1
    at = _digits(id, 9)
    if at > 9 and at < end and id.p[at] == DOT:
        at = _digits(id, at + 1)
    return at == end and id.p[at - 1] != DOT


cdef uint32_t _row_of(Slice id) noexcept nogil:
    """Return the place in its block of the row that an id names, NO_ROW if it names none.

    The check accepts only ids that the sink can make: a row number below 26 * 2**30 begins with a capital letter, and a
    digest of 64 bits with one of the first sixteen digits.  An application may send ``20240701.7.20240701120000123``;
    this is no row.
    Locality: any thread.
    """
    cdef const uint8_t* digits
    cdef uint32_t high
    cdef uint32_t low
    if not _is_row(id) or not _are_base64(slice_of(id.p, 8), 0) or not _are_base64(id, id.n - ROW_TEXT):
        return NO_ROW
    digits = id.p + id.n - ROW_TEXT
    if _digit(digits[0]) >= 26 or _digit(digits[ROW_NUMBER]) >= 16:
        return NO_ROW
    high = _digit(digits[ROW_HIGH])
    low = _digit(digits[ROW_HIGH + 1])
    if high == NO_DIGIT or low == NO_DIGIT:
        return NO_ROW
    return (high & 3) << 6 | low


cdef bint _same_block(Slice one, Slice other) noexcept nogil:
    """Tell whether two ids of rows name the same block.  Locality: any thread."""
    cdef size_t number = other.n - ROW_TEXT
    return (one.n == other.n and memcmp(one.p, other.p, number + ROW_HIGH) == 0
            and _digit(one.p[number + ROW_HIGH]) >> 2 == _digit(other.p[number + ROW_HIGH]) >> 2
            and memcmp(one.p + number + ROW_NUMBER, other.p + number + ROW_NUMBER, ROW_TEXT - ROW_NUMBER) == 0)


cdef inline uint32_t _digit(uint8_t c) noexcept nogil:
    """Return the value of a digit of base64url, NO_DIGIT for any other byte."""
    if 65 <= c <= 90:
        return c - 65
    if 97 <= c <= 122:
        return c - 71
    if 48 <= c <= 57:
        return c + 4
    if c == DASH:
        return 62
    return 63 if c == 95 else NO_DIGIT


cdef inline bint _is_hex(uint8_t c) noexcept nogil:
    return 48 <= c <= 57 or 97 <= c <= 102


cdef inline bint _are_base64(Slice id, size_t at) noexcept nogil:
    """Tell whether all that stands from a place on is base64url."""
    cdef uint8_t c
    while at < id.n:
        c = id.p[at]
        if not (48 <= c <= 57 or 65 <= c <= 90 or 97 <= c <= 122 or c == DASH or c == 95):
            return False
        at += 1
    return True


cdef inline size_t _digits(Slice id, size_t at) noexcept nogil:
    """Return where the decimal digits that begin at a place end."""
    while at < id.n and 48 <= id.p[at] <= 57:
        at += 1
    return at


cdef int _put_id(
    IdReader* r, int kind, Slice text, uint64_t digest, uint32_t item, uint32_t messages, int known_as,
) noexcept nogil:
    """Put one id.  Locality: owner."""
    cdef size_t prefix = r.name.n
    cdef EntryId id
    cdef Hash128 named
    cdef int status = buf_put_u8(&r.name, <unsigned char>kind)
    status |= buf_put_slice(&r.name, text)
    if status != ST_OK:
        return ST_NO_MEMORY
    named = hash_bytes(r.key, r.name.p, r.name.n)
    r.name.n = prefix
    id.high = named.first
    id.low = named.second
    id.digest = digest
    id.item = item
    id.messages = messages
    id.row = 0
    id.kind = known_as
    return buf_put(&r.ids, &id, sizeof(EntryId))
