"""An Arrow column, its children included, as it is read while rows are encoded."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.encode.times cimport Zone
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


cdef enum NodeKind:
    NODE_NULL = 0
    NODE_DICTIONARY = 1     # indices into its only child; up to here nulls are looked up by a function
    NODE_BOOL = 2
    NODE_INT8 = 3
    NODE_INT16 = 4
    NODE_INT32 = 5
    NODE_INT64 = 6
    NODE_UINT8 = 7
    NODE_UINT16 = 8
    NODE_UINT32 = 9
    NODE_UINT64 = 10
    NODE_HALF = 11
    NODE_FLOAT = 12
    NODE_DOUBLE = 13
    NODE_DECIMAL = 14       # 32, 64 or 128 bits
    NODE_TEXT32 = 15
    NODE_TEXT64 = 16
    NODE_TEXT_VIEW = 17
    NODE_BYTES32 = 18
    NODE_BYTES64 = 19
    NODE_BYTES_VIEW = 20
    NODE_BYTES_FIXED = 21
    NODE_DATE = 22
    NODE_DATE_MILLIS = 23
    NODE_TIMESTAMP = 24
    NODE_TIME = 25
    NODE_DURATION = 26
    NODE_LIST32 = 27
    NODE_LIST64 = 28
    NODE_LIST_VIEW32 = 29
    NODE_LIST_VIEW64 = 30
    NODE_LIST_FIXED = 31
    NODE_MAP = 32
    NODE_STRUCT = 33


cdef enum:
    NODE_DEPTH = 64         # containers inside of each other


ctypedef struct Node:
    int kind
    int scale               # of a decimal; digits of a duration's fraction
    int width               # of a decimal in bytes, of fixed-size binary, of a fixed-size list in values
    int indices             # of a dictionary: NODE_INT8 to NODE_UINT64
    int64_t multiplier      # values * multiplier // divisor are microseconds (nanoseconds for a time of day)
    int64_t divisor         # of a duration: its units in a second
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
    const uint8_t** buffers     # of a view type: what its views point into
    int64_t offset
    bint nullable           # by the schema


ctypedef struct NodeTree:
    Node root               # a struct: its children are the columns
    Buf labels


cdef inline bint node_is_null(const Node* node, int64_t i) noexcept nogil:
    """Tell whether value ``i`` is null."""
    cdef int64_t at = node.offset + i
    if node.kind <= NODE_DICTIONARY:
        return looked_up_null(node, i)
    return node.validity != NULL and not (node.validity[at >> 3] >> (at & 7)) & 1


cdef bint looked_up_null(const Node* node, int64_t i) noexcept nogil
cdef int64_t integer_at(int kind, const uint8_t* values, int64_t at) noexcept nogil


cdef inline const Node* node_behind(const Node* node, int64_t* i) noexcept nogil:
    """Return the node that holds value ``i``, which is not null, and set its place there: a dictionary's, or itself."""
    while node.kind == NODE_DICTIONARY:
        i[0] = integer_at(node.indices, node.values, node.offset + i[0])
        node = &node.children[0]
    return node


cdef int tree_open(
    NodeTree* tree, ArrowSchema* schema, ArrowArray* array, const int* columns, int n_columns, const Zone* zones,
    const char* const* zone_names, int n_zones, ArrowSchema** culprit,
) noexcept nogil
cdef void tree_close(NodeTree* tree) noexcept nogil
