"""The table of functions with which a hub is a name server and a broker of RocketMQ."""

from dataproxy._core.wire.api cimport WireOps


cdef const WireOps* rocketmq_ops() noexcept nogil
