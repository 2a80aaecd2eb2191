"""PULL: messages from the store's pages to the bytes that are sent, and requests that wait for some."""

from dataproxy._core.server.calls cimport Call
from dataproxy._core.server.session cimport Session
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.wire.api cimport Request


cdef enum PullConst:
    GROUP_MOST = 255            # bytes of a group that may confirm
    HELD_MOST = 16384           # bytes of a request that the thread may let wait
    PULL_ENOUGH = 262144        # bytes of entries behind which nothing is added
    PULL_MESSAGES = 1024        # of one answer; clients ask for 32, as a rule
    PULLS_UNSENT = 4194304      # bytes of answers that a connection has to read before it gets more messages


ctypedef struct WaitWish:       # of a call that waits: what for; the bytes of the topic follow
    long long offset
    long long until_us
    int queue


cdef void pull_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil
cdef void call_hold(ServerLoop* d, Session* s, Call* call) noexcept nogil   # the thread's request waits: ROLE_WAIT
cdef void pulls_follow(ServerLoop* d) noexcept nogil        # once in a round: entries have come, time has passed
cdef void pulls_end(ServerLoop* d) noexcept nogil           # answer all that wait: the hub stops
