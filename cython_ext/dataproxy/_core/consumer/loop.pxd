"""The sockets of a consumer, and the thread that serves them."""

from libc.stdint cimport int64_t

from dataproxy._core.base.clock cimport Clock
from dataproxy._core.base.forks cimport ForkNode
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.consumer.exchange cimport Exchange
from dataproxy._core.consumer.fetch cimport Fetch
from dataproxy._core.consumer.connection cimport Connection
from dataproxy._core.net.poller cimport Poller
from dataproxy._core.net.recvbuf cimport RecvBuf
from dataproxy._core.net.tlsholder cimport TlsHolder
from dataproxy._core.net.transport cimport Transport, TransportOps


ctypedef struct Channel:    # a connection and its socket; the loop alone
    Connection connection
    Transport transport
    RecvBuf received
    bint open
    int interest
    Channel* next           # constant


ctypedef struct Loop:
    Exchange exchange
    Fetch fetch
    Poller poller
    ForkNode at_fork
    TlsHolder* tls          # NULL: plain; constant, one of its users
    const TransportOps* transport   # constant
    const Clock* clock      # constant
    int64_t connect_us      # constant
    Channel* newest         # list of all channels; none is ever removed, so it is consistent at any time; atomic
    int64_t read_bytes      # relaxed
    int64_t sent_bytes      # relaxed
    int64_t connects        # relaxed


cdef int loop_open(Loop* p, Slice client, Slice group, TlsHolder* tls) noexcept nogil
cdef void loop_retire(Loop* p) noexcept nogil
cdef void loop_free(Loop* p) noexcept nogil
cdef void loop_run(Loop* p) noexcept nogil
