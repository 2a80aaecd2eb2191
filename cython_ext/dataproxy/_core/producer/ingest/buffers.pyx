"""Objects with the buffer protocol (PEP 3118) as bytes: which memory they may export, and what cannot be sent.

An exporter may leave out shape, strides and suboffsets, whatever a consumer asks for (ctypes does).  So each of them is
checked before it is used, and sizes that contradict each other are refused before any byte is read.

Locality: GIL.  Locks: none.
"""

import re

from cpython.buffer cimport PyBUF_FULL_RO, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t

from dataproxy._core.plat.pytype cimport copy_buffer, is_contiguous

from dataproxy.problems import body_type, buffer_problem

__all__: list = []

cdef enum:
    MOST_DIMENSIONS = 64

_NAMES = re.compile(":[^:]*:")                  # of fields, in a structured format
# Objects, pointers, functions, text: their memory holds addresses, or characters without an encoding.  Z alone is a
# pointer to text; before f, d or g it means a complex number.
_NO_BYTES = re.compile("[OPXwuz&]|Z(?![fdg])")


cdef bint _is_bytes(const char* form):
    """Tell whether items of a format can be sent as they lie in memory."""
    if form == NULL or form[0] == b"B" and form[1] == 0:
        return True
    return _NO_BYTES.search(_NAMES.sub("", (<bytes>form).decode("latin-1"))) is None


cdef bint _agrees(const Py_buffer* v) noexcept:
    """Tell whether the sizes of a view agree with each other: ``len`` is that of all items, without gaps."""
    cdef int64_t n = v.itemsize
    cdef int i
    if v.len < 0 or n < 0 or v.ndim < 0 or v.ndim > MOST_DIMENSIONS:
        return False
    if v.len > 0 and v.buf == NULL or v.ndim > 1 and v.shape == NULL:
        return False
    if v.ndim == 1 and v.shape == NULL and (v.strides != NULL or v.suboffsets != NULL):
        return False                    # PEP 3118 forbids strides or suboffsets without a shape
    if v.ndim == 0 or v.shape == NULL:
        return n == 0 and v.len == 0 or n > 0 and v.len % n == 0 and (v.ndim == 1 or v.len == n)
    for i in range(v.ndim):
        if v.shape[i] < 0:
            return False
        if v.shape[i] == 0:
            n = 0
    for i in range(v.ndim):
        if n > 0 and v.shape[i] > v.len // n:
            return False
        n *= v.shape[i]
    return n == v.len


cdef object buffer_open(object thing, Py_buffer* view):
    """Open ``view`` on an object and return None; the caller releases it.  Otherwise return why it is not bytes."""
    try:
        PyObject_GetBuffer(thing, view, PyBUF_FULL_RO)
    except (BufferError, TypeError, ValueError) as error:
        return f"{type(thing).__name__!r} has no buffer of bytes: {error}"
    if not _agrees(view):
        PyBuffer_Release(view)
        return f"{type(thing).__name__!r} has a buffer whose sizes contradict each other"
    if not _is_bytes(view.format):
        form = (<bytes>view.format).decode("latin-1")
        PyBuffer_Release(view)
        return f"a {type(thing).__name__!r} of format {form!r} holds objects, addresses or text, not bytes"
    return None


cdef bint buffer_is_plain(const Py_buffer* view) noexcept:
    """Tell whether the bytes lie one behind the other in the order of the items."""
    return view.len == 0 or is_contiguous(view, b"C")


cdef bytes buffer_copy(const Py_buffer* view):
    """Return the bytes of all items in order."""
    cdef bytes out = PyBytes_FromStringAndSize(NULL, view.len)
    if view.len:
        copy_buffer(PyBytes_AS_STRING(out), view, view.len, b"C")
    return out


cdef bytes buffer_bytes(object body, object item):
    """Return a copy of a body that is not ``bytes``, number ``item`` of its batch (None: a single one).

    Raises InvalidMessageError.
    """
    cdef Py_buffer view
    if isinstance(body, str) or not PyObject_CheckBuffer(body):
        raise body_type(body, item)
    reason = buffer_open(body, &view)
    if reason is not None:
        raise buffer_problem(reason, item)
    try:
        return buffer_copy(&view)
    finally:
        PyBuffer_Release(&view)
