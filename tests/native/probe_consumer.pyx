"""Python access to what decides in a consumer, for tests."""

from libc.stdint cimport int64_t
from libc.string cimport memset

from dataproxy._core.consumer.flow cimport FlowAnswer, FlowRules, FlowState, flow_begin, flow_wait_ms

__all__ = ["Flow"]


cdef void _take(FlowRules* to, object rules) except *:
    memset(to, 0, sizeof(FlowRules))
    to.n_volume, to.n_empty = len(rules.volume), len(rules.empty)
    for i, one in enumerate(rules.volume):
        to.volume[i].first_minute, to.volume[i].last_minute = one.first_minute, one.last_minute
        to.volume[i].backlog, to.volume[i].bytes, to.volume[i].wait_ms = one.backlog, one.bytes_a_minute, one.wait_ms
    for i, one in enumerate(rules.empty):
        to.empty[i].times, to.empty[i].wait_ms = one.times, one.wait_ms
    if rules.pace is not None:
        to.has_pace = True
        to.pace_ms, to.filtered_ms, to.filtered_near_ms = rules.pace


cdef class Flow:
    """One partition under the rules of its group and of its cluster; times are given in s."""

    cdef FlowRules group
    cdef FlowRules cluster
    cdef FlowState state

    def __init__(self, group, cluster):
        _take(&self.group, group)
        _take(&self.cluster, cluster)
        flow_begin(&self.state)

    def answer(self, double now, int64_t wall_ms, *, int code=200, int64_t size=1, int64_t backlog=-1,
               int64_t wait=0, bint escape=False, bint slow=False, bint filtered=False):
        """Return the wait in ms after an answer."""
        cdef FlowAnswer a
        a.code, a.bytes, a.backlog, a.wait_ms = code, size, backlog, wait
        a.escape, a.slow, a.filtered = escape, slow, filtered
        return flow_wait_ms(&self.state, &self.group, &self.cluster, &a, <int64_t>(now * 1e6), wall_ms)
