"""An Arrow column, its children included, as it is read while rows are encoded."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.encode.times cimport Zone
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


cdef enum NodeKind:
    NODE_NULL = 0
    NODE_BOOL = 1
    NODE_INT8 = 2
    NODE_INT16 = 3
    NODE_INT32 = 4
    NODE_INT64 = 5
    NODE_FLOAT = 6
    NODE_DOUBLE = 7
    NODE_DECIMAL = 8        # 128 bits
    NODE_TEXT32 = 9
    NODE_TEXT64 = 10
    NODE_BYTES32 = 11
    NODE_BYTES64 = 12
    NODE_DATE = 13
    NODE_TIMESTAMP = 14
    NODE_TIME = 15
    NODE_LIST32 = 16
    NODE_LIST64 = 17
    NODE_MAP = 18
    NODE_STRUCT = 19


cdef enum:
    NODE_DEPTH = 64         # containers inside of each other


ctypedef struct Node:
    int kind
    int scale               # of a decimal
    int64_t multiplier      # values * multiplier // divisor are microseconds (nanoseconds for a time of day)
    int64_t divisor
    const Zone* zone        # of a timestamp; NULL: local time
    Slice name              # borrowed from the schema
    Slice label             # `,"name":` in the tree's `labels`; the comma is left out in front of a first field
    size_t label_at
    int64_t n_children
    Node* children
    const uint8_t* validity     # NULL: no nulls
    const uint8_t* values
    const int32_t* offsets32
    const int64_t* offsets64
    const uint8_t* data
    int64_t offset
    bint nullable           # by the schema


ctypedef struct NodeTree:
    Node root               # a struct: its children are the columns
    Buf labels


cdef inline bint node_is_null(const Node* node, int64_t i) noexcept nogil:
    """Tell whether value ``i`` is null."""
    cdef int64_t at = node.offset + i
    return node.kind == NODE_NULL or (node.validity != NULL and not (node.validity[at >> 3] >> (at & 7)) & 1)


cdef int tree_open(
    NodeTree* tree, ArrowSchema* schema, ArrowArray* array, const int* columns, int n_columns, const Zone* zones,
    const char* const* zone_names, int n_zones, ArrowSchema** culprit,
) noexcept nogil
cdef void tree_close(NodeTree* tree) noexcept nogil
