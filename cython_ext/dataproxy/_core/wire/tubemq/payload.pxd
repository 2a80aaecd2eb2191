"""A message's payload: an attribute text and a body; its checksum; what filters compare."""

from libc.stdint cimport int32_t, uint8_t

from dataproxy._core.base.slice cimport Slice


cdef bint split_payload(int32_t flag, Slice payload, Slice* attribute, Slice* body) noexcept nogil
cdef size_t payload_size(Slice attribute, size_t body) noexcept nogil
cdef uint8_t* put_attribute(uint8_t* to, Slice attribute, int32_t* flag) noexcept nogil
cdef int32_t payload_checksum(Slice payload) noexcept nogil
cdef bint attribute_value(Slice attribute, Slice key, Slice* value) noexcept nogil
cdef int32_t filter_code(Slice item) noexcept nogil
