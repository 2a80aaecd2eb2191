"""Attributes of rows that are written out first: from columns of their own, escaped, or for another protocol.

A row's attributes are Python objects here, which costs about a microsecond for each.  A map column without escapes
needs no such objects and does not come here.

Locality: GIL.  Locks: none.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.producer.ingest.rows cimport ROWS_POINTERS, Rows, rows_get
from dataproxy._core.encode.nodes cimport Node, node_is_null
from dataproxy._core.encode.values cimport put_plain


cdef class AttrTexts:
    """Hold the attributes of a part's rows."""

    def __dealloc__(self):
        free(self.offsets)
        free(self.pointers)
        free(self.lengths)

    cdef int describe(self, list rows, AttrColumn* out) except -1:
        """Describe ``rows``, a list of (key, value) for each, as a column of attributes.  Raises MemoryError."""
        cdef int64_t n = sum(map(len, rows)), i = 0, row
        cdef bytes key, value
        self.keep = rows
        self.offsets = <int32_t*>calloc(<size_t>len(rows) + 1, sizeof(int32_t))
        self.pointers = <const uint8_t**>calloc(<size_t>(2 * n) + 1, sizeof(uint8_t*))
        self.lengths = <int64_t*>calloc(<size_t>(2 * n) + 1, sizeof(int64_t))
        if self.offsets == NULL or self.pointers == NULL or self.lengths == NULL:
            raise MemoryError(f"no memory for {n} attributes")
        for row in range(<int64_t>len(rows)):
            for key, value in rows[row]:
                self.pointers[i] = <const uint8_t*>PyBytes_AS_STRING(key)
                self.lengths[i] = PyBytes_GET_SIZE(key)
                self.pointers[n + i] = <const uint8_t*>PyBytes_AS_STRING(value)
                self.lengths[n + i] = PyBytes_GET_SIZE(value)
                i += 1
            self.offsets[row + 1] = <int32_t>i
        memset(out, 0, sizeof(AttrColumn))
        out.present = True
        out.offsets = self.offsets
        _side(&out.keys, self.pointers, self.lengths, n)
        _side(&out.values, self.pointers + n, self.lengths + n, n)
        return 0

    cdef int describe_texts(self, list texts, AttrColumn* out) except -1:
        """Describe ``texts``, the bytes of each row's attributes as they are sent.  Raises MemoryError."""
        cdef int64_t i, n = len(texts)
        cdef bytes text
        self.keep = texts
        self.pointers = <const uint8_t**>calloc(<size_t>n + 1, sizeof(uint8_t*))
        self.lengths = <int64_t*>calloc(<size_t>n + 1, sizeof(int64_t))
        if self.pointers == NULL or self.lengths == NULL:
            raise MemoryError(f"no memory for the attributes of {n} rows")
        for i in range(n):
            text = texts[i]
            self.pointers[i] = <const uint8_t*>PyBytes_AS_STRING(text)
            self.lengths[i] = PyBytes_GET_SIZE(text)
        memset(out, 0, sizeof(AttrColumn))
        out.present = out.texts = True
        _side(&out.values, self.pointers, self.lengths, n)
        return 0


cdef void _side(Rows* out, const uint8_t** pointers, const int64_t* lengths, int64_t n) noexcept:
    out.kind = ROWS_POINTERS
    out.pointers = pointers
    out.lengths = lengths
    out.n = n


cdef list attrs_in_columns(BodyEncoder encoder, NodeTree* tree, list keys, int64_t start, int64_t n):
    """Return a list of (key, value) for each of ``n`` rows from ``start`` on; a null value gives no attribute.

    ``keys`` are the names of ``encoder``'s columns, of which ``tree`` was made.
    """
    cdef Buf text
    cdef const Node* node
    cdef int64_t i
    cdef int k
    out = []
    buf_init(&text)
    try:
        for i in range(start, start + n):
            row = []
            for k in range(encoder.n_columns):
                node = &tree.root.children[encoder.columns[k]]
                if node_is_null(node, tree.root.offset + i):
                    continue
                text.n = 0
                if put_plain(&text, node, tree.root.offset + i, &encoder.style.values) != ST_OK:
                    raise MemoryError("no memory for attributes")
                row.append((keys[k], (<const char*>text.p)[:text.n] if text.n else b""))
            out.append(row)
    finally:
        buf_free(&text)
    return out


cdef list attrs_in_map(const AttrColumn* column, int64_t n):
    """Return a list of (key, value) for each of the first rows of a map column; None stands for a null value."""
    cdef const uint8_t* p = NULL
    cdef size_t size = 0
    cdef int64_t i, k, at
    out = []
    for i in range(n):
        row = []
        at = column.offset + i
        if column.validity == NULL or (column.validity[at >> 3] >> (at & 7)) & 1:
            for k in range(column.offsets[at], column.offsets[at + 1]):
                key = (<const char*>p)[:size] if rows_get(&column.keys, k, &p, &size) else b""
                value = (<const char*>p)[:size] if rows_get(&column.values, k, &p, &size) else None
                row.append((key, value))
        out.append(row)
    return out
