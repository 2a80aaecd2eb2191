"""timerfd: a descriptor that becomes readable at a given time."""

from posix.time cimport itimerspec


cdef extern from "sys/timerfd.h" nogil:
    int TFD_CLOEXEC
    int TFD_NONBLOCK
    int TFD_TIMER_ABSTIME
    int timerfd_create(int clock, int flags) noexcept
    int timerfd_settime(int fd, int flags, const itimerspec* when, itimerspec* before) noexcept
