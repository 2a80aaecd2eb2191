"""Ids of rows by the values of columns that identify them, whatever partition and place a row has.

An id is a prefix and 128 bits of a hash of group, stream and values.  The key of the hash is public, because every
process of every version has to make the same ids.  So it does not protect against collisions made on purpose.
Rows that follow each other and have equal values, as those that ``explode`` makes of one row, are counted.  The number
goes into the hash, because they are different messages.

Locality: GIL, one thread at a time.  Locks: none.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_put_be64, buf_put_slice, buf_put_u8, buf_reserve
from dataproxy._core.base.siphash cimport Hash128, hash_bytes, hash_key
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.producer.ingest.columnar.arrow cimport column_rows
from dataproxy._core.producer.ingest.columnar.arrowshape cimport check_part
from dataproxy._core.producer.ingest.columnar.columns cimport Columns
from dataproxy._core.producer.ingest.ids cimport OWN_ID_MAX, own_id_valid
from dataproxy._core.producer.ingest.rows cimport ROWS_STRIDED, Rows, rows_get
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema

from dataproxy.errors import InvalidMessageError

__all__ = ["RowKeys"]

cdef enum:
    HASH_TEXT = 22      # 128 bits in base64url
    BITS = 1
    TEXT = 0
    IS_NULL = 0         # the byte in front of a value says its kind
    IS_NUMBER = 1
    IS_TEXT = 2

cdef const char* DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_HASH_KEY = b"dataproxy idFrom"         # other bytes would make other ids of the same rows
_WIDTHS = {b"b": BITS, b"c": 8, b"s": 16, b"i": 32, b"l": 64, b"tdD": 32}


ctypedef struct KeyColumn:
    int bits                # of a number, TEXT for bytes
    const void* numbers
    const uint8_t* validity
    int64_t offset
    Rows texts


cdef int _column(ArrowSchema* schema, ArrowArray* array, int at, KeyColumn* out) except -1:
    """Describe a column.  Raises InvalidMessageError for one without an exact binary form."""
    cdef ArrowArray* values
    cdef bytes form
    check_part(schema, array, at)
    values = array.children[at]
    form = schema.children[at].format
    if form not in _WIDTHS and form[:2] != b"ts":
        out.bits = TEXT
        column_rows(schema, array, at, &out.texts)
        return 0
    out.bits = _WIDTHS.get(form, 64)
    out.numbers = values.buffers[1]
    out.validity = <const uint8_t*>values.buffers[0] if values.null_count != 0 else NULL
    out.offset = values.offset + array.offset
    return 0


cdef inline int64_t _number(const KeyColumn* column, int64_t at) noexcept nogil:
    """Return a number, the same one in columns of any width."""
    if column.bits == BITS:
        return ((<const uint8_t*>column.numbers)[at >> 3] >> (at & 7)) & 1
    if column.bits == 8:
        return (<const int8_t*>column.numbers)[at]
    if column.bits == 16:
        return (<const int16_t*>column.numbers)[at]
    if column.bits == 32:
        return (<const int32_t*>column.numbers)[at]
    return (<const int64_t*>column.numbers)[at]


cdef int _join(Buf* to, const KeyColumn* columns, Py_ssize_t n, int64_t i) noexcept nogil:
    """Append the values of row ``i``, so that different values never make the same bytes."""
    cdef const uint8_t* p = NULL
    cdef size_t size = 0
    cdef Py_ssize_t k
    cdef int64_t at
    cdef int status = ST_OK
    to.n = 0
    for k in range(n):
        if columns[k].bits == TEXT:
            if not rows_get(&columns[k].texts, i, &p, &size):
                status |= buf_put_u8(to, IS_NULL)
                continue
            status |= buf_put_u8(to, IS_TEXT)
            status |= buf_put_be64(to, <uint64_t>size)
            status |= buf_put_slice(to, slice_of(p, size))
            continue
        at = columns[k].offset + i
        if columns[k].validity != NULL and not (columns[k].validity[at >> 3] >> (at & 7)) & 1:
            status |= buf_put_u8(to, IS_NULL)
            continue
        status |= buf_put_u8(to, IS_NUMBER)
        status |= buf_put_be64(to, <uint64_t>_number(&columns[k], at))
    return status


cdef Slice _name(bint has_column, const Rows* column, int64_t i, Slice other) noexcept nogil:
    """Return a row's group or stream, ``other`` if it has none of its own."""
    cdef Slice found = slice_of(NULL, 0)
    return found if has_column and rows_get(column, i, &found.p, &found.n) else other


