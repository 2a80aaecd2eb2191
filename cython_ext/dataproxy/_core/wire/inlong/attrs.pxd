"""Attribute text as a server reads it: ``key=value`` joined by ``&``, no escaping."""

from libc.stdint cimport uint8_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


cdef enum:  # keys that a server reads, as indices of Attrs.value
    KEY_GROUP
    KEY_STREAM
    KEY_DT
    KEY_CP
    KEY_CNT
    KEY_MT
    KEY_IS_ACK
    KEY_SYNC_SEND
    KEY_PROXY_SEND
    KEY_PARTITION
    KEY_RT
    KEY_RTMS
    KEY_NODE2
    KEY_RTIME2
    KEY_COUNT
    KEY_OTHER = KEY_COUNT


ctypedef struct Attr:           # one entry, borrowed from the text
    Slice key
    Slice value
    int known                   # KEY_...


ctypedef struct Attrs:          # what one text holds; its entries lie at the start of a Buf
    size_t n
    uint32_t present            # bit i: value[i] is set
    Slice value[KEY_COUNT]


cdef int attrs_read(Slice text, Buf* store, Attrs* out) noexcept nogil
cdef bint attr_is_blank(Slice s) noexcept nogil
cdef bint attr_is(Slice s, const char* lower, size_t n) noexcept nogil


cdef inline bint attrs_has(const Attrs* attrs, int key) noexcept nogil:
    """Tell whether the text has this key."""
    return (attrs.present >> key) & 1
