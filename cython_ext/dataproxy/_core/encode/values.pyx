"""One value as plain text (for delimited formats) or as JSON; values inside of others are always JSON.

Locality: the owner of the buffer, without the GIL.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.encode.floats cimport put_double, put_float
from dataproxy._core.encode.nodes cimport (
    NODE_BOOL, NODE_BYTES32, NODE_BYTES_FIXED, NODE_DATE, NODE_DATE_MILLIS, NODE_DECIMAL, NODE_DICTIONARY, NODE_DOUBLE,
    NODE_DURATION, NODE_FLOAT, NODE_HALF, NODE_INT8, NODE_INT32, NODE_INT64, NODE_LIST32, NODE_LIST64, NODE_LIST_FIXED,
    NODE_LIST_VIEW32, NODE_MAP, NODE_STRUCT, NODE_TEXT32, NODE_TEXT_VIEW, NODE_TIME, NODE_TIMESTAMP,
    NODE_UINT64, Node, integer_at, node_behind, node_is_null,
)
from dataproxy._core.encode.numbers cimport put_integer, put_scaled
from dataproxy._core.encode.texts cimport add, add_u8, put_base64, put_json_text, room
from dataproxy._core.encode.times cimport (
    TIME_MILLIS, put_coarse_timestamp, put_date, put_duration, put_time_of_day, put_timestamp,
)

cdef int64_t DAY_MILLIS = 86400000


cdef inline int64_t _floor(int64_t v, int64_t by) noexcept nogil:
    return v // by - (1 if v % by < 0 else 0)


cdef inline int64_t _in_unit(const Node* node, int64_t v) noexcept nogil:
    if node.divisor == 1:
        return v * node.multiplier      # of a time of day: seconds and milliseconds have 32 bits
    return _floor(v, node.divisor)


cdef int _put_decimal(Buf* out, const Node* node, int64_t at) noexcept nogil:
    cdef uint64_t halves[2]
    cdef int64_t v
    if node.width == 16:
        memcpy(halves, node.values + at * 16, 16)
        return put_scaled(out, halves[1], halves[0], node.scale)
    v = (<const int32_t*>node.values)[at] if node.width == 4 else (<const int64_t*>node.values)[at]
    return put_scaled(out, <uint64_t>(v >> 63), <uint64_t>v, node.scale)


cdef float _half(uint16_t bits) noexcept nogil:
    """Return a number of 16 bits as one of 32."""
    cdef uint32_t sign = <uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31, rest = bits & 1023, wide
    cdef float out
    if exponent == 31:
        wide = sign | 0x7F800000 | rest << 13
    elif exponent:
        wide = sign | (exponent + 112) << 23 | rest << 13
    else:                                       # zero, or below the least normal number: exact in 32 bits
        return (-1.0 if sign else 1.0) * <float>rest / 16777216.0
    memcpy(&out, &wide, 4)
    return out


cdef inline double _real(const Node* node, int64_t at) noexcept nogil:
    if node.kind == NODE_DOUBLE:
        return (<const double*>node.values)[at]
    if node.kind == NODE_FLOAT:
        return (<const float*>node.values)[at]
    return _half((<const uint16_t*>node.values)[at])


cdef int _put_time(Buf* out, const Node* node, int64_t at) noexcept nogil:
    cdef int64_t v
    if node.multiplier >= 1000000:          # seconds and milliseconds have 32 bits
        v = (<const int32_t*>node.values)[at]
    else:
        v = (<const int64_t*>node.values)[at]
    return put_time_of_day(out, _in_unit(node, v))


cdef inline int _put_timestamp(Buf* out, const Node* node, int64_t v, const ValueStyle* style) noexcept nogil:
    if node.multiplier > 1:
        return put_coarse_timestamp(out, v, node.multiplier == 1000, node.zone, style.times, style.days)
    return put_timestamp(out, _in_unit(node, v), node.zone, style.times, style.days)


cdef int _put_simple(Buf* out, const Node* node, int64_t at, const ValueStyle* style) noexcept nogil:
    """Append what looks the same in JSON but for quotes around it."""
    cdef int kind = node.kind
    if kind == NODE_INT64:
        return put_integer(out, (<const int64_t*>node.values)[at])
    elif kind == NODE_UINT64:
        return put_scaled(out, 0, (<const uint64_t*>node.values)[at], 0)
    elif NODE_INT8 <= kind < NODE_UINT64:
        return put_integer(out, integer_at(kind, node.values, at))
    elif kind == NODE_DOUBLE:
        return put_double(out, (<const double*>node.values)[at])
    elif kind == NODE_FLOAT:
        return put_float(out, (<const float*>node.values)[at])
    elif kind == NODE_HALF:
        return put_float(out, _half((<const uint16_t*>node.values)[at]))
    elif kind == NODE_TIMESTAMP:
        return _put_timestamp(out, node, (<const int64_t*>node.values)[at], style)
    elif kind == NODE_DATE:
        return put_date(out, (<const int32_t*>node.values)[at], style.days)
    elif kind == NODE_DATE_MILLIS:
        return put_date(out, _floor((<const int64_t*>node.values)[at], DAY_MILLIS), style.days)
    elif kind == NODE_DURATION:
        return put_duration(out, (<const int64_t*>node.values)[at], node.divisor, node.scale)
    elif kind == NODE_DECIMAL:
        return _put_decimal(out, node, at)
    elif kind == NODE_BOOL:
        if room(out, 8) != ST_OK:
            return ST_NO_MEMORY
        if (node.values[at >> 3] >> (at & 7)) & 1:
            memcpy(out.p + out.n, b"true", 4)
            out.n += 4
        else:
            memcpy(out.p + out.n, b"false", 5)
            out.n += 5
        return ST_OK
    return _put_time(out, node, at)


cdef bint _is_quoted(const Node* node, int64_t at, const ValueStyle* style) noexcept nogil:
    """Tell whether a simple value is no JSON number or word."""
    cdef double v
    cdef int kind = node.kind
    if kind == NODE_DATE or kind == NODE_TIME or kind == NODE_DATE_MILLIS or kind == NODE_DURATION:
        return True
    elif kind == NODE_TIMESTAMP:
        return style.times != TIME_MILLIS
    elif NODE_HALF <= kind <= NODE_DOUBLE:
        v = _real(node, at)
        return v - v != 0                       # NaN or infinite
    return False


cdef int put_plain(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil:
    """Append value ``i``, which is not null, without quotes; binary as base64, containers as JSON.

    ST_OK or ST_NO_MEMORY.
    """
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    node = node_behind(node, &i)
    if NODE_TEXT32 <= node.kind <= NODE_TEXT_VIEW:
        bytes_of(node, node.offset + i, &p, &n)
        return add(out, p, n)
    if NODE_BYTES32 <= node.kind <= NODE_BYTES_FIXED:
        bytes_of(node, node.offset + i, &p, &n)
        return put_base64(out, p, n)
    if node.kind >= NODE_LIST32:
        return put_json(out, node, i, style)
    return _put_simple(out, node, node.offset + i, style)


cdef int _put_list(Buf* out, const Node* node, int64_t at, const ValueStyle* style) noexcept nogil:
    cdef int64_t k, start, end
    cdef int failed = add_u8(out, 91)
    if node.kind == NODE_LIST32:
        start, end = node.offsets32[at], node.offsets32[at + 1]
    elif node.kind == NODE_LIST64:
        start, end = node.offsets64[at], node.offsets64[at + 1]
    elif node.kind == NODE_LIST_FIXED:
        start = at * node.width
        end = start + node.width
    elif node.kind == NODE_LIST_VIEW32:
        start = node.offsets32[at]
        end = start + (<const int32_t*>node.data)[at]
    else:
        start = node.offsets64[at]
        end = start + (<const int64_t*>node.data)[at]
    for k in range(start, end):
        if k > start:
            failed |= add_u8(out, 44)
        failed |= put_json(out, &node.children[0], k, style)
    return failed | add_u8(out, 93)


cdef int _put_key(Buf* out, const Node* key, int64_t k, const ValueStyle* style) noexcept nogil:
    """Append a map's key, which is text in JSON whatever its type."""
    cdef Buf text
    cdef int failed
    if node_is_null(key, k):
        return add(out, b'"null"', 6)
    key = node_behind(key, &k)
    if key.kind >= NODE_LIST32:                 # JSON inside of a JSON string
        buf_init(&text)
        failed = put_json(&text, key, k, style)
        failed |= put_json_text(out, text.p, text.n)
        buf_free(&text)
        return failed
    if is_wordy(key):
        return put_json(out, key, k, style)
    failed = add_u8(out, 34)
    failed |= _put_simple(out, key, key.offset + k, style)
    return failed | add_u8(out, 34)


