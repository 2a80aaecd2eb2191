"""Checks of the structs of Arrow's C data interface, made before anything is read through them."""

from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


cdef str field_name(const ArrowSchema* schema)
cdef int check_schema(const ArrowSchema* schema) except -1
cdef int check_struct(const ArrowSchema* schema, const ArrowArray* array) except -1
cdef int check_column(const ArrowSchema* schema, const ArrowArray* array) except -1
cdef int check_part(const ArrowSchema* schema, const ArrowArray* array, int at) except -1
cdef int index_kind(const char* form) noexcept nogil
