"""An executor in a forked child."""


cdef void executor_disown(void* executor) noexcept nogil
