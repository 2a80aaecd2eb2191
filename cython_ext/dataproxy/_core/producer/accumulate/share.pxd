"""The share of the buffer that messages of unknown streams may take."""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load
from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.accumulate.streams cimport Stream

cdef enum:
    UNKNOWN_SHARE = 4       # a quarter of the buffer
    UNKNOWN_SLACK = 32768   # bytes: with more left of it messages may be staged without a look at their streams


cdef inline int64_t unknown_left(const Batcher* b) noexcept nogil:
    """Return the bytes that messages of unknown streams may still take.

    Locality: any thread.  Locks: the batcher's is held.
    """
    return b.limit_bytes // UNKNOWN_SHARE - atomic_load(&b.unknown_bytes) - b.unknown_open


cdef inline bint unknown_fits(const Batcher* b, const Stream* s, size_t need) noexcept nogil:
    """Tell whether a message of ``need`` bytes is within the share of its stream, if that is unknown.

    Locality: any thread.  Locks: the batcher's is held.
    """
    return not s.is_unknown or unknown_left(b) >= <int64_t>need


cdef inline void unknown_note(Batcher* b, Pack* p, size_t bytes) noexcept nogil:
    """Count ``bytes`` of an open pack of an unknown stream, instead of what was counted of it before.

    Locality: any thread.  Locks: the batcher's is held.
    """
    b.unknown_open += <int64_t>bytes - <int64_t>p.noted
    p.noted = bytes


cdef inline void unknown_gate(Batcher* b) noexcept nogil:
    """Let messages be staged unless the share of unknown streams is nearly used up.

    Locality: any thread.  Locks: the batcher's is held.
    """
    b.least_body = b.least_room if b.unknown_streams == 0 or unknown_left(b) > UNKNOWN_SLACK else 0


cdef inline void unknown_sealed(Batcher* b, Pack* p) noexcept nogil:
    """Count a pack of an unknown stream that is being sealed.  Locality: any thread.  Locks: the batcher's is held."""
    unknown_note(b, p, 0)
    p.tied = True
    p.unknown_counted = True
    atomic_add(&b.unknown_bytes, <int64_t>p.charge)
