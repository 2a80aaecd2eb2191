"""Requests of a thread to the scheduler."""

from libc.stdint cimport uint64_t


cdef extern from "dp_sched.h" nogil:
    # Ask for time slices of so many nanoseconds: a thread that wakes up with a short slice runs before threads with
    # longer ones.  0; or -1 if the kernel or the thread's policy has no slices, and then nothing has changed.
    int sched_slice "dp_sched_slice"(uint64_t ns) noexcept


cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept
