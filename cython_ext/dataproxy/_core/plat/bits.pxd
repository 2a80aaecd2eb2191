"""Bit operations that the compiler has as one instruction."""


cdef extern from * nogil:
    int leading_zeros "__builtin_clzll"(unsigned long long v) noexcept      # v must not be 0
    bint unlikely(bint condition) noexcept                                  # the same condition, seldom true
