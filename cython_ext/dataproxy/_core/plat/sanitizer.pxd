"""Which sanitizer the core is built with."""


cdef extern from "dp_plat.h" nogil:
    bint UNDER_ASAN "DP_UNDER_ASAN"     # a constant
