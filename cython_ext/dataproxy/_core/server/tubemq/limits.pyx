"""Flow rules at the broker: a minute of reading has its limit, and twelve slices of five seconds divide it.

The limit of a minute is chosen when it begins, by the time of the day and by what is left to read: the group's first
rule that holds, else the cluster's.  Rules that change count from the next minute on.

Locality: any thread.  Locks: the caller holds the mutex of the registrations.
"""

from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport slice_equals, slice_of
from dataproxy._core.wire.tubemq.volume cimport volume_rule

cdef enum:
    MINUTE_US = 60000000
    SLICE_US = 5000000
    SLICES = 12


cdef void rules_free(RuleSets* sets) noexcept nogil:
    """Release all rules."""
    cdef RuleSet* one
    free(sets.cluster)
    sets.cluster = NULL
    while sets.groups != NULL:
        one = sets.groups
        sets.groups = one.next
        free(one)


cdef RuleSet* _made(const Slice* group, const VolumeRule* rules, int n) noexcept nogil:
    """Return a set with copies of rules and name; NULL: no memory."""
    cdef size_t size = <size_t>n * sizeof(VolumeRule)
    cdef size_t length = group.n if group != NULL else 0
    cdef RuleSet* one = <RuleSet*>malloc(sizeof(RuleSet) + size + length)
    cdef uint8_t* name
    if one == NULL:
        return NULL
    one.next = NULL
    one.n = n
    one.rules = <VolumeRule*>(one + 1)
    memcpy(one.rules, rules, size)
    name = <uint8_t*>one.rules + size
    if length:
        memcpy(name, group.p, length)
    one.group = slice_of(name, length)
    return one


cdef bint rules_set(RuleSets* sets, const Slice* group, const VolumeRule* rules, int n) noexcept nogil:
    """Replace the rules of a group, or of the cluster; False: no memory, and those that were there stay."""
    cdef RuleSet** at = &sets.cluster if group == NULL else &sets.groups
    cdef RuleSet* before
    cdef RuleSet* made = NULL
    if n > 0:
        made = _made(group, rules, n)
        if made == NULL:
            return False
    while group != NULL and at[0] != NULL and not slice_equals(at[0].group, group[0]):
        at = &at[0].next
    before = at[0]
    if made != NULL:
        made.next = before.next if before != NULL else NULL
        at[0] = made
    elif before != NULL:
        at[0] = before.next
    free(before)
    return True


cdef const VolumeRule* _rule(const RuleSets* sets, Slice group, int64_t backlog, int64_t wall_ms) noexcept nogil:
    """Return the rule that holds for a group, or NULL."""
    cdef const RuleSet* one = sets.groups
    cdef const VolumeRule* rule = NULL
    while one != NULL and not slice_equals(one.group, group):
        one = one.next
    if one != NULL:
        rule = volume_rule(one.rules, one.n, backlog, wall_ms)
    if rule == NULL and sets.cluster != NULL:
        rule = volume_rule(sets.cluster.rules, sets.cluster.n, backlog, wall_ms)
    return rule


cdef void _begin_minute(
    Limit* l, const RuleSets* sets, Slice group, int64_t backlog, int64_t now_us, int64_t wall_ms
) noexcept nogil:
    cdef const VolumeRule* rule = _rule(sets, group, backlog, wall_ms)
    l.most_bytes = rule.bytes if rule != NULL else INT64_MAX
    l.wait_ms = rule.wait_ms if rule != NULL else 0
    l.minute_bytes = l.slice_bytes = 0
    l.minute_end_us = now_us + MINUTE_US
    l.slice_end_us = now_us + SLICE_US


cdef int64_t limit_check(
    Limit* l, const RuleSets* sets, Slice group, int64_t backlog, int64_t now_us, int64_t wall_ms
) noexcept nogil:
    """Return what the next pack of a group may have: bytes, INT64_MAX without a limit; below 0: nothing, wait.

    ``backlog``: bytes behind the position where it would begin.
    """
    if not l.begun:
        return INT64_MAX
    if now_us > l.minute_end_us:
        _begin_minute(l, sets, group, backlog, now_us, wall_ms)
    elif now_us > l.slice_end_us:
        l.slice_bytes = 0
        l.slice_end_us = now_us + SLICE_US
    if l.minute_bytes >= l.most_bytes or l.slice_bytes >= l.most_bytes // SLICES:
        return -1 - <int64_t>l.wait_ms
    return l.most_bytes // SLICES if l.most_bytes < INT64_MAX else INT64_MAX


cdef void limit_count(Limit* l, size_t n) noexcept nogil:
    """Count what was read."""
    l.begun = True
    l.minute_bytes += <int64_t>n
    l.slice_bytes += <int64_t>n
