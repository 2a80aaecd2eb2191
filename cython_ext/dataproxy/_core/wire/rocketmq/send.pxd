"""SEND in its three forms (10, 310, 320), and its answer."""

from libc.stdint cimport int32_t, int64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.rocketmq.header cimport Command


ctypedef struct SendRequest:
    Slice producer_group
    Slice topic
    Slice default_topic         # template of a topic that does not exist yet
    int32_t default_queues
    int32_t queue               # negative: the server picks
    int32_t sys_flag
    int64_t born_ms
    int32_t flag                # the user's
    Slice properties
    int32_t reconsume_times
    bint unit
    int32_t max_reconsume       # -1: not given
    bint batch
    Slice broker                # empty: not given
    Slice body                  # a message, or the items of a batch
    const char* wrong           # with ST_INVALID: the field that is missing, or no number


ctypedef struct Sent:
    int32_t code
    bint stored                 # codes 0 and 10 to 12; without it only `code` and `remark` count
    Slice remark
    Slice ids                   # offset message ids, joined by commas
    int32_t queue
    int64_t offset              # of the first message in its queue
    Slice transaction
    const char* wrong           # as SendRequest.wrong


cdef int read_send(Command* command, SendRequest* out) noexcept nogil
cdef int put_send(Buf* out, const Command* command, const SendRequest* s) noexcept nogil
cdef int read_sent(Command* command, Sent* out) noexcept nogil
cdef int put_sent(Buf* out, const Command* command, const Sent* s) noexcept nogil
