"""One value of a node as text."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.encode.nodes cimport (
    NODE_BYTES32, NODE_BYTES64, NODE_LIST32, NODE_TEXT32, Node,
)
from dataproxy._core.encode.times cimport DayText


ctypedef struct ValueStyle:
    int times               # TimeStyle
    bint leave_nulls_out    # of JSON objects
    DayText* days           # those that were written before; the encoder's own


cdef inline bint is_wordy(const Node* node) noexcept nogil:
    """Tell whether the plain text of a node's values can hold any character."""
    return NODE_TEXT32 <= node.kind <= NODE_BYTES64 or node.kind >= NODE_LIST32


cdef inline void bytes_of(const Node* node, int64_t at, const uint8_t** p, size_t* n) noexcept nogil:
    """Point ``p``/``n`` at the text or binary at ``at``, which counts from the beginning of the node's buffers."""
    cdef int64_t start
    if node.kind == NODE_TEXT32 or node.kind == NODE_BYTES32:
        start = node.offsets32[at]
        n[0] = <size_t>(node.offsets32[at + 1] - start)
    else:
        start = node.offsets64[at]
        n[0] = <size_t>(node.offsets64[at + 1] - start)
    p[0] = node.data + start


cdef int put_value(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil
cdef int put_plain(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil
cdef int put_json(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil
