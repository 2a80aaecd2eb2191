"""Columns of a pack: whichever are wanted, with one copy of bytes and no object for a row.

Bodies lie apart from each other in an answer, and Arrow's columns of bytes do not: so they are copied once, in C.
Attributes that are those of the message before, which the pack shows by their address, are not taken apart again.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memchr, memcpy, memset

from dataproxy._core.base.slice cimport Slice, slice_of, slice_text
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.base.text cimport is_utf8
from dataproxy._core.consumer.arrowtree cimport (
    NULLABLE, bytes_node, map_node, nullable_node, numbers_node, schema_node, struct_node,
)
from dataproxy._core.consumer.minutes cimport minute_of
from dataproxy._core.consumer.tubepack cimport TubeItem, TubePack
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema
from dataproxy._core.wire.tubemq.payload cimport attribute_value

cdef const char* TIME_KEY = "$msgTime$"

cdef enum:
    INDEX_BYTES = 28            # of an offset, for each message of a store


cdef int _column_schema(int kind, ArrowSchema* s) noexcept nogil:
    cdef ArrowSchema* entries
    if kind == CO_TOPIC:
        return schema_node(s, "u", "topic", 0, 0)
    if kind == CO_PARTITION:
        return schema_node(s, "u", "partition", 0, 0)
    if kind == CO_PACK_OFFSET:
        return schema_node(s, "l", "offset", 0, 0)
    if kind == CO_INDEX:
        return schema_node(s, "i", "index", 0, 0)
    if kind == CO_ID:
        return schema_node(s, "l", "id", 0, 0)
    if kind == CO_BODY:
        return schema_node(s, "z", "body", 0, 0)
    if kind == CO_OFFSET:
        return schema_node(s, "l", "message_offset", NULLABLE, 0)
    if kind == CO_TIME:
        return schema_node(s, "tsu:", "time", NULLABLE, 0)
    if kind == CO_UTC:
        return schema_node(s, "tsu:UTC", "time", NULLABLE, 0)
    if schema_node(s, "+m", "attributes", 0, 1) != ST_OK:
        return ST_NO_MEMORY
    entries = s.children[0]
    if (schema_node(entries, "+s", "entries", 0, 2) != ST_OK
            or schema_node(entries.children[0], "u", "key", 0, 0) != ST_OK
            or schema_node(entries.children[1], "u", "value", NULLABLE, 0) != ST_OK):
        return ST_NO_MEMORY
    return ST_OK


cdef int columns_schema(const int* kinds, int n, ArrowSchema* out) noexcept nogil:
    """Make the schema."""
    cdef int i, status = schema_node(out, "+s", "", 0, n)
    for i in range(n):
        if status == ST_OK:
            status = _column_schema(kinds[i], out.children[i])
    if status != ST_OK and out.release != NULL:
        out.release(out)
    return status


cdef int _repeated(ArrowArray* a, int64_t rows, Slice text) noexcept nogil:
    """Make a column that has one text in all rows: what is there is doubled until it is all."""
    cdef int32_t* ends = NULL
    cdef uint8_t* data = NULL
    cdef int32_t size = <int32_t>text.n
    cdef int64_t i, done = <int64_t>text.n, all_ = rows * <int64_t>text.n
    if all_ > INT32_MAX or bytes_node(a, rows, all_, &ends, &data) != ST_OK:
        return ST_NO_MEMORY
    for i in range(rows + 1):
        ends[i] = <int32_t>i * size
    if all_:
        memcpy(data, text.p, text.n)
    while done < all_:
        memcpy(data + done, data, <size_t>min(done, all_ - done))
        done *= 2
    return ST_OK


cdef int _pack_offsets(const TubePack* p, int64_t rows, ArrowArray* a) noexcept nogil:
    cdef void* data = NULL
    cdef int64_t i, offset = p.offset
    if numbers_node(a, rows, 8, &data) != ST_OK:
        return ST_NO_MEMORY
    for i in range(rows):
        (<int64_t*>data)[i] = offset
    return ST_OK


cdef int _indexes(int64_t rows, ArrowArray* a) noexcept nogil:
    cdef void* data = NULL
    cdef int64_t i
    if numbers_node(a, rows, 4, &data) != ST_OK:
        return ST_NO_MEMORY
    for i in range(rows):
        (<int32_t*>data)[i] = <int32_t>i
    return ST_OK


cdef int _ids(const TubePack* p, int64_t rows, ArrowArray* a) noexcept nogil:
    cdef void* data = NULL
    cdef int64_t i
    if numbers_node(a, rows, 8, &data) != ST_OK:
        return ST_NO_MEMORY
    for i in range(rows):
        (<int64_t*>data)[i] = p.items[i].id
    return ST_OK


cdef int _offsets(int64_t first, int64_t rows, ArrowArray* a) noexcept nogil:
    cdef void* data = NULL
    cdef uint8_t* bits = NULL
    cdef int64_t i
    if first < 0:
        return nullable_node(a, rows, &data, &bits)
    if numbers_node(a, rows, 8, &data) != ST_OK:
        return ST_NO_MEMORY
    for i in range(rows):
        (<int64_t*>data)[i] = first + i * INDEX_BYTES
    return ST_OK


cdef int _times(const TubePack* p, int64_t rows, ArrowArray* a) noexcept nogil:
    """Make the times of messages, to the minute; null without one, and for what is none."""
    cdef void* data = NULL
    cdef uint8_t* bits = NULL
    cdef Slice before = slice_of(NULL, 0), text
    cdef int64_t i, minute = 0
    cdef bint there = False
    if nullable_node(a, rows, &data, &bits) != ST_OK:
        return ST_NO_MEMORY
    for i in range(rows):
        if p.items[i].attribute.p != before.p or p.items[i].attribute.n != before.n:
            before = p.items[i].attribute
            there = attribute_value(before, slice_text(TIME_KEY), &text) and minute_of(text, &minute)
        if there:
            (<int64_t*>data)[i] = minute * 60000000
            bits[i // 8] |= <uint8_t>(1 << (i % 8))
            a.null_count -= 1
    return ST_OK


cdef int _bodies(const TubePack* p, int64_t rows, ArrowArray* a) noexcept nogil:
    cdef int32_t* ends = NULL
    cdef uint8_t* data = NULL
    cdef int64_t i, size = p.body_bytes
    cdef const TubeItem* item
    if size > INT32_MAX:
        return ST_NO_MEMORY
    for i in range(rows, p.n):
        size -= <int64_t>p.items[i].body.n
    if bytes_node(a, rows, size, &ends, &data) != ST_OK:
        return ST_NO_MEMORY
    size = 0
    ends[0] = 0
    for i in range(rows):
        item = &p.items[i]
        memcpy(data + size, item.body.p, item.body.n)
        size += <int64_t>item.body.n
        ends[i + 1] = <int32_t>size
    return ST_OK


cdef bint _next_pair(const TubePack* p, Slice* rest, Slice* key, Slice* value) noexcept nogil:
    """Take the next pair of an attribute text that is UTF-8; others are passed over."""
    cdef const uint8_t* end
    cdef const uint8_t* sign
    cdef Slice pair
    while rest.n:
        end = <const uint8_t*>memchr(rest.p, p.pair_mark, rest.n)
        pair = slice_of(rest.p, rest.n if end == NULL else <size_t>(end - rest.p))
        rest[0] = slice_of(rest.p + pair.n, rest.n - pair.n)
        if end != NULL:
            rest[0] = slice_of(rest.p + 1, rest.n - 1)
        sign = <const uint8_t*>memchr(pair.p, p.sign_mark, pair.n) if pair.n else NULL
        if sign != NULL and sign > pair.p and is_utf8(pair):
            key[0] = slice_of(pair.p, <size_t>(sign - pair.p))
            value[0] = slice_of(sign + 1, pair.n - key.n - 1)
            return True
    return False


ctypedef struct Pairs:          # of the attributes of one message, or of all
    int64_t n
    int64_t key_bytes
    int64_t value_bytes


cdef Pairs _pairs_of(const TubePack* p, Slice attribute) noexcept nogil:
    cdef Slice rest = attribute, key, value
    cdef Pairs found
    memset(&found, 0, sizeof(Pairs))
    while _next_pair(p, &rest, &key, &value):
        found.n += 1
        found.key_bytes += <int64_t>key.n
        found.value_bytes += <int64_t>value.n
    return found


ctypedef struct Texts:          # a column of keys or of values that is being made
    int32_t* ends
    uint8_t* data
    int64_t n
    int64_t bytes


cdef inline void _put_text(Texts* t, Slice s) noexcept nogil:
    memcpy(t.data + t.bytes, s.p, s.n)
    t.bytes += <int64_t>s.n
    t.n += 1
    t.ends[t.n] = <int32_t>t.bytes


cdef inline void _put_again(Texts* t, int64_t n, int64_t size) noexcept nogil:
    """Put the last ``n`` texts, together ``size`` bytes, once more."""
    cdef int64_t i
    memcpy(t.data + t.bytes, t.data + t.bytes - size, <size_t>size)
    t.bytes += size
    for i in range(t.n + 1, t.n + 1 + n):
        t.ends[i] = t.ends[i - n] + <int32_t>size
    t.n += n


cdef Pairs _all_pairs(const TubePack* p, int64_t rows) noexcept nogil:
    cdef Slice before = slice_of(NULL, 0)
    cdef Pairs one, found
    cdef int64_t i
    memset(&found, 0, sizeof(Pairs))
    memset(&one, 0, sizeof(Pairs))
    for i in range(rows):
        if p.items[i].attribute.p != before.p or p.items[i].attribute.n != before.n:
            before = p.items[i].attribute
            one = _pairs_of(p, before)
        found.n += one.n
        found.key_bytes += one.key_bytes
        found.value_bytes += one.value_bytes
    return found


cdef int _attributes(const TubePack* p, int64_t rows, ArrowArray* a) noexcept nogil:
    cdef int32_t* ends = NULL
    cdef Texts keys, values
    cdef Slice rest, key, value, before = slice_of(NULL, 0)
    cdef Pairs one, found = _all_pairs(p, rows)
    cdef int64_t i
    memset(&keys, 0, sizeof(Texts))
    memset(&values, 0, sizeof(Texts))
    memset(&one, 0, sizeof(Pairs))
    if (map_node(a, rows, &ends) != ST_OK or struct_node(a.children[0], found.n, 2) != ST_OK
            or bytes_node(a.children[0].children[0], found.n, found.key_bytes, &keys.ends, &keys.data) != ST_OK
            or bytes_node(a.children[0].children[1], found.n, found.value_bytes, &values.ends, &values.data) != ST_OK):
        return ST_NO_MEMORY
    ends[0] = keys.ends[0] = values.ends[0] = 0
    for i in range(rows):
        if p.items[i].attribute.p == before.p and p.items[i].attribute.n == before.n:
            _put_again(&keys, one.n, one.key_bytes)
            _put_again(&values, one.n, one.value_bytes)
        else:
            before = rest = p.items[i].attribute
            one.n, one.key_bytes, one.value_bytes = keys.n, keys.bytes, values.bytes
            while _next_pair(p, &rest, &key, &value):
                _put_text(&keys, key)
                _put_text(&values, value)
            one.n, one.key_bytes, one.value_bytes = (
                keys.n - one.n, keys.bytes - one.key_bytes, values.bytes - one.value_bytes)
        ends[i + 1] = <int32_t>keys.n
    return ST_OK


cdef int _column(const TubePack* p, const Columns* wanted, int kind, ArrowArray* a) noexcept nogil:
    if kind == CO_TOPIC:
        return _repeated(a, wanted.rows, wanted.topic)
    if kind == CO_PARTITION:
        return _repeated(a, wanted.rows, wanted.partition)
    if kind == CO_PACK_OFFSET:
        return _pack_offsets(p, wanted.rows, a)
    if kind == CO_INDEX:
        return _indexes(wanted.rows, a)
    if kind == CO_ID:
        return _ids(p, wanted.rows, a)
    if kind == CO_ATTRIBUTES:
        return _attributes(p, wanted.rows, a)
    if kind == CO_BODY:
        return _bodies(p, wanted.rows, a)
    if kind == CO_OFFSET:
        return _offsets(wanted.first, wanted.rows, a)
    return _times(p, wanted.rows, a)


cdef int columns_of(const TubePack* p, const Columns* wanted, ArrowArray* out) noexcept nogil:
    """Make the columns of the first messages."""
    cdef int i, status
    memset(out, 0, sizeof(ArrowArray))
    status = struct_node(out, wanted.rows, wanted.n)
    for i in range(wanted.n):
        if status == ST_OK:
            status = _column(p, wanted, wanted.kinds[i], out.children[i])
    if status != ST_OK and out.release != NULL:
        out.release(out)
    return status
