"""Headers of both forms, read: what every command has, and its fields."""

from libc.stdint cimport int32_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.rocketmq.jsontext cimport JsonMembers


ctypedef struct Command:        # a request or an answer; slices borrow from the frame and from `scratch`
    int form                    # HeaderForm
    int32_t code
    int32_t language            # LANGUAGE_UNKNOWN: a name that nobody knows
    int32_t version
    int32_t opaque
    bint numbered               # it has an opaque; a header of JSON may lack it
    int32_t flag
    Slice remark
    bint extended               # a header of JSON has fields, if only {}
    Slice fields                # as they lie in the header
    Slice body
    Buf* scratch
    size_t mark                 # what of `scratch` is the command's; fields that are read stand behind it


ctypedef struct CommandFields:  # one after the other
    Command* command
    JsonMembers members
    Slice rest


cdef int read_command(const uint8_t* p, size_t n, Buf* scratch, Command* out) noexcept nogil
cdef void fields_begin(CommandFields* f, Command* command) noexcept nogil
cdef bint fields_step(CommandFields* f, Slice* name, Slice* value) noexcept nogil
cdef Slice language_name(int32_t language) noexcept nogil
