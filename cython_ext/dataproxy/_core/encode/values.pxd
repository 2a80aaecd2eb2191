"""One value of a node as text."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.encode.nodes cimport (
    NODE_BYTES32, NODE_BYTES64, NODE_BYTES_FIXED, NODE_LIST32, NODE_TEXT32, NODE_TEXT64, NODE_TEXT_VIEW, Node,
)
from dataproxy._core.encode.times cimport DayText


ctypedef struct ValueStyle:
    int times               # TimeStyle
    bint leave_nulls_out    # of JSON objects
    DayText* days           # those that were written before; the encoder's own


cdef inline bint is_wordy(const Node* node) noexcept nogil:
    """Tell whether the plain text of a node's values, which is no dictionary, can hold any character."""
    return NODE_TEXT32 <= node.kind <= NODE_BYTES_FIXED or node.kind >= NODE_LIST32


cdef inline void bytes_of(const Node* node, int64_t at, const uint8_t** p, size_t* n) noexcept nogil:
    """Point ``p``/``n`` at the text or binary at ``at``, which counts from the beginning of the node's buffers."""
    cdef int64_t start
    cdef int32_t short_n = 0, buffer = 0, where = 0
    cdef const uint8_t* view
    if node.kind == NODE_TEXT32 or node.kind == NODE_BYTES32:
        start = node.offsets32[at]
        n[0] = <size_t>(node.offsets32[at + 1] - start)
    elif node.kind == NODE_TEXT64 or node.kind == NODE_BYTES64:
        start = node.offsets64[at]
        n[0] = <size_t>(node.offsets64[at + 1] - start)
    elif node.kind == NODE_BYTES_FIXED:
        start = at * node.width
        n[0] = <size_t>node.width
        p[0] = node.values + start
        return
    else:
        view = node.values + at * 16
        memcpy(&short_n, view, 4)
        n[0] = <size_t>short_n
        if short_n <= 12:
            p[0] = view + 4
            return
        memcpy(&buffer, view + 8, 4)
        memcpy(&where, view + 12, 4)
        p[0] = node.buffers[buffer] + where
        return
    p[0] = node.data + start


cdef int put_value(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil
cdef int put_plain(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil
cdef int put_json(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil
