"""One thread's share of a load: sends what the plan makes due, and notes when each message should have been sent."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.hdr cimport Hdr
from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.accumulate.streams cimport Stream as CStream
from dataproxy._core.perf.pending cimport Pending, Tally
from dataproxy._core.perf.plan cimport Plan


cdef enum Course:               # how a run continues after a call
    CO_ON = 0
    CO_REFUSED = 1              # there was no room; counted
    CO_CLOSED = 2
    CO_TOO_LARGE = 3
    CO_NO_MEMORY = 4


ctypedef struct Body:
    const uint8_t* p            # borrowed from an object that the generator keeps
    size_t n


cdef class Generator:
    # Constant once it was made.
    cdef CoreHandle core
    cdef list streams
    cdef list bodies
    cdef CStream** targets      # of `streams`
    cdef int n_targets
    cdef Body* sources          # of `bodies`
    cdef int64_t n_bodies
    cdef int* buckets           # key buckets, NULL without keys
    cdef int n_buckets
    cdef int64_t each           # messages of one arrival
    # The thread that runs.
    cdef Plan plan
    cdef bint planned
    cdef bint running           # GIL
    cdef int64_t start_us       # planned times count from here
    cdef int64_t number         # of the next message, for the choice of its stream, body and key
    cdef bint circles           # a closed loop: the sender waits for the result of each message
    cdef PackResult* last       # of that message; holds a reference until the wait has ended
    cdef int alarm              # of a run in an event loop: a timerfd, else -1
    cdef int64_t ahead          # with it: us from the start to the next arrival, -1 after the last
    cdef int64_t excused        # us by which it may be late because calls had to wait for room
    # Written by the thread that runs, read by any: atomic.
    cdef int64_t due            # messages that the plan wanted so far
    cdef int64_t accepted
    cdef int64_t refused
    cdef int64_t blocked_us
    cdef int64_t stopping
    # Both sides.
    cdef Pending pending
    cdef Tally tally
    cdef Hdr lag                # guarded by tally.lock: us by which it was late for reasons of its own

    cdef int _fill(self, list streams, list bodies, list keys) except -1
    cdef int _check(self) except -1
    cdef int64_t _wait_until(self, int64_t planned) noexcept nogil
    cdef bint _note_lag(self, int64_t planned, int64_t now) noexcept nogil
    cdef int _one(self, int64_t planned) noexcept nogil
    cdef int _drive(self) noexcept nogil
    cdef int _circle(self, int64_t end) noexcept nogil
    cdef int _await_room(self, int64_t seen, int64_t deadline) noexcept nogil
    cdef int _set_alarm(self, int64_t at_us) except -1
    cdef int _raise_course(self, int course) except -1
    cdef int _keep_delivery(self, object sent, int64_t planned) except -1
