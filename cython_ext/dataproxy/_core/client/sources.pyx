"""Where the bodies of a batch lie: in a sequence of bytes-like objects, or in one buffer of records."""

import re

from cpython.buffer cimport PyBUF_RECORDS_RO, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from dataproxy._core.client.rows cimport ROWS_POINTERS, ROWS_STRIDED
from dataproxy._core.plat.bits cimport prefetch_write

from dataproxy.errors import InvalidMessageError
from dataproxy.problems import body_type

__all__ = ["BodyList"]

cdef enum:
    AHEAD = 8               # items

_NAMES = re.compile(":[^:]*:")


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
    """Return a copy; the headers of its items, which are written for that, are asked for ahead.  Locality: GIL."""
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
    """Describe the items of a list that nobody else has.  Locality: GIL."""
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
            if isinstance(body, str) or not PyObject_CheckBuffer(body):
                raise body_type(body, i)
            copy = bytes(body)          # other kinds may change while the lock is held elsewhere
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


cdef BodyList _records(BodyList out, object data):
    """Take an array: one-dimensional with items of a fixed width, or two-dimensional bytes, rows packed."""
    cdef Py_buffer* v = &out.view
    try:
        PyObject_GetBuffer(data, v, PyBUF_RECORDS_RO)
    except (BufferError, ValueError) as error:
        raise InvalidMessageError(
            f"{type(data).__name__!r} gives no buffer of bytes: {error}",
            hint="pass a list of bytes, or view the array as bytes of a fixed width", code="BAD_BODY") from None
    out.has_view = True
    form = v.format.decode() if v.format != NULL else "B"
    kinds = _NAMES.sub("", form)        # of a structured format, without the field names
    if "O" in kinds or "w" in kinds or "u" in kinds or "&" in kinds:
        raise InvalidMessageError(
            f"an array of format {form!r} holds objects or text, not bytes",
            hint="pass a list of bytes, or encode text: numpy.char.encode(a, 'utf-8')", code="BAD_BODY")
    out.rows.kind = ROWS_STRIDED
    out.rows.base = <const uint8_t*>v.buf
    if v.ndim == 1 and v.itemsize > 1:
        out.rows.width = v.itemsize
    elif v.ndim == 2 and v.itemsize == 1 and v.strides[1] == 1:
        out.rows.width = v.shape[1]
    else:
        raise InvalidMessageError(
            f"an array of {v.ndim} dimensions with items of format {form!r} ({v.itemsize} bytes) is no batch of bodies",
            hint="pass a list of bytes, a one-dimensional array of fixed-width records, or two-dimensional uint8 "
                 "with contiguous rows", code="BAD_BODY")
    out.rows.n = v.shape[0]
    out.rows.stride = v.strides[0]
    return out


cdef BodyList body_rows(object bodies):
    """Describe a batch as rows; raises InvalidMessageError that names the item and its type.  Locality: GIL."""
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
            f"{type(bodies).__name__!r} is no batch of bodies", hint="pass a list of bytes or an array",
            code="BAD_BODY") from None
    return _sequence(out, items)