cdef void _hash_text(uint8_t* to, Hash128 hash) noexcept nogil:
    """Write the 16 bytes of a hash in base64url without padding."""
    cdef int i
    for i in range(10):
        to[i] = <uint8_t>DIGITS[hash.first >> (58 - 6 * i) & 63]
    to[10] = <uint8_t>DIGITS[(hash.first << 2 | hash.second >> 62) & 63]
    for i in range(10):
        to[11 + i] = <uint8_t>DIGITS[hash.second >> (56 - 6 * i) & 63]
    to[21] = <uint8_t>DIGITS[hash.second << 4 & 63]


cdef class RowKeys:
    """Make the ids of one task's rows: ``prefix``, and a hash of the columns at the indices ``columns``.

    Columns are of integers, booleans, dates, timestamps, text or binary.  Batches are taken in the task's order, since
    rows with equal values that follow each other are counted.  Raises InvalidMessageError for a prefix that cannot
    begin an id.  Thread rule: one thread at a time.
    """

    def __cinit__(self, bytes prefix, columns):
        cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(prefix)
        cdef size_t n = <size_t>PyBytes_GET_SIZE(prefix)
        if not own_id_valid(p, n) or n + HASH_TEXT > OWN_ID_MAX:
            raise InvalidMessageError(
                f"{prefix!r} cannot begin an id", hint="use printable ASCII without space, &, = and |")
        self.prefix = prefix
        self.columns = tuple(columns)
        self.key = hash_key(<const uint8_t*>PyBytes_AS_STRING(_HASH_KEY))

    def __dealloc__(self):
        buf_free(&self.values)
        buf_free(&self.ids)

    cdef const Rows* make(self, ArrowSchema* schema, ArrowArray* array, const Columns* c) except NULL:
        """Return the ids of the rows of a batch, valid until the next call.

        Raises InvalidMessageError for a column without an exact binary form.
        """
        cdef Py_ssize_t n = len(self.columns), k
        cdef size_t width = <size_t>PyBytes_GET_SIZE(self.prefix) + HASH_TEXT
        cdef KeyColumn* found = <KeyColumn*>calloc(n, sizeof(KeyColumn))
        cdef int status
        if found == NULL:
            raise MemoryError("no memory for ids of rows")
        try:
            for k in range(n):
                _column(schema, array, self.columns[k], &found[k])
            self.ids.n = 0
            status = buf_reserve(&self.ids, width * <size_t>c.value.n)
            if status == ST_OK:
                status = _put_ids(self, c, found, n)
        finally:
            free(found)
        if status != ST_OK:
            raise MemoryError("no memory for ids of rows")
        memset(&self.rows, 0, sizeof(Rows))
        self.rows.kind = ROWS_STRIDED
        self.rows.base = self.ids.p
        self.rows.width = <int64_t>width
        self.rows.stride = <int64_t>width
        self.rows.n = c.value.n
        return &self.rows


cdef int _seal(Buf* to, Hash128 values, uint64_t equals, Slice group, Slice stream) noexcept nogil:
    """Append the bytes of which an id is the hash."""
    cdef int status
    to.n = 0
    status = buf_put_be64(to, values.first)
    status |= buf_put_be64(to, values.second)
    status |= buf_put_be64(to, equals)
    status |= buf_put_be64(to, <uint64_t>group.n)
    status |= buf_put_slice(to, group)
    return status | buf_put_slice(to, stream)


cdef int _put_ids(RowKeys keys, const Columns* c, const KeyColumn* columns, Py_ssize_t n) noexcept:
    """Put the ids of all rows, for which there is room."""
    cdef const uint8_t* prefix = <const uint8_t*>PyBytes_AS_STRING(keys.prefix)
    cdef size_t prefix_n = <size_t>PyBytes_GET_SIZE(keys.prefix)
    cdef uint8_t* to = keys.ids.p
    cdef Hash128 found
    cdef bint same
    cdef int status = ST_OK
    cdef int64_t i
    with nogil:
        for i in range(c.value.n):
            status = _join(&keys.values, columns, n, i)
            found = hash_bytes(&keys.key, keys.values.p, keys.values.n)
            same = keys.begun and found.first == keys.last.first and found.second == keys.last.second
            keys.equals = keys.equals + 1 if same else 0
            keys.begun = True
            keys.last = found
            status |= _seal(&keys.values, found, keys.equals, _name(c.has_group, &c.group, i, c.default_group),
                            _name(c.has_stream, &c.stream, i, c.default_stream))
            if status != ST_OK:
                break
            memcpy(to, prefix, prefix_n)
            _hash_text(to + prefix_n, hash_bytes(&keys.key, keys.values.p, keys.values.n))
            to += prefix_n + HASH_TEXT
    return status
