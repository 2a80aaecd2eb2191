"""Columns of a record batch that say when and where its rows go.

Locality: GIL.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.producer.ingest.columnar.arrow cimport column_rows
from dataproxy._core.producer.ingest.columnar.arrowshape cimport check_part
from dataproxy._core.producer.ingest.columnar.columns cimport AttrColumn, TimeColumn
from dataproxy._core.producer.ingest.rows cimport Rows, rows_get
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema

from dataproxy.errors import InvalidMessageError


cdef int time_column(ArrowSchema* schema, ArrowArray* array, int at, TimeColumn* out) except -1:
    """Describe a column of data times.  Raises InvalidMessageError."""
    cdef ArrowArray* values
    cdef bytes form
    check_part(schema, array, at)
    values = array.children[at]
    form = schema.children[at].format
    scales = {b"l": (1, 1), b"tsm": (1, 1), b"tsu": (1000, 1), b"tsn": (1000000, 1), b"tss": (1, 1000)}
    scale = scales.get(form.partition(b":")[0])
    if scale is None:
        raise InvalidMessageError(
            f"the data time column has the Arrow type {form.decode('utf-8', 'replace')!r}",
            hint="cast it to timestamp or bigint (ms)", code="BAD_COLUMN")
    out.divisor, out.multiplier = scale
    out.values = <const int64_t*>values.buffers[1]
    out.validity = <const uint8_t*>values.buffers[0] if values.null_count != 0 else NULL
    out.offset = values.offset + array.offset
    out.present = True
    return 0


cdef int attr_column(ArrowSchema* schema, ArrowArray* array, int at, AttrColumn* out) except -1:
    """Describe a column of attributes, a map of texts.  Raises InvalidMessageError."""
    cdef ArrowSchema* form
    cdef ArrowArray* values
    cdef bytes kind
    cdef int i
    check_part(schema, array, at)
    form = schema.children[at]
    values = array.children[at]
    if form.format not in (b"+m", b"+l") or form.n_children != 1 or form.children[0].n_children != 2:
        raise InvalidMessageError(
            f"the attribute column has the Arrow type {form.format.decode('utf-8', 'replace')!r}",
            hint="cast it to map<string,string>", code="BAD_COLUMN")
    for i in range(2):
        kind = form.children[0].children[i].format
        if kind not in (b"u", b"U", b"vu", b"z", b"Z", b"vz") and not kind.startswith(b"w:"):
            raise InvalidMessageError(
                f"the attribute column is a map with {'values' if i else 'keys'} of the Arrow type"
                f" {kind.decode('utf-8', 'replace')!r}, which is no text",
                hint="cast it to map<string,string>", code="BAD_COLUMN")
    out.offsets = <const int32_t*>values.buffers[1]
    out.validity = <const uint8_t*>values.buffers[0] if values.null_count != 0 else NULL
    out.offset = values.offset + array.offset
    column_rows(form.children[0], values.children[0], 0, &out.keys)
    column_rows(form.children[0], values.children[0], 1, &out.values)
    out.present = True
    return 0


cdef str text_at(const Rows* column, int64_t i):
    """Return row ``i`` of a column of text, None for a null."""
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    if not rows_get(column, i, &p, &n):
        return None
    return (<const char*>p)[:n].decode("utf-8", "replace")


cdef bytes bytes_at(const Rows* column, int64_t i):
    """Return row ``i`` of a column, which is not null."""
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    rows_get(column, i, &p, &n)
    return (<const char*>p)[:n]


cdef dict attrs_at(const AttrColumn* column, int64_t i):
    """Return row ``i``'s attributes."""
    cdef int64_t at = column.offset + i, k
    out = {}
    for k in range(column.offsets[at], column.offsets[at + 1]):
        out[text_at(&column.keys, k)] = text_at(&column.values, k)
    return out