cdef int _put_map(Buf* out, const Node* node, int64_t at, const ValueStyle* style) noexcept nogil:
    cdef const Node* entries = &node.children[0]
    cdef int64_t k, start = node.offsets32[at]
    cdef int failed = add_u8(out, 123)
    for k in range(start, node.offsets32[at + 1]):
        if k > start:
            failed |= add_u8(out, 44)
        failed |= _put_key(out, &entries.children[0], entries.offset + k, style)
        failed |= add_u8(out, 58)
        failed |= put_json(out, &entries.children[1], entries.offset + k, style)
    return failed | add_u8(out, 125)


cdef int _put_struct(Buf* out, const Node* node, int64_t at, const ValueStyle* style) noexcept nogil:
    cdef int64_t k
    cdef size_t first = 1
    cdef int failed = add_u8(out, 123)
    for k in range(node.n_children):
        if style.leave_nulls_out and node_is_null(&node.children[k], at):
            continue
        failed |= add(out, node.children[k].label.p + first, node.children[k].label.n - first)
        first = 0
        failed |= put_json(out, &node.children[k], at, style)
    return failed | add_u8(out, 125)


cdef int put_json(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil:
    """Append value ``i`` as JSON; ST_OK or ST_NO_MEMORY."""
    if node_is_null(node, i):
        return add(out, b"null", 4)
    return put_value(out, node, i, style)


cdef int put_value(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil:
    """Append value ``i``, which is not null, as JSON; ST_OK or ST_NO_MEMORY."""
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    cdef int64_t at = node.offset + i
    cdef int failed = 0, kind = node.kind
    if NODE_TEXT32 <= kind <= NODE_TEXT_VIEW:
        bytes_of(node, at, &p, &n)
        return put_json_text(out, p, n)
    elif kind == NODE_INT64:
        return put_integer(out, (<const int64_t*>node.values)[at])
    elif kind == NODE_INT32:
        return put_integer(out, (<const int32_t*>node.values)[at])
    elif kind == NODE_DECIMAL:
        return _put_decimal(out, node, at)
    elif kind == NODE_DICTIONARY:
        node = node_behind(node, &i)
        return put_value(out, node, i, style)
    elif NODE_LIST32 <= kind <= NODE_LIST_FIXED:
        failed = _put_list(out, node, at, style)
    elif kind == NODE_MAP:
        failed = _put_map(out, node, at, style)
    elif kind == NODE_STRUCT:
        failed = _put_struct(out, node, at, style)
    elif NODE_BYTES32 <= kind <= NODE_BYTES_FIXED:
        bytes_of(node, at, &p, &n)
        failed |= add_u8(out, 34)
        failed |= put_base64(out, p, n)
        failed |= add_u8(out, 34)
    elif _is_quoted(node, at, style):
        failed |= add_u8(out, 34)
        failed |= _put_simple(out, node, at, style)
        failed |= add_u8(out, 34)
    else:
        return _put_simple(out, node, at, style)
    return ST_NO_MEMORY if failed else ST_OK
