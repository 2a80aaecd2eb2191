"""Reading an Arrow schema and array into nodes, once for each batch.

Locality: any thread, without the GIL; a tree that is being opened or closed belongs to one thread.  Locks: none.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset, strcmp, strncmp

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put_u8, buf_reserve
from dataproxy._core.base.slice cimport slice_of, slice_text
from dataproxy._core.base.status cimport ST_INVALID, ST_NO_MEMORY, ST_OK
from dataproxy._core.encode.texts cimport SPARE, put_json_text
from dataproxy._core.encode.times cimport Zone
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema

cdef enum:
    ARROW_FLAG_NULLABLE = 2     # of the C data interface
    SCALE_DIGITS = 6
    SIZE_DIGITS = 9             # of a fixed width
    WIDEST = 16                 # bytes of a decimal


cdef int64_t integer_at(int kind, const uint8_t* values, int64_t at) noexcept nogil:
    """Return an integer below 2**63 of any width."""
    if kind == NODE_INT32:
        return (<const int32_t*>values)[at]
    if kind == NODE_UINT32:
        return (<const uint32_t*>values)[at]
    if kind == NODE_INT64:
        return (<const int64_t*>values)[at]
    if kind == NODE_UINT64:
        return <int64_t>(<const uint64_t*>values)[at]
    if kind == NODE_INT16:
        return (<const int16_t*>values)[at]
    if kind == NODE_UINT16:
        return (<const uint16_t*>values)[at]
    if kind == NODE_INT8:
        return (<const int8_t*>values)[at]
    return values[at]


cdef bint looked_up_null(const Node* node, int64_t i) noexcept nogil:
    """Tell whether value ``i`` of a column of nulls or of a dictionary is null: its index, or the value it means."""
    cdef int64_t at = node.offset + i
    if node.kind == NODE_NULL:
        return True
    if node.validity != NULL and not (node.validity[at >> 3] >> (at & 7)) & 1:
        return True
    return node_is_null(&node.children[0], integer_at(node.indices, node.values, at))


cdef int _simple_kind(char letter) noexcept nogil:
    """Return the kind of a format of one letter, -1 for other formats."""
    if letter == b"n":
        return NODE_NULL
    if letter == b"b":
        return NODE_BOOL
    if letter == b"c":
        return NODE_INT8
    if letter == b"s":
        return NODE_INT16
    if letter == b"i":
        return NODE_INT32
    if letter == b"l":
        return NODE_INT64
    if letter == b"C":
        return NODE_UINT8
    if letter == b"S":
        return NODE_UINT16
    if letter == b"I":
        return NODE_UINT32
    if letter == b"L":
        return NODE_UINT64
    if letter == b"e":
        return NODE_HALF
    if letter == b"f":
        return NODE_FLOAT
    if letter == b"g":
        return NODE_DOUBLE
    if letter == b"u":
        return NODE_TEXT32
    if letter == b"U":
        return NODE_TEXT64
    if letter == b"z":
        return NODE_BYTES32
    if letter == b"Z":
        return NODE_BYTES64
    return -1


cdef int _decimal(Node* node, const char* form) noexcept nogil:
    """Read ``d:precision,scale`` or ``d:precision,scale,bits``."""
    cdef const char* p = form + 2
    cdef int sign = 1, scale = 0, digits = 0
    node.width = WIDEST
    while 48 <= p[0] <= 57:
        p += 1
    if p == form + 2 or p[0] != 44:
        return ST_INVALID
    p += 1
    if p[0] == 45:
        sign = -1
        p += 1
    while 48 <= p[0] <= 57 and digits <= SCALE_DIGITS:
        scale = scale * 10 + p[0] - 48
        p += 1
        digits += 1
    if not 0 < digits <= SCALE_DIGITS:
        return ST_INVALID
    if strcmp(p, b",32") == 0:
        node.width = 4
    elif strcmp(p, b",64") == 0:
        node.width = 8
    elif p[0] != 0 and strcmp(p, b",128") != 0:
        return ST_INVALID
    node.kind = NODE_DECIMAL
    node.scale = sign * scale
    return ST_OK


cdef int _unit(Node* node, char letter, int64_t finest) noexcept nogil:
    """Set the factors that turn a value in the unit ``letter`` into units of which a second has ``finest``."""
    cdef int64_t units = 1
    if letter == b"m":
        units = 1000
    elif letter == b"u":
        units = 1000000
    elif letter == b"n":
        units = 1000000000
    elif letter != b"s":
        return ST_INVALID
    node.multiplier = finest // units if units <= finest else 1
    node.divisor = 1 if units <= finest else units // finest
    return ST_OK


cdef int _duration(Node* node, char letter) noexcept nogil:
    """Set how many units a second of a duration has, and how many digits that takes."""
    node.kind = NODE_DURATION
    node.divisor = 1
    node.scale = 0
    if letter == b"m":
        node.scale = 3
    elif letter == b"u":
        node.scale = 6
    elif letter == b"n":
        node.scale = 9
    elif letter != b"s":
        return ST_INVALID
    for _ in range(node.scale):
        node.divisor *= 10
    return ST_OK


cdef int _fixed(Node* node, const char* digits, int kind) noexcept nogil:
    """Read the number behind ``w:`` or ``+w:``."""
    cdef int n = 0
    node.kind = kind
    while 48 <= digits[n] <= 57 and n < SIZE_DIGITS:
        node.width = node.width * 10 + digits[n] - 48
        n += 1
    return ST_OK if n and digits[n] == 0 else ST_INVALID


cdef int _temporal(
    Node* node, const char* form, const Zone* zones, const char* const* zone_names, int n_zones,
) noexcept nogil:
    """Read ``tdD``, ``tdm``, ``ttu``, ``tDu`` or ``tsu:zone``."""
    cdef int i
    if strcmp(form, b"tdD") == 0:
        node.kind = NODE_DATE
        return ST_OK
    if strcmp(form, b"tdm") == 0:
        node.kind = NODE_DATE_MILLIS
        return ST_OK
    if form[1] == b"D" and form[2] != 0 and form[3] == 0:
        return _duration(node, form[2])
    if form[1] == b"t" and form[2] != 0 and form[3] == 0:
        node.kind = NODE_TIME
        return _unit(node, form[2], 1000000000)
    if form[1] != b"s" or form[2] == 0 or form[3] != b":":
        return ST_INVALID
    node.kind = NODE_TIMESTAMP
    if form[4] != 0:
        for i in range(n_zones):
            if strcmp(zone_names[i], form + 4) == 0:
                node.zone = &zones[i]
        if node.zone == NULL:
            return ST_INVALID
    return _unit(node, form[2], 1000000)


cdef int _read_format(
    Node* node, const char* form, const Zone* zones, const char* const* zone_names, int n_zones,
) noexcept nogil:
    """Set the kind of a node; ST_OK, or ST_INVALID for a type that has no text form."""
    if form[0] != 0 and form[1] == 0:
        node.kind = _simple_kind(form[0])
        return ST_OK if node.kind >= 0 else ST_INVALID
    if strncmp(form, b"d:", 2) == 0:
        return _decimal(node, form)
    if form[0] == b"t":
        return _temporal(node, form, zones, zone_names, n_zones)
    if strncmp(form, b"w:", 2) == 0:
        return _fixed(node, form + 2, NODE_BYTES_FIXED)
    if strncmp(form, b"+w:", 3) == 0:
        return _fixed(node, form + 3, NODE_LIST_FIXED)
    if strcmp(form, b"+l") == 0:
        node.kind = NODE_LIST32
    elif strcmp(form, b"+L") == 0:
        node.kind = NODE_LIST64
    elif strcmp(form, b"+vl") == 0:
        node.kind = NODE_LIST_VIEW32
    elif strcmp(form, b"+vL") == 0:
        node.kind = NODE_LIST_VIEW64
    elif strcmp(form, b"vu") == 0:
        node.kind = NODE_TEXT_VIEW
    elif strcmp(form, b"vz") == 0:
        node.kind = NODE_BYTES_VIEW
    elif strcmp(form, b"+m") == 0:
        node.kind = NODE_MAP
    elif strcmp(form, b"+s") == 0:
        node.kind = NODE_STRUCT
    else:
        return ST_INVALID
    return ST_OK


cdef void _bind(Node* node, const ArrowArray* array) noexcept nogil:
    """Point a node at its buffers."""
    cdef const void* second
    node.offset = array.offset
    if node.kind == NODE_NULL or array.n_buffers == 0:
        return
    if array.null_count != 0:
        node.validity = <const uint8_t*>array.buffers[0]
    if array.n_buffers < 2:
        return
    second = array.buffers[1]
    node.values = <const uint8_t*>second
    node.offsets32 = <const int32_t*>second
    node.offsets64 = <const int64_t*>second
    if array.n_buffers > 2:
        node.data = <const uint8_t*>array.buffers[2]
        node.buffers = <const uint8_t**>&array.buffers[2]


cdef int _label(Node* node, Buf* labels) noexcept nogil:
    node.label_at = labels.n
    if buf_put_u8(labels, 44) != ST_OK or put_json_text(labels, node.name.p, node.name.n) != ST_OK:
        return ST_NO_MEMORY
    if buf_put_u8(labels, 58) != ST_OK:
        return ST_NO_MEMORY
    node.label.n = labels.n - node.label_at
    return buf_reserve(labels, SPARE)           # `copy_short` may look beyond the last one


cdef bint _has_parts(const Node* node, const ArrowSchema* schema) noexcept nogil:
    """Tell whether a container has the children that its format needs."""
    if NODE_LIST32 <= node.kind <= NODE_LIST_FIXED:
        return schema.n_children == 1
    if node.kind == NODE_MAP:
        return (
            schema.n_children == 1 and strcmp(schema.children[0].format, b"+s") == 0
            and schema.children[0].n_children == 2)
    return True


cdef int _open(
    Node* node, ArrowSchema* schema, ArrowArray* array, const Zone* zones, const char* const* zone_names,
    int n_zones, Buf* labels, int depth, ArrowSchema** culprit,
) noexcept nogil:
    cdef int status = ST_INVALID
    cdef int64_t i
    culprit[0] = schema
    if depth < NODE_DEPTH:
        status = _read_format(node, schema.format, zones, zone_names, n_zones)
    if status != ST_OK:
        return status
    if not _has_parts(node, schema):
        return ST_INVALID
    if schema.dictionary != NULL:
        node.indices = node.kind
        node.kind = NODE_DICTIONARY
        if not NODE_INT8 <= node.indices <= NODE_UINT64:
            return ST_INVALID
    node.nullable = schema.flags & ARROW_FLAG_NULLABLE != 0
    node.name = slice_text(schema.name) if schema.name != NULL else slice_of(NULL, 0)
    status = _label(node, labels)
    _bind(node, array)
    if status == ST_OK and node.kind == NODE_DICTIONARY:
        node.children = <Node*>calloc(1, sizeof(Node))
        if node.children == NULL:
            return ST_NO_MEMORY
        node.n_children = 1
        return _open(
            node.children, schema.dictionary, array.dictionary, zones, zone_names, n_zones, labels, depth + 1, culprit)
    if status != ST_OK or schema.n_children == 0:
        return status
    node.children = <Node*>calloc(<size_t>schema.n_children, sizeof(Node))
    if node.children == NULL:
        return ST_NO_MEMORY
    node.n_children = schema.n_children
    for i in range(schema.n_children):
        status = _open(
            &node.children[i], schema.children[i], array.children[i], zones, zone_names, n_zones, labels, depth + 1,
            culprit)
        if status != ST_OK:
            return status
    return ST_OK


cdef void _place_labels(Node* node, const uint8_t* base) noexcept nogil:
    cdef int64_t i
    node.label.p = base + node.label_at
    for i in range(node.n_children):
        _place_labels(&node.children[i], base)


cdef int tree_open(
    NodeTree* tree, ArrowSchema* schema, ArrowArray* array, const int* columns, int n_columns, const Zone* zones,
    const char* const* zone_names, int n_zones, ArrowSchema** culprit,
) noexcept nogil:
    """Read some columns of a struct array into nodes.  The tree borrows the memory of the array.

    ST_OK, ST_NO_MEMORY, or ST_INVALID with ``culprit`` set for a type that has no text form, or a zone that is not in
    ``zone_names``.  The caller calls `tree_close` in every case.
    """
    cdef int status = ST_OK, k, at
    memset(tree, 0, sizeof(NodeTree))
    buf_init(&tree.labels)
    culprit[0] = schema
    if strcmp(schema.format, b"+s") != 0:
        return ST_INVALID
    tree.root.kind = NODE_STRUCT
    tree.root.offset = array.offset
    tree.root.children = <Node*>calloc(<size_t>schema.n_children + 1, sizeof(Node))
    if tree.root.children == NULL:
        return ST_NO_MEMORY
    tree.root.n_children = schema.n_children
    for k in range(n_columns):
        at = columns[k]
        if tree.root.children[at].label.n == 0:         # else it is there twice
            status = _open(
                &tree.root.children[at], schema.children[at], array.children[at], zones, zone_names, n_zones,
                &tree.labels, 1, culprit)
        if status != ST_OK:
            return status
    _place_labels(&tree.root, tree.labels.p)
    return ST_OK


cdef void _close(Node* node) noexcept nogil:
    cdef int64_t i
    for i in range(node.n_children):
        _close(&node.children[i])
    free(node.children)


cdef void tree_close(NodeTree* tree) noexcept nogil:
    """Release the tree."""
    _close(&tree.root)
    memset(&tree.root, 0, sizeof(Node))
    buf_free(&tree.labels)
