"""SEND: messages that are stored as they are, alone or several of one request."""

from dataproxy._core.server.entries cimport Entry
from dataproxy._core.server.session cimport Session
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.wire.api cimport Request


cdef enum SendConst:
    BATCH_MOST = 16384          # messages of one request


cdef void send_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil
# What came of one message of a request; `s` NULL: nobody is there any more.
cdef void send_settled(ServerLoop* d, Session* s, Entry* entry) noexcept nogil
