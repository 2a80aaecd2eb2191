"""Facade of the hub's server loops."""

from libc.stdint cimport int64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.net.tlscontext cimport TlsContexts
from dataproxy._core.server.state cimport LISTENERS_MOST, ServerLoop, HubShared
from dataproxy._core.server.faults.core cimport FaultCore
from dataproxy._core.server.listener cimport Listener
from dataproxy._core.server.topics cimport Names
from dataproxy._core.server.rocketmq.core cimport RemotingCore
from dataproxy._core.server.tubemq.core cimport RegistrationsCore
from dataproxy._core.server.store.core cimport StoreCore
from dataproxy._core.server.tubemq.callcore cimport CallsCore


cdef class HubCore:
    cdef HubShared shared
    cdef ServerLoop* loops      # `threads` of them while open
    cdef int loop_count         # initialised server loops
    cdef int running            # loops under way; guarded by the GIL
    cdef bint opened
    cdef Names names
    cdef readonly int threads
    cdef readonly int port
    cdef readonly int nodes     # listeners for TCP; as many follow for HTTP, or none; then TubeMQ's and RocketMQ's
    cdef int http_port          # -1: none
    cdef int tubemq_port        # -1: none
    cdef readonly int tubemq    # index of the listener for TubeMQ; -1: there is none
    cdef int rocketmq_ports[2]  # -1: none
    cdef readonly int rocketmq  # index of the listener for RocketMQ, which a second one may follow; -1: there is none
    cdef RemotingCore remoting  # None without it; as the next
    cdef CallsCore calls        # its queue must outlive the server loops; None without that listener
    cdef str host
    cdef str other_host         # of the other family; "" without one
    cdef bytes node_ip          # shared.profile.node_ip points into it
    cdef StoreCore store        # the committer must outlive the server loops
    cdef FaultCore faults       # its table must, too
    cdef RegistrationsCore broker   # of calls of data; None: they are not answered
    cdef TlsContexts tls        # and these settings; None: connections are plain
    cdef Listener listeners[LISTENERS_MOST]
    cdef readonly tuple ports

    cdef object _closed_counts(self)
    cdef object _refused_counts(self)
    cdef int _set_ends(self, str host, str other_host, int port, int http_port, str node_ip) except -1
    cdef int _add_remoting(self, RemotingCore remoting, int port, int second_port, int64_t message) except -1
    cdef int _join(self, int number) except -1
    cdef str _kind(self, int i)
    cdef int _tell_peers(self, int loop, const Buf* found, list out) except -1
    cdef int _speak(self, int i, int64_t max_frame, bint compat) except -1
    cdef int _first_port(self, int i) except -1
    cdef tuple _listen(self)
    cdef tuple _of_node(self, int node)
    cdef Listener* _listener(self, int listener) except NULL
