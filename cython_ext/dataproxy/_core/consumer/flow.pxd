"""Flow rules: how often and how much a group may read, as masters hand them to consumers."""

from libc.stdint cimport int32_t, int64_t

from dataproxy._core.wire.tubemq.volume cimport VOLUME_RULES_MOST, VolumeRule


cdef enum:
    EMPTY_RULES_MOST = 64


ctypedef struct EmptyRule:      # after requests in a row that found nothing
    int32_t times
    int32_t wait_ms


ctypedef struct FlowRules:      # of a group, or of the cluster
    VolumeRule[VOLUME_RULES_MOST] volume    # by their first minute
    int n_volume
    EmptyRule[EMPTY_RULES_MOST] empty       # the most times first
    int n_empty
    bint has_pace
    int32_t pace_ms             # between packs of a reader without filters
    int32_t filtered_ms         # of one with filters
    int32_t filtered_near_ms    # of one that is near the end of the data


ctypedef struct FlowState:      # of a partition
    int64_t backlog             # as its newest answer said it; -1: none did
    int64_t minute_bytes        # read in this stage, of a minute
    int64_t slice_bytes         # and in this slice of it, of five seconds
    int64_t most_bytes          # of the stage; its slices have a twelfth
    int32_t wait_ms             # once that is reached
    bint has_pace
    int32_t pace_ms
    int32_t filtered_ms
    int32_t filtered_near_ms
    int64_t stage_end_us
    int64_t slice_end_us
    int32_t nothing             # answers in a row that found nothing


ctypedef struct FlowAnswer:     # to a request for a pack
    int32_t code
    int64_t bytes               # of payloads
    int64_t backlog             # -1: not known
    int64_t wait_ms             # that the answer asks for
    bint escape                 # no limit holds
    bint slow                   # a filtered reader is near the end of the data
    bint filtered               # the reader has filters


cdef void flow_begin(FlowState* s) noexcept nogil
cdef int64_t flow_wait_ms(
    FlowState* s, const FlowRules* group, const FlowRules* cluster, const FlowAnswer* answer, int64_t now_us,
    int64_t wall_ms,
) noexcept nogil
