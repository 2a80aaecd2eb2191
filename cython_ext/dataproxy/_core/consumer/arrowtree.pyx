"""Nodes of Arrow's C data interface, made without the GIL and released by whoever they were handed to.

A node's ``private_data`` is its block: the pointers to buffers and children, the children's structs, the buffers.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from dataproxy._core.base.blocks cimport block_alloc, block_free
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


cdef void _release_schema(ArrowSchema* s) noexcept nogil:
    cdef int64_t i
    for i in range(s.n_children):
        if s.children[i].release != NULL:
            s.children[i].release(s.children[i])
    free(s.private_data)
    s.release = NULL


cdef void _release_array(ArrowArray* a) noexcept nogil:
    cdef int64_t i
    for i in range(a.n_children):
        if a.children[i].release != NULL:
            a.children[i].release(a.children[i])
    block_free(a.private_data)
    a.release = NULL


cdef int schema_node(
    ArrowSchema* s, const char* format, const char* name, int64_t flags, int children,
) noexcept nogil:
    """Make a node of a schema; the texts are constants."""
    cdef size_t size = <size_t>children * (sizeof(void*) + sizeof(ArrowSchema))
    cdef uint8_t* block = <uint8_t*>malloc(size + 1)
    cdef int i
    memset(s, 0, sizeof(ArrowSchema))
    if block == NULL:
        return ST_NO_MEMORY
    memset(block, 0, size)
    s.format, s.name, s.flags, s.n_children = format, name, flags, children
    s.children = <ArrowSchema**>block
    for i in range(children):
        s.children[i] = <ArrowSchema*>(block + <size_t>children * sizeof(void*)) + i
    s.private_data = block
    s.release = _release_schema
    return ST_OK


cdef uint8_t* _array(ArrowArray* a, int64_t rows, int buffers, int children, size_t bytes) noexcept nogil:
    """Make a node; return the ``bytes`` behind its pointers and structs, aligned to eight, or NULL without memory."""
    cdef size_t pointers = <size_t>(buffers + children) * sizeof(void*)
    cdef size_t head = pointers + <size_t>children * sizeof(ArrowArray)
    cdef uint8_t* block
    cdef int i
    memset(a, 0, sizeof(ArrowArray))
    block = block_alloc(head + bytes + 1)
    if block == NULL:
        return NULL
    memset(block, 0, head)
    a.length, a.n_buffers, a.n_children = rows, buffers, children
    a.buffers = <const void**>block
    a.children = <ArrowArray**>(block + <size_t>buffers * sizeof(void*))
    for i in range(children):
        a.children[i] = <ArrowArray*>(block + pointers) + i
    a.private_data = block
    a.release = _release_array
    return block + head


cdef int struct_node(ArrowArray* a, int64_t rows, int children) noexcept nogil:
    """Make a struct, of which no value is null."""
    return ST_OK if _array(a, rows, 1, children, 0) != NULL else ST_NO_MEMORY


cdef int map_node(ArrowArray* a, int64_t rows, int32_t** ends) noexcept nogil:
    """Make a map, whose child is a struct of keys and values."""
    cdef uint8_t* data = _array(a, rows, 2, 1, <size_t>(rows + 1) * sizeof(int32_t))
    if data == NULL:
        return ST_NO_MEMORY
    a.buffers[1] = data
    ends[0] = <int32_t*>data
    return ST_OK


cdef int numbers_node(ArrowArray* a, int64_t rows, int width, void** data) noexcept nogil:
    """Make a column of numbers."""
    cdef uint8_t* block = _array(a, rows, 2, 0, <size_t>rows * <size_t>width)
    if block == NULL:
        return ST_NO_MEMORY
    a.buffers[1] = block
    data[0] = block
    return ST_OK


cdef int nullable_node(ArrowArray* a, int64_t rows, void** data, uint8_t** bits) noexcept nogil:
    """Make a column of numbers of 64 bits, all null; the caller sets bits, and counts ``null_count`` down."""
    cdef uint8_t* block = _array(a, rows, 2, 0, <size_t>rows * 8 + <size_t>(rows + 7) // 8)
    if block == NULL:
        return ST_NO_MEMORY
    memset(block, 0, <size_t>rows * 8 + <size_t>(rows + 7) // 8)
    a.buffers[0] = block + <size_t>rows * 8
    a.buffers[1] = block
    a.null_count = rows
    data[0], bits[0] = block, block + <size_t>rows * 8
    return ST_OK


cdef int bytes_node(ArrowArray* a, int64_t rows, int64_t size, int32_t** ends, uint8_t** data) noexcept nogil:
    """Make a column of texts or bytes, together ``size`` bytes, below 2 GiB."""
    cdef size_t head = ((<size_t>(rows + 1) * sizeof(int32_t)) + 7) & ~<size_t>7
    cdef uint8_t* block = _array(a, rows, 3, 0, head + <size_t>size)
    if block == NULL:
        return ST_NO_MEMORY
    a.buffers[1] = block
    a.buffers[2] = block + head
    ends[0] = <int32_t*>block
    data[0] = block + head
    return ST_OK
