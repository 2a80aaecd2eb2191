"""Entries of the store as RocketMQ's messages, whatever protocol they came by."""

from libc.stdint cimport int32_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.store.visits cimport Seen
from dataproxy._core.wire.rocketmq.stored cimport Host, StoredMessage


ctypedef struct Source:         # what all messages of one visit have
    Slice topic
    uint32_t log
    int32_t queue
    Host host                   # of the hub, as the reader knows it


# What an entry is as a message; `properties` gets bytes that it borrows.  ST_OK or ST_NO_MEMORY.
cdef int message_seen(const Source* source, const Seen* seen, Buf* properties, StoredMessage* out) noexcept nogil
