"""How much a group may read of a partition, by flow rules of its own or of the cluster, as the broker counts it."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.tubemq.volume cimport VolumeRule


ctypedef struct Limit:          # of a registration; all zero: nothing was read
    bint begun                  # something was read: nothing is limited before
    int64_t most_bytes          # of a minute; its slices have a twelfth
    int32_t wait_ms             # that a client is told when it has them
    int64_t minute_bytes        # read in this minute
    int64_t slice_bytes         # and in this slice of it
    int64_t minute_end_us
    int64_t slice_end_us


ctypedef struct RuleSet:        # one block: the struct, the rules, then the name; of a group, or of the cluster
    RuleSet* next
    Slice group
    int n
    VolumeRule* rules           # by their first minute


ctypedef struct RuleSets:
    RuleSet* cluster            # NULL: there are no rules
    RuleSet* groups             # those that have rules of their own


cdef void rules_free(RuleSets* sets) noexcept nogil
# Replace the rules of a group (NULL: of the cluster); n 0: there are none any more.  False: no memory.
cdef bint rules_set(RuleSets* sets, const Slice* group, const VolumeRule* rules, int n) noexcept nogil
# The bytes that the next pack may have, or minus the ms that the client shall wait and 1 more.
cdef int64_t limit_check(
    Limit* l, const RuleSets* sets, Slice group, int64_t backlog, int64_t now_us, int64_t wall_ms
) noexcept nogil
cdef void limit_count(Limit* l, size_t n) noexcept nogil        # a pack was read
