"""What a thread asks of the scheduler."""

from libc.stdint cimport uint64_t


cdef extern from "dp_sched.h" nogil:
    # Ask for slices of so many nanoseconds: a thread that wakes up for a short one goes before those that run longer.
    # 0, or -1 where the kernel or the thread's policy knows no slices; nothing has changed then.
    int sched_slice "dp_sched_slice"(uint64_t ns) noexcept
