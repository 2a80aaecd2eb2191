"""Assertions of debug builds: on in the profiles debug, coverage, asan and tsan of ``setup.py``, nothing in release.

``dp_assert`` takes a condition, then a format of ``printf`` which begins with the condition as text and shows its
values, then these values.  If the condition is false, it prints one line with file, line and text, and aborts.  Neither
the condition nor a value may change anything or call a function of another module: in release they are not evaluated,
except for the parts of ``and`` and ``or``.  What takes more than a condition stands below ``if DP_CHECKED:``.
"""


cdef extern from "dp_assert.h" nogil:
    bint DP_CHECKED                 # a constant: the compiler removes what stands below it
    void dp_assert(bint condition, const char* text, ...) noexcept
