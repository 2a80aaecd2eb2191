"""Rows of a batch as messages, written one after the other into one buffer.

Locality: the owner of the ``Lines``, without the GIL.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_reserve
from dataproxy._core.base.status cimport ST_INVALID, ST_NO_MEMORY, ST_OK
from dataproxy._core.encode.nodes cimport (
    NODE_TEXT32, NODE_TEXT_VIEW, Node, NodeTree, node_behind, node_is_null,
)
from dataproxy._core.encode.texts cimport SPARE, add, add_u8, copy_short, escape_from, put_unmarked, room
from dataproxy._core.encode.values cimport bytes_of, is_wordy, put_plain, put_value


cdef int _json_row(
    Buf* out, const NodeTree* tree, const int* columns, int n_columns, const LineStyle* style, int64_t i,
) noexcept nogil:
    cdef const Node* node
    cdef size_t first = 1
    cdef bint null
    cdef int k, failed = add_u8(out, 123)
    i += tree.root.offset
    for k in range(n_columns):
        node = &tree.root.children[columns[k]]
        null = node_is_null(node, i)
        if null and style.values.leave_nulls_out:
            continue
        if room(out, node.label.n + SPARE) != ST_OK:
            return ST_NO_MEMORY
        copy_short(out.p + out.n, node.label.p + first, node.label.n - first)
        out.n += node.label.n - first
        first = 0
        if null:
            failed |= add(out, b"null", 4)
        else:
            failed |= put_value(out, node, i, &style.values)
    failed |= add_u8(out, 125)
    return ST_NO_MEMORY if failed else ST_OK


cdef enum:
    LIKE_NULL = 1000        # one more status of a row: it has a value that reads like a null


cdef inline bint _reads_like_null(
    const Buf* out, size_t start, const Node* node, const LineStyle* style,
) noexcept nogil:
    """Tell whether the value that begins at ``start`` cannot be told from a null of its column."""
    cdef size_t n = out.n - start
    if n != style.null_text.n or not style.tells_nulls or not node.nullable:
        return False
    return n == 0 or memcmp(out.p + start, style.null_text.p, n) == 0


cdef int _masked(Buf* out, const Node* node, const LineStyle* style, int64_t i) noexcept nogil:
    """Append a value of delimited text; ST_OK, ST_INVALID, ST_NO_MEMORY or LIKE_NULL."""
    cdef size_t start = out.n, n = 0
    cdef const uint8_t* p = NULL
    cdef const Node* column = node
    cdef int status
    if node_is_null(node, i):
        return add(out, style.null_text.p, style.null_text.n)
    node = node_behind(node, &i)
    if NODE_TEXT32 <= node.kind <= NODE_TEXT_VIEW:
        bytes_of(node, node.offset + i, &p, &n)
        if put_unmarked(out, p, n, &style.marks):
            return LIKE_NULL if _reads_like_null(out, start, column, style) else ST_OK
    status = put_plain(out, node, i, &style.values)
    if status == ST_OK and (style.marks.any_plain or is_wordy(node)):
        status = escape_from(out, start, &style.marks)
    if status == ST_OK and _reads_like_null(out, start, column, style):
        return LIKE_NULL
    return status


cdef int _csv_row(
    Buf* out, const NodeTree* tree, const int* columns, int n_columns, const LineStyle* style, int64_t i,
) noexcept nogil:
    cdef int k, status
    i += tree.root.offset
    for k in range(n_columns):
        if k and add_u8(out, style.separator) != ST_OK:
            return ST_NO_MEMORY
        status = _masked(out, &tree.root.children[columns[k]], style, i)
        if status != ST_OK:
            return status
    return ST_OK


cdef int _kv_row(
    Buf* out, const NodeTree* tree, const int* columns, int n_columns, const LineStyle* style, int64_t i,
) noexcept nogil:
    cdef const Node* node
    cdef bint more = False
    cdef int k, status, failed = 0
    i += tree.root.offset
    for k in range(n_columns):
        node = &tree.root.children[columns[k]]
        if style.values.leave_nulls_out and node_is_null(node, i):
            continue
        if more:
            failed |= add_u8(out, style.separator)
        more = True
        failed |= add(out, node.name.p, node.name.n)
        failed |= add_u8(out, style.joint)
        status = _masked(out, node, style, i)
        if status != ST_OK or failed:
            return status if status != ST_OK else ST_NO_MEMORY
    return ST_OK


cdef bint _is_null_row(const NodeTree* tree, const int* columns, int n_columns, int64_t i) noexcept nogil:
    """Tell whether all values of a row's body are null."""
    cdef int k
    for k in range(n_columns):
        if not node_is_null(&tree.root.children[columns[k]], tree.root.offset + i):
            return False
    return True


cdef int _mark_null(Lines* lines, int64_t i) noexcept nogil:
    """Note that row ``i`` has no body, which is different from an empty body.  ST_OK or ST_NO_MEMORY."""
    cdef size_t n = <size_t>(lines.n >> 3) + 1
    if lines.validity == NULL:
        lines.validity = <uint8_t*>malloc(n)
        if lines.validity == NULL:
            return ST_NO_MEMORY
        memset(lines.validity, 255, n)
    lines.validity[i >> 3] &= <uint8_t>~(1 << (i & 7))
    return ST_OK


cdef int lines_make(
    Lines* lines, const NodeTree* tree, const int* columns, int n_columns, const LineStyle* style, int64_t n,
    size_t usual,
) noexcept nogil:
    """Encode the first ``n`` rows, with the columns in the given order.  The caller calls `lines_free` in every case.

    ``usual`` is a hint: the probable size of all texts in bytes.
    ST_OK or ST_NO_MEMORY; rows that cannot be written are marked as refused.
    """
    cdef int status
    cdef int64_t i
    cdef size_t start
    memset(lines, 0, sizeof(Lines))
    buf_init(&lines.text)
    lines.n = n
    lines.offsets = <int64_t*>malloc((<size_t>n + 1) * sizeof(int64_t))
    lines.refused = <uint8_t*>calloc(<size_t>n + 1, 1)
    if lines.offsets == NULL or lines.refused == NULL or buf_reserve(&lines.text, usual) != ST_OK:
        return ST_NO_MEMORY
    for i in range(n):
        start = lines.text.n
        lines.offsets[i] = <int64_t>start
        if style.form == LINE_JSON:
            status = _json_row(&lines.text, tree, columns, n_columns, style, i)
        elif style.form == LINE_CSV:
            status = _csv_row(&lines.text, tree, columns, n_columns, style, i)
        else:
            status = _kv_row(&lines.text, tree, columns, n_columns, style, i)
        if status == LIKE_NULL and lines.text.n == start and n_columns == 1:
            status = ST_OK                  # no body at all: options say what happens with null and empty rows
        if status == ST_OK and lines.text.n == start and _is_null_row(tree, columns, n_columns, i):
            status = _mark_null(lines, i)
        if status == ST_INVALID or status == LIKE_NULL:
            lines.text.n = start
            lines.refused[i] = REFUSED_MARK if status == ST_INVALID else REFUSED_LIKE_NULL
            lines.n_refused += 1
        elif status != ST_OK:
            return status
    lines.offsets[n] = <int64_t>lines.text.n
    return ST_OK


cdef void lines_free(Lines* lines) noexcept nogil:
    """Release the texts."""
    free(lines.offsets)
    free(lines.refused)
    free(lines.validity)
    buf_free(&lines.text)
    memset(lines, 0, sizeof(Lines))
