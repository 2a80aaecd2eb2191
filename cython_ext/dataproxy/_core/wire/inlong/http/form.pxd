"""Forms (``application/x-www-form-urlencoded``): percent-encoding, decoding, parameters."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


cdef enum FormKey:          # parameters of a report, as indices of Form.value
    FORM_GROUP
    FORM_STREAM
    FORM_DT
    FORM_BODY
    FORM_CNT
    FORM_CALLBACK
    FORM_AUDIT
    FORM_KEYS


ctypedef struct Form:
    bint has[FORM_KEYS]
    size_t at[FORM_KEYS]    # of the decoded value in the buffer: slices would not survive its growth
    size_t n[FORM_KEYS]


cdef size_t encoded_size(Slice plain) noexcept nogil
cdef uint8_t* put_encoded(uint8_t* at, Slice plain) noexcept nogil
cdef void encode_in_place(uint8_t* p, size_t n, size_t coded) noexcept nogil
cdef void decode_in_place(uint8_t* p, size_t n) noexcept nogil
cdef int put_decoded(Buf* out, Slice coded) noexcept nogil          # ST_OK, ST_PROTOCOL or ST_NO_MEMORY
cdef int form_read(Form* form, Slice text, Buf* store) noexcept nogil   # the same; later values replace earlier ones
cdef Slice form_value(const Form* form, const Buf* store, int key) noexcept nogil
cdef void form_clear(Form* form) noexcept nogil
