"""Confirms of consumers, and positions that come back from the store."""

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.entries cimport Entry
from dataproxy._core.server.session cimport Session
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.server.tubemq.broker cimport Claim, Confirmed
from dataproxy._core.wire.api cimport Request


cdef void confirm_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil
# Send a position to the store; the session waits for it with an answer, or with a request that goes on then.
cdef void confirm_store(
    ServerLoop* d, Session* s, const Claim* c, const Confirmed* what, int kind, unsigned int serial, Slice rest
) noexcept nogil
cdef void confirm_settled(ServerLoop* d, Session* s, Entry* entry) noexcept nogil   # one of ENTRY_CONFIRM
