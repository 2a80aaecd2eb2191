"""The table of functions with which a hub is a name server and a broker of RocketMQ.

Locality: any thread.  Locks: none.
"""

from libc.string cimport memset

from dataproxy._core.wire.api cimport WireOps
from dataproxy._core.wire.rocketmq.serve cimport request_delimit, serve_request


cdef WireOps OPS

memset(&OPS, 0, sizeof(WireOps))        # what is not named below is NULL
OPS.name = b"rocketmq"
OPS.spread = 1
OPS.any_order = True
OPS.delimit = request_delimit
OPS.serve = serve_request


cdef const WireOps* rocketmq_ops() noexcept nogil:
    """Return the table; it lives as long as the process."""
    return &OPS
