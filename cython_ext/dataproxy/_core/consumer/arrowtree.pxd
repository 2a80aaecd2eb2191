"""Arrow arrays and schemas that are handed out: each node owns one block of memory."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


cdef enum:
    NULLABLE = 2                # flag of the format


# Nodes with children that are empty yet.  All: ST_OK or ST_NO_MEMORY.
cdef int schema_node(
    ArrowSchema* s, const char* format, const char* name, int64_t flags, int children) noexcept nogil
cdef int struct_node(ArrowArray* a, int64_t rows, int children) noexcept nogil
cdef int map_node(ArrowArray* a, int64_t rows, int32_t** ends) noexcept nogil
# Columns: room for numbers of a width; for numbers of 64 bits that may be null; for values of a total size behind
# their ends, `rows + 1` of them.
cdef int numbers_node(ArrowArray* a, int64_t rows, int width, void** data) noexcept nogil
cdef int nullable_node(ArrowArray* a, int64_t rows, void** data, uint8_t** bits) noexcept nogil
cdef int bytes_node(ArrowArray* a, int64_t rows, int64_t size, int32_t** ends, uint8_t** data) noexcept nogil
