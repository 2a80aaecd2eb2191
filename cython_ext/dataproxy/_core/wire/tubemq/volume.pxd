"""Volume rules: how many bytes a minute a group may read at a time of the day, as masters tell it."""

from libc.stdint cimport int32_t, int64_t


cdef enum:
    VOLUME_RULES_MOST = 64      # of a set; a day has room for few


ctypedef struct VolumeRule:     # bytes a minute, at times of the day
    int32_t first_minute        # of the day, in GMT+8; both belong to it
    int32_t last_minute
    int64_t backlog             # it holds for larger ones
    int64_t bytes               # a minute
    int32_t wait_ms


# The first rule of a set that holds, or NULL; the backlog in bytes, the time of the day's wall clock.
cdef const VolumeRule* volume_rule(const VolumeRule* rules, int n, int64_t backlog, int64_t wall_ms) noexcept nogil
