"""What Arrow's C data interface promises about a column's structs, looked at before they are read."""

from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


cdef str field_name(const ArrowSchema* schema)
cdef int check_schema(const ArrowSchema* schema) except -1
cdef int check_struct(const ArrowSchema* schema, const ArrowArray* array) except -1
cdef int check_column(const ArrowSchema* schema, const ArrowArray* array) except -1
cdef int check_part(const ArrowSchema* schema, const ArrowArray* array, int at) except -1
cdef int index_kind(const char* form) noexcept nogil
