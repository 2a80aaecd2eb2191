"""Objects with the buffer protocol (PEP 3118) as bytes."""


cdef object buffer_open(object thing, Py_buffer* view)
cdef bint buffer_is_plain(const Py_buffer* view) noexcept
cdef bytes buffer_copy(const Py_buffer* view)
cdef bytes buffer_bytes(object body, object item)
