"""Calls: the messages around a request, and around its answer."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.slice cimport Slice


ctypedef struct Call:           # a request
    int32_t flag                # as a server reads it: never branch on it
    int32_t service             # 0: not given
    int32_t version             # 0: not given
    int32_t method
    int64_t timeout_ms          # 0: not given
    Slice request               # as a server reads it


ctypedef struct Answer:         # as a client reads it
    int status                  # RpcStatus
    int32_t method              # with RPC_SUCCESS
    Slice data                  # with RPC_SUCCESS
    Slice exception             # otherwise: the name of a Java class
    Slice trace                 # otherwise: a text


cdef int read_call(Slice payload, Call* out) noexcept nogil
cdef int read_answer(Slice payload, Answer* out) noexcept nogil
# Writers.  First the size of the whole payload, then everything before the last `n` bytes of it, which the caller adds.
cdef size_t call_size(const Call* call, size_t n) noexcept nogil
cdef uint8_t* put_call(uint8_t* to, const Call* call, size_t n) noexcept nogil
cdef size_t answer_size(int32_t method, size_t n) noexcept nogil
cdef uint8_t* put_answer(uint8_t* to, int32_t method, size_t n) noexcept nogil
cdef size_t exception_size(int status, Slice name, Slice trace) noexcept nogil
cdef uint8_t* put_exception(uint8_t* to, int status, Slice name, Slice trace) noexcept nogil
