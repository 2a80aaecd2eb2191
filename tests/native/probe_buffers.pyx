"""An exporter (PEP 3118) that returns what a test tells it, whatever a consumer asks for; and bodies in buffers."""

from cpython.buffer cimport PyBuffer_Release
from libc.stddef cimport size_t
from libc.stdint cimport SIZE_MAX, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from dataproxy._core.producer.ingest.buffers cimport buffer_bytes, buffer_copy, buffer_is_plain, buffer_open
from dataproxy._core.producer.ingest.rows cimport rows_get
from dataproxy._core.producer.ingest.sources cimport BodyList, body_rows

__all__ = ["Exporter", "bodies", "body", "view"]

cdef enum:
    MOST = 70               # dimensions, more than there may be


cdef class Exporter:
    """Lend ``memory`` with these facts, None standing for NULL.

    ``pointers`` makes the first dimension indirect: the memory that is lent holds the addresses of these offsets of
    ``memory``.  ``exports`` counts views that are open.
    """

    cdef uint8_t* memory        # of exactly its size, so that a sanitizer sees the first byte read behind it
    cdef uint8_t** table
    cdef bytes form
    cdef Py_ssize_t* shape
    cdef Py_ssize_t* strides
    cdef Py_ssize_t* suboffsets
    cdef Py_ssize_t size, start, len, itemsize
    cdef int ndim
    cdef bint readonly
    cdef bint null
    cdef object error
    cdef readonly int exports

    def __init__(
        self, bytes memory, *, int ndim, Py_ssize_t itemsize=1, Py_ssize_t len_=0, shape=None, strides=None,
        suboffsets=None, format=None, bint readonly=True, Py_ssize_t start=0, pointers=None, bint null=False,
        error=None,
    ):
        cdef Py_ssize_t i
        self.size = len(memory)
        self.memory = <uint8_t*>malloc(<size_t>max(1, self.size))
        memcpy(self.memory, <const char*>memory, <size_t>self.size)
        self.ndim = ndim
        self.itemsize = itemsize
        self.len = len_
        self.shape = _numbers(shape)
        self.strides = _numbers(strides)
        self.suboffsets = _numbers(suboffsets)
        self.form = format
        self.readonly = readonly
        self.start = start
        self.null = null
        self.error = error
        if pointers is not None:
            self.table = <uint8_t**>calloc(<size_t>max(1, len(pointers)), sizeof(uint8_t*))
            for i in range(len(pointers)):
                self.table[i] = self.memory + <Py_ssize_t>pointers[i]

    def __dealloc__(self):
        free(self.memory)
        free(self.table)
        free(self.shape)
        free(self.strides)
        free(self.suboffsets)

    def __getbuffer__(self, Py_buffer* view, int flags):
        if self.error is not None:
            raise self.error
        view.obj = self
        view.buf = NULL if self.null else self.memory + self.start
        if self.table != NULL:
            view.buf = self.table
        view.len = self.len
        view.itemsize = self.itemsize
        view.ndim = self.ndim
        view.readonly = self.readonly
        view.format = NULL if self.form is None else <char*>self.form
        view.shape = self.shape
        view.strides = self.strides
        view.suboffsets = self.suboffsets
        view.internal = NULL
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1


cdef Py_ssize_t* _numbers(object values) except? NULL:
    cdef Py_ssize_t* out
    cdef int i
    if values is None:
        return NULL
    out = <Py_ssize_t*>calloc(MOST, sizeof(Py_ssize_t))
    for i in range(len(values)):
        out[i] = values[i]
    return out


def bodies(batch):
    """Return the bodies of a batch as ``send_batch`` sees them."""
    cdef BodyList source = body_rows(batch, SIZE_MAX)
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    cdef int64_t i
    found = []
    for i in range(source.rows.n):
        rows_get(&source.rows, i, &p, &n)
        found.append(p[:n] if n else b"")
    return found


def body(thing):
    """Return the copy that is made of an item of a batch that is not ``bytes``."""
    return buffer_bytes(thing, None)


def view(thing):
    """Return (why it is not bytes, whether they lie in order, the bytes) of an object."""
    cdef Py_buffer found
    reason = buffer_open(thing, &found)
    if reason is not None:
        return reason, False, b""
    try:
        return None, buffer_is_plain(&found), buffer_copy(&found)
    finally:
        PyBuffer_Release(&found)
