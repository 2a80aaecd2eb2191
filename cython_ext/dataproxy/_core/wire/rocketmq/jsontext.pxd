"""JSON as headers have it: values found where they lie, with bounds and without objects."""

from libc.stdint cimport uint8_t

from dataproxy._core.base.slice cimport Slice


cdef enum JsonKind:
    JSON_TEXT = 1
    JSON_NUMBER = 2
    JSON_TRUE = 3
    JSON_FALSE = 4
    JSON_NULL = 5
    JSON_OBJECT = 6
    JSON_ARRAY = 7


ctypedef struct JsonValue:
    int kind                    # JsonKind
    Slice raw                   # a text without its quotes; all others whole
    bint escaped                # a text: `json_unescape` makes it what it means
    bint flat                   # an object or an array: none lies in it


ctypedef struct JsonMembers:    # of an object, one after the other
    const uint8_t* at
    const uint8_t* end
    bint first
    bint broken                 # with the end of the members: there is something else


cdef void json_open(JsonMembers* m, Slice text) noexcept nogil
cdef bint json_next(JsonMembers* m, JsonValue* key, JsonValue* value) noexcept nogil
cdef size_t json_unescape(Slice raw, uint8_t* to) noexcept nogil
cdef size_t json_escaped(Slice text, uint8_t* to) noexcept nogil
