"""Result of a function of the core; only ``status.pyx`` turns a status into an exception."""


cdef enum Status:
    ST_OK = 0
    # Not failures: the caller continues later.
    ST_NEED_DATA = 1    # a parser needs more bytes
    ST_WANT_READ = 2    # a transport must wait until it is readable
    ST_WANT_WRITE = 3   # a transport must wait until it is writable
    ST_EOF = 4          # the peer closed its side
    ST_FULL = 5         # a bound (bytes, messages, frames) is reached
    ST_TIMEOUT = 6
    # Failures.
    ST_NO_MEMORY = -1
    ST_PROTOCOL = -2    # the peer broke the protocol
    ST_LIMIT = -3       # a value is over its limit
    ST_CLOSED = -4
    ST_SYSTEM = -5      # a system call failed; errno is kept beside the status
    ST_INVALID = -6     # an argument is not allowed
    ST_STORE = -7       # the store refused a write
    ST_DISK_FULL = -8


cdef const char* status_name(int status) noexcept nogil
