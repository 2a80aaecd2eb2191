"""What came on a link, as objects."""

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.rocketmq.header cimport Command


cdef class Answer:
    cdef readonly int code
    cdef readonly str remark
    cdef readonly dict fields
    cdef readonly bytes body


cdef class Incoming:
    cdef readonly int code
    cdef readonly int opaque
    cdef readonly bint one_way
    cdef readonly dict fields
    cdef readonly bytes body
    cdef int form


cdef class SendAnswer:
    cdef readonly int code
    cdef readonly str remark
    cdef readonly bint stored
    cdef readonly str ids
    cdef readonly int queue
    cdef readonly long long offset
    cdef readonly str transaction


cdef class PullAnswer:
    cdef readonly int code
    cdef readonly str remark
    cdef readonly bint placed       # the offsets count
    cdef readonly long long next_offset
    cdef readonly long long min_offset
    cdef readonly long long max_offset
    cdef readonly list messages
    cdef readonly Py_ssize_t broken


cdef Answer answer_of(Command* command)
cdef Incoming incoming_of(Command* command)
cdef SendAnswer send_answer_of(Command* command)
cdef PullAnswer pull_answer_of(Command* command, str broker)
