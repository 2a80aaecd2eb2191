"""The table of functions with which a producer speaks to TubeMQ's brokers."""

from dataproxy._core.wire.api cimport WireOps


cdef const WireOps* tubemq_ops() noexcept nogil
