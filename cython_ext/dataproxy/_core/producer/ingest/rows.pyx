"""Access to bodies in foreign memory, without a Python object for any of them."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.text cimport is_line
from dataproxy._core.producer.ingest.ids cimport OWN_ID_KEY, own_id_valid


cdef void rows_check(
    const Rows* rows, size_t max_body, size_t attrs_n, bint skip_null, bint skip_empty, int lines, RowsCheck* out,
) noexcept nogil:
    """Check every row before any is accepted.  Locality: any thread.  Locks: none.

    ``max_body`` is the stream's, ``attrs_n`` the size of the attributes that every item carries.
    """
    cdef const uint8_t* p = NULL
    cdef const uint8_t* own_id = NULL
    cdef size_t n = 0, id_n = 0, limit = body_limit(max_body, attrs_n)
    cdef int64_t i
    cdef int problem
    out.first_bad = -1
    out.problem = ROW_GOOD
    out.bad_size = 0
    out.nulls = 0
    out.empties = 0
    out.bytes = 0
    out.largest = 0
    out.id_bytes = 0
    for i in range(rows.n):
        problem = ROW_GOOD
        if not rows_get(rows, i, &p, &n):
            if skip_null:
                out.nulls += 1
                continue
            problem = ROW_NULL
        elif n == 0:
            if skip_empty:
                out.empties += 1
                continue
            problem = ROW_EMPTY
        elif n > limit:
            problem = ROW_TOO_LARGE
        elif lines and not is_line(lines, p, n):
            problem = ROW_HAS_LF
        elif rows.ids != NULL:
            if not rows_get(rows.ids, i, &own_id, &id_n) or not own_id_valid(own_id, id_n):
                problem = ROW_BAD_ID
            elif n > body_limit(max_body, OWN_ID_KEY + id_n + (attrs_n + 1 if attrs_n else 0)):
                problem = ROW_TOO_LARGE
            out.id_bytes += <int64_t>id_n
        if problem != ROW_GOOD:
            out.first_bad = i
            out.problem = problem
            out.bad_size = <int64_t>n
            return
        out.bytes += <int64_t>n
        out.largest = max(out.largest, n)
