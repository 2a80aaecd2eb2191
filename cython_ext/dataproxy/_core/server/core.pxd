"""Facade of the hub's server loops."""

from dataproxy._core.net.tlscontext cimport TlsContexts
from dataproxy._core.server.state cimport LISTENERS_MOST, ServerLoop, HubShared
from dataproxy._core.server.faults.core cimport FaultCore
from dataproxy._core.server.listener cimport Listener
from dataproxy._core.server.topics cimport Names
from dataproxy._core.server.store.core cimport StoreCore


cdef class HubCore:
    cdef HubShared shared
    cdef ServerLoop* loops      # `threads` of them while open
    cdef int loop_count         # initialised server loops
    cdef int running            # loops under way; guarded by the GIL
    cdef bint opened
    cdef Names names
    cdef readonly int threads
    cdef readonly int port
    cdef readonly int nodes     # listeners for TCP; as many follow for HTTP, or none
    cdef int http_port          # -1: none
    cdef str host
    cdef str other_host         # of the other family; "" without one
    cdef bytes node_ip          # shared.profile.node_ip points into it
    cdef StoreCore store        # the committer must outlive the server loops
    cdef FaultCore faults       # its table must, too
    cdef TlsContexts tls        # and these settings; None: connections are plain
    cdef Listener listeners[LISTENERS_MOST]
    cdef readonly tuple ports

    cdef object _closed_counts(self)
    cdef object _refused_counts(self)
    cdef tuple _listen(self)
    cdef tuple _of_node(self, int node)
    cdef Listener* _listener(self, int listener) except NULL
