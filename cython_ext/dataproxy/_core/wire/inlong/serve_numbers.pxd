"""Numeric group and stream ids of binary requests."""

from dataproxy._core.wire.inlong.answer cimport Exchange


cdef int judge_numbers(Exchange* x, bint* done) noexcept nogil
