"""Where the bodies of a batch lie: in a sequence of bytes-like objects, or in one buffer of records.

Locality: GIL.  Locks: none.
"""

from cpython.buffer cimport PyBuffer_Release, PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from dataproxy._core.producer.ingest.buffers cimport buffer_bytes, buffer_copy, buffer_open
from dataproxy._core.producer.ingest.rows cimport ROWS_POINTERS, ROWS_STRIDED
from dataproxy._core.plat.bits cimport prefetch_write

from dataproxy.errors import InvalidMessageError
from dataproxy.problems import buffer_problem

__all__ = ["BodyList"]

cdef enum:
    AHEAD = 8               # items


cdef class BodyList:
    """Keep the memory of a batch's bodies alive while it is read."""

    def __cinit__(self):
        memset(&self.rows, 0, sizeof(self.rows))

    def __dealloc__(self):
        free(self.pointers)
        free(self.lengths)
        if self.has_view:
            PyBuffer_Release(&self.view)


cdef list _copy(list items):
    """Return a copy of a list.  Copying writes the header of each item, so the headers are prefetched."""
    cdef Py_ssize_t i, n = PyList_GET_SIZE(items)
    cdef list out = PyList_New(n)
    cdef object item
    for i in range(n):
        if i + AHEAD < n:
            prefetch_write(PyList_GET_ITEM(items, i + AHEAD))
        item = <object>PyList_GET_ITEM(items, i)
        Py_INCREF(item)
        PyList_SET_ITEM(out, i, item)
    return out


cdef BodyList _sequence(BodyList out, list items):
    """Describe the items of a list to which nobody else has a reference.  Raises InvalidMessageError, MemoryError."""
    cdef int64_t i, n = PyList_GET_SIZE(items)
    cdef object body
    cdef bytes copy
    out.keep = items
    out.pointers = <const uint8_t**>malloc(<size_t>(n + 1) * sizeof(uint8_t*))
    out.lengths = <int64_t*>malloc(<size_t>(n + 1) * sizeof(int64_t))
    if out.pointers == NULL or out.lengths == NULL:
        raise MemoryError(f"no memory for a batch of {n} bodies")
    for i in range(n):
        body = items[i]
        if not PyBytes_CheckExact(body):
            copy = buffer_bytes(body, i)        # objects of other types may change while this thread waits for a lock
            if out.views is None:
                out.views = []
            out.views.append(copy)
            body = copy
        out.pointers[i] = <const uint8_t*>PyBytes_AS_STRING(body)
        out.lengths[i] = PyBytes_GET_SIZE(body)
    out.rows.kind = ROWS_POINTERS
    out.rows.pointers = out.pointers
    out.rows.lengths = out.lengths
    out.rows.n = n
    return out


cdef bint _is_record(bytes form):
    """Tell whether items of one byte are records (NumPy's S1, V1, structs), and not the bytes of one body."""
    return form in (b"1s", b"1x") or form.startswith(b"T{")


cdef BodyList _records(BodyList out, object data):
    """Take an array: one-dimensional with items of a fixed width, or two-dimensional bytes without gaps.

    Raises InvalidMessageError.
    """
    cdef Py_buffer* v = &out.view
    cdef bytes packed
    reason = buffer_open(data, v)
    if reason is not None:
        raise buffer_problem(reason)
    out.has_view = True
    out.rows.kind = ROWS_STRIDED
    if v.ndim == 1 and (v.itemsize > 1 or (v.format != NULL and _is_record(v.format))):
        out.rows.width = v.itemsize
    elif v.ndim == 2 and v.itemsize == 1 and (
            v.strides == NULL or v.strides[1] == 1 or v.shape[1] <= 1 or v.suboffsets != NULL):
        out.rows.width = v.shape[1]
    else:
        form = v.format.decode("latin-1") if v.format != NULL else "B"
        raise InvalidMessageError(
            f"an array of {v.ndim} dimensions with items of format {form!r} ({v.itemsize} bytes) is not a batch of "
            "bodies",
            hint="pass a list of bytes, a one-dimensional array of fixed-width records, or two-dimensional uint8 "
                 "with contiguous rows", code="BAD_BODY")
    out.rows.n = v.shape[0] if v.shape != NULL else v.len // v.itemsize
    out.rows.base = <const uint8_t*>v.buf
    out.rows.stride = v.strides[0] if v.strides != NULL else out.rows.width
    if v.suboffsets != NULL:
        packed = buffer_copy(v)         # the rows are not in one piece of memory
        out.keep = packed
        out.rows.base = <const uint8_t*>PyBytes_AS_STRING(packed)
        out.rows.stride = out.rows.width
    return out


cdef BodyList body_rows(object bodies):
    """Describe a batch as rows.  Raises InvalidMessageError that names the item and its type, and MemoryError."""
    cdef BodyList out = BodyList()
    if isinstance(bodies, (str, bytes, bytearray)):
        raise InvalidMessageError(
            f"a batch is a sequence of bodies, not one {type(bodies).__name__!r}", hint="pass [body], or use send()",
            code="BAD_BODY")
    if PyList_CheckExact(bodies):
        return _sequence(out, _copy(bodies))
    if PyObject_CheckBuffer(bodies) and getattr(bodies, "dtype", None) != object:
        return _records(out, bodies)
    try:
        items = list(bodies)
    except TypeError:
        raise InvalidMessageError(
            f"{type(bodies).__name__!r} is not a batch of bodies", hint="pass a list of bytes or an array",
            code="BAD_BODY") from None
    return _sequence(out, items)
