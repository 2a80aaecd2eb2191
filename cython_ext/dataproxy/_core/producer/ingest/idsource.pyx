"""Where the ids of callers come from: one text, a sequence of them, or a column of Arrow data.

Locality: GIL.  Locks: none.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_CheckExact
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport malloc

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.producer.ingest.ids cimport own_id_valid
from dataproxy._core.producer.ingest.rows cimport ROWS_POINTERS, Rows, rows_get
from dataproxy._core.producer.ingest.sources cimport BodyList

from dataproxy.errors import InvalidMessageError
from dataproxy.problems import id_problem

__all__: list = []


cdef object exact_text(object value):
    """Return text as a plain ``str``, also for an instance of a subclass; any other object as it is."""
    return str.__str__(value) if isinstance(value, str) and not PyUnicode_CheckExact(value) else value


cdef int own_id_of(object value, Slice* out) except -1:
    """Point ``out`` at one id, whose memory is valid as long as ``value``.  Raises InvalidMessageError."""
    cdef Py_ssize_t n = 0
    cdef const char* p
    if not isinstance(value, str):
        raise id_problem(value)
    try:
        p = PyUnicode_AsUTF8AndSize(value, &n)
    except UnicodeEncodeError:
        raise id_problem(value) from None
    if not own_id_valid(<const uint8_t*>p, <size_t>n):
        raise id_problem(value)
    out[0] = slice_of(p, <size_t>n)
    return 0


cdef BodyList id_rows(object ids, int64_t n):
    """Describe the ids of ``n`` bodies as rows; ``rows_check`` looks at their characters.

    Raises InvalidMessageError for a wrong number of them, or one that is neither text nor bytes.
    """
    cdef BodyList out = BodyList()
    cdef list items
    cdef int64_t i
    cdef Py_ssize_t size = 0
    if isinstance(ids, (str, bytes)):
        raise InvalidMessageError(
            f"message_ids is a sequence of ids, not one {type(ids).__name__!r}", hint="give one id for each body",
            code="BAD_ID")
    try:
        items = list(ids)
    except TypeError:
        raise InvalidMessageError(
            f"message_ids is a sequence of ids, not {type(ids).__name__!r}", hint="give one id for each body",
            code="BAD_ID") from None
    if len(items) != n:
        raise InvalidMessageError(
            f"there are {len(items)} message ids for {n} bodies", hint="give one id for each body", code="BAD_ID")
    out.keep = items
    out.pointers = <const uint8_t**>malloc(<size_t>(n + 1) * sizeof(uint8_t*))
    out.lengths = <int64_t*>malloc(<size_t>(n + 1) * sizeof(int64_t))
    if out.pointers == NULL or out.lengths == NULL:
        raise MemoryError(f"no memory for {n} message ids")
    for i in range(n):
        value = items[i] = exact_text(items[i])
        if isinstance(value, str) and value.isascii():
            out.pointers[i] = <const uint8_t*>PyUnicode_AsUTF8AndSize(value, &size)
            out.lengths[i] = size
        elif isinstance(value, bytes):
            out.pointers[i] = <const uint8_t*>PyBytes_AS_STRING(value)
            out.lengths[i] = PyBytes_GET_SIZE(value)
        else:
            raise id_problem(value, i)
    out.rows.kind = ROWS_POINTERS
    out.rows.pointers = out.pointers
    out.rows.lengths = out.lengths
    out.rows.n = n
    return out


cdef object bad_id(const Rows* rows, int64_t i, int64_t item, int64_t accepted):
    """Return the error for row ``i`` of the ids, the message ``item`` of its call."""
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    if not rows_get(rows, i, &p, &n):
        return id_problem(None, item, accepted)
    return id_problem((<const char*>p)[:n].decode("utf-8", "replace"), item, accepted)
