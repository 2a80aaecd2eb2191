"""Where the bodies of a batch lie: in a sequence of bytes-like objects, or in one buffer of records.

Locality: GIL.  Locks: none.
"""

from cpython.buffer cimport PyBuffer_Release, PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.producer.ingest.buffers cimport buffer_bytes, buffer_copy, buffer_open
from dataproxy._core.producer.ingest.rows cimport ROWS_POINTERS, ROWS_STRIDED, Rows
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
        memset(&self.owners, 0, sizeof(self.owners))

    def __dealloc__(self):
        cdef int64_t i
        if self.owners.each != NULL:
            for i in range(self.rows.n):        # those that no pack took
                if self.owners.each[i] != NULL:
                    Py_DECREF(<object>self.owners.each[i])
            free(self.owners.each)
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


cdef int _own_large(BodyList out, list items, size_t hold_from) except -1:
    """Make a reference to each large body, for the pack that will hold it.  Raises MemoryError.

    The bytes of items of other types are copies, in ``out.views`` in their order.
    """
    cdef int64_t i, copies = 0
    cdef object body
    out.owners.each = <void**>calloc(<size_t>out.rows.n + 1, sizeof(void*))
    if out.owners.each == NULL:
        raise MemoryError(f"no memory for a batch of {out.rows.n} bodies")
    out.rows.owners = &out.owners
    for i in range(out.rows.n):
        body = items[i]
        if not PyBytes_CheckExact(body):
            body = out.views[copies]
            copies += 1
        if <size_t>out.lengths[i] >= hold_from:
            Py_INCREF(body)
            out.owners.each[i] = <void*>body
    return 0


cdef bint _all_large(list items, size_t hold_from):
    """Tell whether all items are `bytes` that packs may hold: each gets a reference of its own, none is copied."""
    cdef Py_ssize_t i, n = PyList_GET_SIZE(items)
    cdef object item
    for i in range(n):
        if i + AHEAD < n:
            prefetch_write(PyList_GET_ITEM(items, i + AHEAD))
        item = <object>PyList_GET_ITEM(items, i)
        if not PyBytes_CheckExact(item) or <size_t>PyBytes_GET_SIZE(item) < hold_from:
            return False
    return True


cdef int _make_lists(BodyList out, int64_t n) except -1:
    """Make the lists of pointers and lengths for ``n`` bodies.  Raises MemoryError."""
    out.pointers = <const uint8_t**>malloc(<size_t>(n + 1) * sizeof(uint8_t*))
    out.lengths = <int64_t*>malloc(<size_t>(n + 1) * sizeof(int64_t))
    if out.pointers == NULL or out.lengths == NULL:
        raise MemoryError(f"no memory for a batch of {n} bodies")
    return 0


cdef BodyList _sequence(BodyList out, list items, size_t hold_from):
    """Describe the items of a list that nobody changes during the call.  Raises InvalidMessageError, MemoryError."""
    cdef int64_t i, size, largest = 0, n = PyList_GET_SIZE(items)
    cdef object body
    cdef bytes copy
    _make_lists(out, n)
    out.rows.n = n
    for i in range(n):
        body = items[i]
        if not PyBytes_CheckExact(body):
            copy = buffer_bytes(body, i)        # objects of other types may change while this thread waits for a lock
            if out.views is None:
                out.views = []
            out.views.append(copy)
            body = copy
        out.pointers[i] = <const uint8_t*>PyBytes_AS_STRING(body)
        size = PyBytes_GET_SIZE(body)
        out.lengths[i] = size
        largest = max(largest, size)
    if <size_t>largest >= hold_from:
        _own_large(out, items, hold_from)
    out.rows.kind = ROWS_POINTERS
    out.rows.pointers = out.pointers
    out.rows.lengths = out.lengths
    return out


cdef bint _is_record(bytes form):
    """Tell whether items of one byte are records (NumPy's S1, V1, structs), and not the bytes of one body."""
    return form in (b"1s", b"1x") or form.startswith(b"T{")


cdef bint _is_padded(bytes form):
    """Tell whether items are texts that NUL bytes fill up to their width: NumPy's ``S``."""
    return form.endswith(b"s") and form[:-1].isdigit()


cdef int64_t _text_length(const uint8_t* p, int64_t n) noexcept nogil:
    """Return the length of an item without the NUL bytes at its end, as NumPy's own elements have it."""
    cdef uint64_t eight
    while n >= 8:
        memcpy(&eight, p + n - 8, 8)
        if eight != 0:
            break
        n -= 8
    while n > 0 and p[n - 1] == 0:
        n -= 1
    return n


cdef bint _ends_in_nul(const Rows* rows) noexcept nogil:
    """Tell whether any item is shorter than its width."""
    cdef const uint8_t* last = rows.base + rows.width - 1
    cdef int64_t i
    for i in range(rows.n):
        if last[i * rows.stride] == 0:
            return True
    return False


cdef int _unpad(BodyList out) except -1:
    """Describe each item without its padding; items that all fill their width stay one run of memory.

    Raises MemoryError.
    """
    cdef Rows* rows = &out.rows
    cdef int64_t i
    cdef bint found
    with nogil:
        found = _ends_in_nul(rows)
    if not found:
        return 0
    _make_lists(out, rows.n)
    with nogil:
        for i in range(rows.n):
            out.pointers[i] = rows.base + i * rows.stride
            out.lengths[i] = _text_length(out.pointers[i], rows.width)
    rows.kind = ROWS_POINTERS
    rows.pointers = out.pointers
    rows.lengths = out.lengths
    return 0


cdef BodyList _records(BodyList out, object data):
    """Take an array: one-dimensional with items of a fixed width, or two-dimensional bytes without gaps.

    Raises InvalidMessageError and MemoryError.
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
    if v.ndim == 1 and v.format != NULL and _is_padded(v.format):
        _unpad(out)
    return out


cdef BodyList body_rows(object bodies, size_t hold_from):
    """Describe a batch as rows; packs may hold bodies of ``hold_from`` bytes and more.

    Raises InvalidMessageError that names the item and its type, and MemoryError.
    """
    cdef BodyList out = BodyList()
    if isinstance(bodies, (str, bytes, bytearray)):
        raise InvalidMessageError(
            f"a batch is a sequence of bodies, not one {type(bodies).__name__!r}", hint="pass [body], or use send()",
            code="BAD_BODY")
    if PyList_CheckExact(bodies):
        if _all_large(bodies, hold_from):
            return _sequence(out, bodies, hold_from)        # no other thread runs before it is read
        out.keep = _copy(bodies)
        return _sequence(out, out.keep, hold_from)
    if PyObject_CheckBuffer(bodies) and getattr(bodies, "dtype", None) != object:
        return _records(out, bodies)
    try:
        items = list(bodies)
    except TypeError:
        raise InvalidMessageError(
            f"{type(bodies).__name__!r} is not a batch of bodies", hint="pass a list of bytes or an array",
            code="BAD_BODY") from None
    out.keep = items
    return _sequence(out, items, hold_from)
