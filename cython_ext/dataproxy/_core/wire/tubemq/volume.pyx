"""Which volume rule holds.

A backlog is compared as masters mean it: its bytes with the rule's number of MiB, unscaled.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t

cdef enum:
    DAY_MINUTES = 1440
    ZONE_MINUTES = 480          # GMT+8


cdef const VolumeRule* volume_rule(const VolumeRule* rules, int n, int64_t backlog, int64_t wall_ms) noexcept nogil:
    """Return the first rule that holds at a time and for a backlog, or NULL."""
    cdef int32_t minute = <int32_t>((wall_ms // 60000 + ZONE_MINUTES) % DAY_MINUTES)
    cdef int i
    for i in range(n):
        if rules[i].first_minute <= minute <= rules[i].last_minute and backlog > rules[i].backlog:
            return &rules[i]
    return NULL
