"""Many bodies in foreign memory: pointers, fixed-width records, or an Arrow column.

Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy


cdef enum RowsKind:
    ROWS_POINTERS = 0       # pointers[i], lengths[i]
    ROWS_STRIDED = 1        # base + i * stride, `width` bytes
    ROWS_OFFSETS32 = 2      # Arrow binary/utf8
    ROWS_OFFSETS64 = 3      # Arrow large_binary/large_utf8
    ROWS_VIEWS = 4          # Arrow binary_view/utf8_view
    ROWS_FIXED = 5          # Arrow fixed_size_binary: as strided, with validity


cdef enum RowProblem:
    ROW_GOOD = 0
    ROW_NULL = 1
    ROW_EMPTY = 2
    ROW_TOO_LARGE = 3
    ROW_HAS_LF = 4
    ROW_BAD_ID = 5


ctypedef struct RowOwners:  # what keeps large bodies after the call; a pack that holds a body takes one reference
    void** each             # ROWS_POINTERS: for each body, NULL: it is copied; taken references become NULL
    void* all               # of all bodies
    int64_t left            # references to `all` that can be taken


cdef struct Rows:           # borrowed; the owner outlives the call
    int kind
    const uint8_t** pointers
    const int64_t* lengths
    const uint8_t* base
    int64_t width
    int64_t stride
    const int32_t* offsets32
    const int64_t* offsets64
    const uint8_t* views    # 16 bytes each
    const uint8_t** buffers
    const uint8_t* validity  # bitmap, NULL: no nulls
    int64_t offset          # first row inside the column's buffers
    int64_t n
    const Rows* ids         # the caller's ids of these rows, NULL: none
    RowOwners* owners       # NULL: all bodies are copied


ctypedef struct RowsCheck:  # what a look at all rows found
    int64_t first_bad       # -1: none
    int problem             # RowProblem of first_bad
    int64_t bad_size
    int64_t nulls           # skipped by policy
    int64_t empties
    int64_t bytes           # of the bodies that will be sent
    size_t largest          # of them
    int64_t id_bytes        # of their ids


cdef inline size_t body_limit(size_t max_body, size_t text_n) noexcept nogil:
    """Return the largest body beside ``text_n`` bytes of item attributes.  Locality: any."""
    if text_n == 0:
        return max_body
    return max_body - text_n - 4 if max_body > text_n + 4 else 0


cdef inline bint rows_get(const Rows* rows, int64_t i, const uint8_t** p, size_t* n) noexcept nogil:
    """Point ``p``/``n`` at row ``i``; False for a null.  Locality: any thread."""
    cdef int64_t at = rows.offset + i, start
    cdef int32_t short_n, where, buffer
    cdef const uint8_t* view
    if rows.validity != NULL and not (rows.validity[at >> 3] >> (at & 7)) & 1:
        p[0] = NULL
        n[0] = 0
        return False
    if rows.kind == ROWS_POINTERS:
        p[0] = rows.pointers[i]
        n[0] = <size_t>rows.lengths[i]
    elif rows.kind == ROWS_OFFSETS32:
        start = rows.offsets32[at]
        p[0] = rows.base + start
        n[0] = <size_t>(rows.offsets32[at + 1] - start)
    elif rows.kind == ROWS_OFFSETS64:
        start = rows.offsets64[at]
        p[0] = rows.base + start
        n[0] = <size_t>(rows.offsets64[at + 1] - start)
    elif rows.kind == ROWS_VIEWS:
        view = rows.views + at * 16
        memcpy(&short_n, view, 4)
        n[0] = <size_t>short_n
        if short_n <= 12:
            p[0] = view + 4
        else:
            memcpy(&buffer, view + 8, 4)
            memcpy(&where, view + 12, 4)
            p[0] = rows.buffers[buffer] + where
    else:
        p[0] = rows.base + at * rows.stride
        n[0] = <size_t>rows.width
    return True


cdef inline void* row_owner(const Rows* rows, int64_t i) noexcept nogil:
    """Return what keeps body ``i`` after the call, or NULL.  Locality: any thread."""
    if rows.owners == NULL:
        return NULL
    if rows.owners.each != NULL:
        return rows.owners.each[i]
    return rows.owners.all if rows.owners.left > 0 else NULL


cdef inline void row_owner_taken(const Rows* rows, int64_t i) noexcept nogil:
    """Note that the reference which `row_owner` has shown was taken.  Locality: any thread."""
    if rows.owners.each != NULL:
        rows.owners.each[i] = NULL
    else:
        rows.owners.left -= 1


cdef void rows_check(
    const Rows* rows, size_t max_body, size_t attrs_n, bint skip_null, bint skip_empty, int lines, RowsCheck* out,
) noexcept nogil
