"""Entries of the store as RocketMQ's messages.

What a RocketMQ producer sent is what it sent.  Of TubeMQ's messages the body is one without the attribute; any other
entry is one message, whose body is InLong's container.  Their tag is the stream.

Locality: any thread.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.string cimport memcpy, memset

from dataproxy._core.base.address cimport ADDRESS_TEXT, Address, address_parse
from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice, slice_of, slice_text
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.server.rocketmq.ends cimport address_bytes
from dataproxy._core.server.store.header cimport QueueHeader, header_read
from dataproxy._core.wire.rocketmq.const cimport SYS_BORN_V6, SYS_STORE_V6
from dataproxy._core.wire.rocketmq.entry cimport read_entry
from dataproxy._core.wire.rocketmq.properties cimport put_property
from dataproxy._core.wire.rocketmq.serve cimport handle_of
from dataproxy._core.wire.rocketmq.stored cimport Host
from dataproxy._core.wire.tubemq.stored cimport StoredMessage as TubeMessage, read_stored as read_tube


cdef void _born_at(Slice text, Host* out) noexcept nogil:
    """Read the address that an entry came from; one that is unknown is 0.0.0.0."""
    cdef char copy[ADDRESS_TEXT]
    cdef Address address
    memset(out, 0, sizeof(Host))
    out.n = 4
    if text.n >= ADDRESS_TEXT:
        return
    if text.n:
        memcpy(copy, text.p, text.n)
    copy[text.n] = 0
    if address_parse(copy, 0, &address) == ST_OK:
        address_bytes(&address, out.address, &out.n)


cdef int _foreign(Slice container, const Seen* seen, Buf* properties, StoredMessage* out) noexcept nogil:
    """Describe an entry of another protocol."""
    cdef TubeMessage tube
    cdef int status
    properties.n = 0
    status = read_tube(container, properties, &tube)
    if status == ST_NO_MEMORY:
        return status
    out.body = tube.body if status == ST_OK else container
    properties.n = 0
    if seen.stream.n and put_property(properties, 0, slice_text(b"TAGS"), seen.stream) == ST_NO_MEMORY:
        return ST_NO_MEMORY
    out.properties = slice_of(properties.p, properties.n)
    return ST_OK


cdef int message_seen(const Source* source, const Seen* seen, Buf* properties, StoredMessage* out) noexcept nogil:
    """Describe an entry as a message."""
    cdef QueueHeader header
    cdef size_t head = 0
    cdef Slice container = seen.value
    cdef int status
    memset(out, 0, sizeof(StoredMessage))
    memset(&header, 0, sizeof(QueueHeader))
    if header_read(seen.value.p, seen.value.n, &header, &head) == ST_OK:
        container = slice_of(seen.value.p + head, seen.value.n - head)
    status = read_entry(container, properties, out)
    if status == ST_NO_MEMORY:
        return status
    if status != ST_OK:
        memset(out, 0, sizeof(StoredMessage))   # what was read of an attribute that is only begun like ours
        out.born_ms = header.receive_ms
        if _foreign(container, seen, properties, out) != ST_OK:
            return ST_NO_MEMORY
    if out.born.n == 0:
        _born_at(header.source, &out.born)
        if out.born.n == 16:
            out.sys_flag |= SYS_BORN_V6
    out.topic, out.queue, out.store = source.topic, source.queue, source.host
    if out.store.n == 16:
        out.sys_flag |= SYS_STORE_V6
    out.stored_ms = header.receive_ms
    out.queue_offset = <long long>seen.offset
    out.physical_offset = handle_of(source.log, seen.offset)
    return ST_OK
