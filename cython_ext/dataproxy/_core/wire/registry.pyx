"""The wires by the families of frames that they make, and those that a server speaks on its ports.

Locality: any thread.  Locks: none.
"""

from dataproxy._core.wire.inlong.codec cimport inlong_ops
from dataproxy._core.wire.inlong.const cimport FAMILY_REPORT
from dataproxy._core.wire.inlong.http.codec cimport http_ops
from dataproxy._core.wire.inlongv1.codec cimport inlongv1_ops
from dataproxy._core.wire.inlongv1.const cimport FAMILY_V1
from dataproxy._core.wire.tubemq.codec cimport tubemq_ops
from dataproxy._core.wire.tubemq.const cimport FAMILY_TUBEMQ


cdef const WireOps* wire_of_family(int family) noexcept nogil:
    """Return the wire whose frames are of ``family`` (FrameSpec)."""
    if family == FAMILY_V1:
        return inlongv1_ops()
    if family == FAMILY_TUBEMQ:
        return tubemq_ops()
    return http_ops() if family == FAMILY_REPORT else inlong_ops()


cdef const WireOps* wire_of_server() noexcept nogil:
    """Return the wire of a TCP port: as the reference server, it takes frames of both protocols on each connection."""
    return inlongv1_ops()


cdef const WireOps* wire_of_reports() noexcept nogil:
    """Return the wire of a port of the HTTP report."""
    return http_ops()


cdef const WireOps* wire_of_queue() noexcept nogil:
    """Return the wire of a port of TubeMQ's master and broker."""
    return tubemq_ops()
