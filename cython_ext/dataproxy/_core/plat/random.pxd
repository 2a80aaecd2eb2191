"""Random bytes of the operating system."""


cdef extern from "<sys/random.h>" nogil:
    ssize_t getrandom(void* to, size_t n, unsigned int flags) noexcept
