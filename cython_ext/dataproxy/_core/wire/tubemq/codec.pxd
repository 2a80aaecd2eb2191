"""The table of functions with which a producer speaks to TubeMQ's brokers, and with which a hub is one."""

from dataproxy._core.wire.api cimport WireOps


cdef const WireOps* tubemq_ops() noexcept nogil
