"""What Python sees of the hub's port of RocketMQ."""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.server.arrivals cimport BUCKETS
from dataproxy._core.server.calls cimport Call
from dataproxy._core.server.rocketmq.remoting cimport Remoting
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.server.store.core cimport StoreCore
from dataproxy._core.server.tubemq.core cimport RegistrationsCore


cdef enum:
    REMOTING_LOOPS = 64


cdef class RemotingCore:
    cdef Remoting remoting
    cdef ServerLoop* loops[REMOTING_LOOPS]      # while the hub's core is there
    cdef int n_loops
    cdef StoreCore store
    cdef RegistrationsCore registrations        # of which the positions are used
    cdef int64_t seen[BUCKETS]  # of `Arrivals.arrived`, as the thread has been told of last
    cdef dict names             # (topic, queue) by the store's numbers of logs, as they were read last

    cdef int join(self, int number, ServerLoop* d) except -1
    cdef int part(self) except -1
    cdef int _tell(self, uint64_t connection, int role, int kind, Buf* frame) except -1
    cdef object _named(self, unsigned int log)


cdef class RemotingCall:
    cdef Call* call             # NULL once it is answered
    cdef RemotingCore core
    cdef readonly int kind
    cdef readonly uint64_t connection
    cdef readonly int code
    cdef readonly int flag
    cdef readonly int opaque
    cdef readonly int version
    cdef readonly int form
    cdef readonly str language
    cdef readonly str remark
    cdef readonly dict fields
    cdef readonly bytes frame
    cdef readonly bytes body
    cdef readonly str peer
    cdef readonly str local
    cdef readonly uint64_t token
    cdef readonly list places

    cdef void _hand_back(self, Call* call) noexcept
    cdef int _take(self, RemotingCore core, Call* call) except -1
    cdef int _read(self) except -1
    cdef int _give(self, int code, dict fields, bytes remark, bytes body) except -1
