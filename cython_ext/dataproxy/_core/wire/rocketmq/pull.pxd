"""PULL (11), and its answer."""

from libc.stdint cimport int32_t, int64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.rocketmq.header cimport Command


cdef enum PullFlag:             # PullRequest.sys_flag
    PULL_COMMIT = 1             # commit_offset counts
    PULL_SUSPEND = 2            # the server may wait
    PULL_SUBSCRIPTION = 4       # the subscription is in the request
    PULL_CLASS_FILTER = 8
    PULL_LITE = 16


ctypedef struct PullRequest:
    Slice group
    Slice topic
    int32_t queue
    int64_t offset              # of the first message wanted
    int32_t most                # messages
    int32_t sys_flag            # PullFlags
    int64_t commit_offset
    int64_t suspend_ms
    int64_t sub_version
    Slice subscription
    Slice expression_type       # empty: TAG
    Slice broker                # empty: not given
    const char* wrong           # with ST_INVALID: the field that is missing, or no number


ctypedef struct Pulled:
    int32_t code
    bint offsets                # codes 0 and 19 to 21; without it only `code` and `remark` count
    Slice remark
    int64_t next_broker         # id of the broker to ask next
    int64_t next_offset
    int64_t min_offset
    int64_t max_offset          # behind the last message
    Slice messages              # with code 0: stored messages
    const char* wrong


cdef int read_pull(Command* command, PullRequest* out) noexcept nogil
cdef int put_pull(Buf* out, const Command* command, const PullRequest* p) noexcept nogil
cdef int read_pulled(Command* command, Pulled* out) noexcept nogil
cdef int put_pulled(Buf* out, const Command* command, const Pulled* p) noexcept nogil
