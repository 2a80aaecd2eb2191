"""Confirms, and positions that the store has.

Locality: any thread.  Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock
from dataproxy._core.server.entries cimport ENTRY_OFFSET, entry_offset
from dataproxy._core.server.tubemq.registrations cimport (
    REG_NO_OWNER, REG_OK, REG_OTHER, REG_TAKEN, REG_UNKNOWN, Registration, registration_commit, registration_find,
    registration_use,
)


cdef void broker_confirm(TubeBroker* b, const Claim* c, bint consumed, int64_t now_us, Confirmed* out) noexcept nogil:
    """Confirm for an owner.  Locks: takes the mutex of the registrations."""
    cdef Registration* r
    cdef uint64_t before
    memset(out, 0, sizeof(Confirmed))
    out.position = -1
    pthread_mutex_lock(&b.registrations.mutex)
    r = registration_find(b.registrations, c.group, c.topic, c.partition)
    out.code = registration_use(b.registrations, r, c.client, now_us)
    if out.code == REG_OK:
        before = r.version
        out.position = registration_commit(b.registrations, r, consumed)
        out.version = r.version
        out.moved = consumed and r.version != before
        out.unkept = consumed and r.confirmed != r.kept
    pthread_mutex_unlock(&b.registrations.mutex)


cdef void broker_kept(TubeBroker* b, const Entry* entry) noexcept nogil:
    """Note what the store has.  Locks: takes the mutex of the registrations."""
    cdef Registration* r
    pthread_mutex_lock(&b.registrations.mutex)
    r = registration_find(b.registrations, entry.stream, entry.group, <int>entry.partition)
    if r != NULL and entry.version >= r.kept_version:
        r.kept = <int64_t>entry.offset
        r.kept_version = entry.version
    pthread_mutex_unlock(&b.registrations.mutex)


cdef Entry* broker_entry(const Claim* c, const Confirmed* what, Slice reply) noexcept nogil:
    """Return the entry that stores a position; who submits it fills in where it comes from."""
    cdef Entry parts
    memset(&parts, 0, sizeof(Entry))
    parts.kind = ENTRY_OFFSET
    parts.group = c.topic
    parts.stream = c.group
    parts.partition = <uint32_t>c.partition
    parts.offset = <uint64_t>what.position
    parts.version = what.version
    parts.reply = reply
    return entry_offset(&parts)


cdef const char* code_text(int code) noexcept nogil:
    """Return the text of a failure."""
    if code == REG_UNKNOWN:
        return b"UnRegistered Consumer, you have to register firstly!"
    if code == REG_OTHER:
        return b"[Duplicated Request] another consumer has registered the partition"
    if code == REG_NO_OWNER:
        return b"the partition is not registered by this consumer"
    if code == REG_TAKEN:
        return b"[Duplicated Register] another consumer has the partition"
    if code == CODE_LIMITED:
        return b"the group reads faster than its flow rules allow"
    return b"the broker could not do it"
