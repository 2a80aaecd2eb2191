"""The wait before a partition's next request, from its newest answer and the rules.

The rules are TubeMQ's: a minute of reading is a stage, which takes its limit when it begins; twelve slices of five
seconds divide it, so that the limit is not used up at once.

Locality: owner of the state.  Locks: none.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.string cimport memset

from dataproxy._core.wire.tubemq.volume cimport VolumeRule, volume_rule

cdef enum:
    STAGE_US = 60000000
    SLICE_US = 5000000
    SLICES = 12
    FOUND = 200
    NOTHING = 404


cdef void flow_begin(FlowState* s) noexcept nogil:
    """Begin with a partition of which nothing was read."""
    memset(s, 0, sizeof(FlowState))
    s.backlog = -1
    s.stage_end_us = -1         # over


cdef void _take_limit(FlowState* s, const FlowRules* group, const FlowRules* cluster, int64_t wall_ms) noexcept nogil:
    cdef const VolumeRule* rule = NULL
    s.most_bytes = INT64_MAX
    s.wait_ms = 0
    if s.backlog < 0:
        return
    rule = volume_rule(group.volume, group.n_volume, s.backlog, wall_ms)
    if rule == NULL:
        rule = volume_rule(cluster.volume, cluster.n_volume, s.backlog, wall_ms)
    if rule != NULL:
        s.most_bytes = rule.bytes
        s.wait_ms = rule.wait_ms


cdef void _begin_stage(
    FlowState* s, const FlowRules* group, const FlowRules* cluster, int64_t now_us, int64_t wall_ms,
) noexcept nogil:
    cdef const FlowRules* pace = group if group.has_pace else cluster
    _take_limit(s, group, cluster, wall_ms)
    s.has_pace = pace.has_pace
    s.pace_ms = pace.pace_ms
    s.filtered_ms = pace.filtered_ms
    s.filtered_near_ms = pace.filtered_near_ms
    s.minute_bytes = s.slice_bytes = 0
    s.stage_end_us = now_us + STAGE_US
    s.slice_end_us = now_us + SLICE_US


cdef int64_t _after_nothing(const FlowRules* rules, int32_t times, int64_t wait_ms) noexcept nogil:
    cdef int i
    for i in range(rules.n_empty):
        if times >= rules.empty[i].times:
            return rules.empty[i].wait_ms
    return wait_ms


cdef int64_t flow_wait_ms(
    FlowState* s, const FlowRules* group, const FlowRules* cluster, const FlowAnswer* answer, int64_t now_us,
    int64_t wall_ms,
) noexcept nogil:
    """Return how long the partition waits, and count the answer.

    ``group`` and ``cluster``: rules; those of the group go first.  ``wall_ms`` is the time of the day's wall clock.
    """
    if answer.backlog >= 0:
        s.backlog = answer.backlog
    s.minute_bytes += answer.bytes
    s.slice_bytes += answer.bytes
    if now_us > s.stage_end_us:
        _begin_stage(s, group, cluster, now_us, wall_ms)
    elif now_us > s.slice_end_us:
        s.slice_bytes = 0
        s.slice_end_us = now_us + SLICE_US
    if answer.code != FOUND and answer.code != NOTHING:
        return answer.wait_ms
    s.nothing = s.nothing + 1 if answer.bytes == 0 and answer.code != FOUND else 0
    if s.nothing > 0:
        return _after_nothing(group if group.n_empty else cluster, s.nothing, answer.wait_ms)
    if answer.escape:
        return 0
    if s.minute_bytes >= s.most_bytes or s.slice_bytes >= s.most_bytes // SLICES:
        return max(<int64_t>s.wait_ms, answer.wait_ms)
    if s.has_pace and answer.code == FOUND:
        if answer.filtered:
            return s.filtered_near_ms if answer.slow else s.filtered_ms
        return s.pace_ms
    return answer.wait_ms
