"""Names of the status codes, and the one place where a status becomes an exception.

Locality: any thread.  Locks: none.
"""


cdef const char* status_name(int status) noexcept nogil:
    """Return the name of ``status``."""
    if status == ST_OK: return "ok"
    if status == ST_NEED_DATA: return "need data"
    if status == ST_WANT_READ: return "want read"
    if status == ST_WANT_WRITE: return "want write"
    if status == ST_EOF: return "connection closed by peer"
    if status == ST_FULL: return "full"
    if status == ST_TIMEOUT: return "timed out"
    if status == ST_NO_MEMORY: return "out of memory"
    if status == ST_PROTOCOL: return "protocol error"
    if status == ST_LIMIT: return "over the limit"
    if status == ST_CLOSED: return "closed"
    if status == ST_SYSTEM: return "system error"
    if status == ST_INVALID: return "invalid argument"
    if status == ST_STORE: return "store error"
    if status == ST_DISK_FULL: return "disk full"
    return "unknown status"
