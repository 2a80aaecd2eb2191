"""Columns of a pack: topic, partition, offset, index, id, attributes, body; one copy of bytes and no object for a row.

Bodies lie apart from each other in an answer, and Arrow's columns of bytes do not: so they are copied once, in C.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memchr, memcpy, memset

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.base.text cimport is_utf8
from dataproxy._core.consumer.arrowtree cimport (
    NULLABLE, bytes_node, map_node, numbers_node, schema_node, struct_node,
)
from dataproxy._core.consumer.tubepack cimport TubePack
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema

cdef enum:
    COLUMNS = 7


cdef int columns_schema(ArrowSchema* out) noexcept nogil:
    """Make the schema."""
    cdef ArrowSchema* entries
    cdef bint made = (
        schema_node(out, "+s", "", 0, COLUMNS) == ST_OK
        and schema_node(out.children[0], "u", "topic", 0, 0) == ST_OK
        and schema_node(out.children[1], "u", "partition", 0, 0) == ST_OK
        and schema_node(out.children[2], "l", "offset", 0, 0) == ST_OK
        and schema_node(out.children[3], "i", "index", 0, 0) == ST_OK
        and schema_node(out.children[4], "l", "id", 0, 0) == ST_OK
        and schema_node(out.children[5], "+m", "attributes", 0, 1) == ST_OK
        and schema_node(out.children[6], "z", "body", 0, 0) == ST_OK
    )
    if made:
        entries = out.children[5].children[0]
        made = (
            schema_node(entries, "+s", "entries", 0, 2) == ST_OK
            and schema_node(entries.children[0], "u", "key", 0, 0) == ST_OK
            and schema_node(entries.children[1], "u", "value", NULLABLE, 0) == ST_OK
        )
    if not made and out.release != NULL:
        out.release(out)
    return ST_OK if made else ST_NO_MEMORY


cdef int _repeated(ArrowArray* a, int64_t rows, Slice text) noexcept nogil:
    cdef int32_t* ends = NULL
    cdef uint8_t* data = NULL
    cdef int64_t i
    if rows * <int64_t>text.n > INT32_MAX or bytes_node(a, rows, rows * <int64_t>text.n, &ends, &data) != ST_OK:
        return ST_NO_MEMORY
    ends[0] = 0
    for i in range(rows):
        memcpy(data + i * <int64_t>text.n, text.p, text.n)
        ends[i + 1] = <int32_t>((i + 1) * <int64_t>text.n)
    return ST_OK


cdef int _numbers(const TubePack* p, ArrowArray* offset, ArrowArray* index, ArrowArray* id_) noexcept nogil:
    cdef void* data = NULL
    cdef int32_t i
    if numbers_node(offset, p.n, 8, &data) != ST_OK:
        return ST_NO_MEMORY
    for i in range(p.n):
        (<int64_t*>data)[i] = p.offset
    if numbers_node(index, p.n, 4, &data) != ST_OK:
        return ST_NO_MEMORY
    for i in range(p.n):
        (<int32_t*>data)[i] = i
    if numbers_node(id_, p.n, 8, &data) != ST_OK:
        return ST_NO_MEMORY
    for i in range(p.n):
        (<int64_t*>data)[i] = p.items[i].id
    return ST_OK


cdef int _bodies(const TubePack* p, ArrowArray* a) noexcept nogil:
    cdef int32_t* ends = NULL
    cdef uint8_t* data = NULL
    cdef int64_t size = 0
    cdef int32_t i
    for i in range(p.n):
        size += <int64_t>p.items[i].body.n
    if bytes_node(a, p.n, size, &ends, &data) != ST_OK:
        return ST_NO_MEMORY
    size = 0
    ends[0] = 0
    for i in range(p.n):
        memcpy(data + size, p.items[i].body.p, p.items[i].body.n)
        size += <int64_t>p.items[i].body.n
        ends[i + 1] = <int32_t>size
    return ST_OK


cdef bint _next_pair(Slice* rest, Slice* key, Slice* value) noexcept nogil:
    """Take the next ``key=value`` of an attribute text that is UTF-8; others are passed over."""
    cdef const uint8_t* end
    cdef const uint8_t* sign
    cdef Slice pair
    while rest.n:
        end = <const uint8_t*>memchr(rest.p, 44, rest.n)
        pair = slice_of(rest.p, rest.n if end == NULL else <size_t>(end - rest.p))
        rest[0] = slice_of(rest.p + pair.n, rest.n - pair.n)
        if end != NULL:
            rest[0] = slice_of(rest.p + 1, rest.n - 1)
        sign = <const uint8_t*>memchr(pair.p, 61, pair.n) if pair.n else NULL
        if sign != NULL and sign > pair.p and is_utf8(pair):
            key[0] = slice_of(pair.p, <size_t>(sign - pair.p))
            value[0] = slice_of(sign + 1, pair.n - key.n - 1)
            return True
    return False


cdef int _attributes(const TubePack* p, ArrowArray* a) noexcept nogil:
    cdef int32_t* ends = NULL
    cdef int32_t* key_ends = NULL
    cdef int32_t* value_ends = NULL
    cdef uint8_t* keys = NULL
    cdef uint8_t* values = NULL
    cdef Slice rest, key, value
    cdef int64_t pairs = 0, key_bytes = 0, value_bytes = 0
    cdef int32_t i
    for i in range(p.n):
        rest = p.items[i].attribute
        while _next_pair(&rest, &key, &value):
            pairs += 1
            key_bytes += <int64_t>key.n
            value_bytes += <int64_t>value.n
    if (map_node(a, p.n, &ends) != ST_OK or struct_node(a.children[0], pairs, 2) != ST_OK
            or bytes_node(a.children[0].children[0], pairs, key_bytes, &key_ends, &keys) != ST_OK
            or bytes_node(a.children[0].children[1], pairs, value_bytes, &value_ends, &values) != ST_OK):
        return ST_NO_MEMORY
    pairs = key_bytes = value_bytes = 0
    ends[0] = key_ends[0] = value_ends[0] = 0
    for i in range(p.n):
        rest = p.items[i].attribute
        while _next_pair(&rest, &key, &value):
            memcpy(keys + key_bytes, key.p, key.n)
            memcpy(values + value_bytes, value.p, value.n)
            pairs += 1
            key_bytes += <int64_t>key.n
            value_bytes += <int64_t>value.n
            key_ends[pairs] = <int32_t>key_bytes
            value_ends[pairs] = <int32_t>value_bytes
        ends[i + 1] = <int32_t>pairs
    return ST_OK


cdef int columns_of(const TubePack* p, Slice topic, Slice partition, ArrowArray* out) noexcept nogil:
    """Make the columns of all messages."""
    memset(out, 0, sizeof(ArrowArray))
    if (struct_node(out, p.n, COLUMNS) == ST_OK
            and _repeated(out.children[0], p.n, topic) == ST_OK
            and _repeated(out.children[1], p.n, partition) == ST_OK
            and _numbers(p, out.children[2], out.children[3], out.children[4]) == ST_OK
            and _attributes(p, out.children[5]) == ST_OK
            and _bodies(p, out.children[6]) == ST_OK):
        return ST_OK
    if out.release != NULL:
        out.release(out)
    return ST_NO_MEMORY
