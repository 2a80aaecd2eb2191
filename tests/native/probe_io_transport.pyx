"""Test access to transport, poller, wake-up and addresses."""

from libc.stdint cimport int64_t, uint8_t, uint16_t
from libc.stdlib cimport free, malloc

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.base.address cimport ADDRESS_TEXT, Address, address_parse, address_text
from dataproxy._core.net.poller cimport (
    POLL_BATCH, PollEvent, Poller, Wakeup, poller_add, poller_close, poller_open, poller_remove, poller_set,
    poller_wait, wakeup_clear, wakeup_close, wakeup_open, wakeup_signal, wakeup_watch,
)
from dataproxy._core.net.transport cimport (
    Transport, TransportOptions, transport_adopt, transport_init, transport_peer,
    transport_tcp,
)
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load
from dataproxy._core.plat.eventfd cimport eventfd_write
from dataproxy._core.plat.socket cimport iovec


def parse_address(bytes host not None, uint16_t port):
    """Return (status, host, port) after a way through sockaddr and back."""
    cdef Address a
    cdef char text[ADDRESS_TEXT]
    cdef int status = address_parse(host, port, &a)
    cdef int back
    if status != ST_OK:
        return status, "", 0
    back = address_text(&a, text)
    return status, (<bytes>text).decode(), back


cdef class Stream:
    """A TCP transport driven from Python."""

    cdef Transport raw
    cdef Address peer

    def __cinit__(self):
        """Make a closed transport."""
        transport_init(&self.raw, transport_tcp())

    def __dealloc__(self):
        """Close it."""
        self.raw.ops.close(&self.raw)

    def connect(self, bytes host not None, uint16_t port, bint nagle=False, int send_buffer=0, int recv_buffer=0):
        """Open a socket and begin a connect; return the status."""
        cdef TransportOptions options
        cdef int status = address_parse(host, port, &self.peer)
        options.nagle = nagle
        options.send_buffer = send_buffer
        options.recv_buffer = recv_buffer
        if status == ST_OK:
            status = self.raw.ops.open(&self.raw, self.peer.raw.ss_family, &options)
        if status == ST_OK:
            status = self.raw.ops.start(&self.raw, &self.peer)
        return status

    def adopt(self, int fd) -> int:
        """Take over a descriptor; return the status."""
        return transport_adopt(&self.raw, fd, NULL)

    def finish(self) -> int:
        """Return the result of the connect."""
        return self.raw.ops.finish(&self.raw)

    def recv(self, size_t n):
        """Return (status, bytes)."""
        cdef size_t got = 0
        cdef uint8_t* room = <uint8_t*>malloc(n)
        cdef int status
        cdef bytes data
        if room == NULL:
            raise MemoryError
        status = self.raw.ops.recv(&self.raw, room, n, &got)
        data = (<char*>room)[:got]
        free(room)
        return status, data

    def send(self, list parts not None):
        """Return (status, bytes sent) of one gathered write."""
        cdef iovec vectors[16]
        cdef size_t sent = 0
        cdef int status
        cdef int i
        for i in range(len(parts)):
            vectors[i].iov_base = <void*><char*>(<bytes>parts[i])
            vectors[i].iov_len = <size_t>len(<bytes>parts[i])
        status = self.raw.ops.send(&self.raw, vectors, <int>len(parts), &sent)
        return status, sent

    def close(self) -> None:
        """Release the descriptor."""
        self.raw.ops.close(&self.raw)

    def peer_port(self):
        """Return the peer's port, -1 without one."""
        cdef Address a
        cdef char text[ADDRESS_TEXT]
        return address_text(&a, text) if transport_peer(&self.raw, &a) == ST_OK else -1

    @property
    def held(self) -> int:
        """Return how many bytes the peer's host has not acknowledged."""
        return self.raw.ops.held(&self.raw)

    @property
    def error(self) -> int:
        """Return errno of the last system error."""
        return self.raw.error

    @property
    def fileno(self) -> int:
        """Return the descriptor, -1 when closed."""
        return self.raw.fd


cdef class Poll:
    """A poller with one wake-up; tags are numbers of streams."""

    cdef Poller raw
    cdef Wakeup wakeup

    def __cinit__(self):
        """Open both."""
        if poller_open(&self.raw) != ST_OK or wakeup_open(&self.wakeup) != ST_OK:
            raise OSError
        wakeup_watch(&self.wakeup, &self.raw, <void*>0)

    def __dealloc__(self):
        """Close both."""
        wakeup_close(&self.wakeup)
        poller_close(&self.raw)

    def add(self, Stream stream not None, size_t tag, int interest) -> int:
        """Watch a stream."""
        return poller_add(&self.raw, &stream.raw, <void*>tag, interest)

    def set(self, Stream stream not None, size_t tag, int interest) -> int:
        """Change the interest in a stream."""
        return poller_set(&self.raw, &stream.raw, <void*>tag, interest)

    def remove(self, Stream stream not None) -> None:
        """Stop watching a stream."""
        poller_remove(&self.raw, &stream.raw)

    def wait(self, int64_t timeout_us, int limit=POLL_BATCH):
        """Return {tag: ready bits}; the wake-up has tag 0."""
        cdef PollEvent events[POLL_BATCH]
        cdef int i
        cdef int n
        cdef dict out
        with nogil:
            n = poller_wait(&self.raw, events, limit, timeout_us)
        if n < 0:
            raise OSError(self.raw.error, "epoll_wait")
        out = {}
        for i in range(n):
            out[<size_t>events[i].tag] = events[i].ready
        return out

    def signal(self) -> None:
        """Signal the wake-up."""
        with nogil:
            wakeup_signal(&self.wakeup)

    def stop_signaller(self) -> None:
        """Be a thread that has come into `wakeup_signal`, and stops there."""
        atomic_add(&self.wakeup.signallers, 1)

    def resume_signaller(self) -> int:
        """Write what that thread had to write, and leave; return what `write` returned."""
        cdef int done = eventfd_write(self.wakeup.fd, 1)
        atomic_add(&self.wakeup.signallers, -1)
        return done

    def close_wakeup(self) -> None:
        """Close the wake-up, while other threads may run."""
        with nogil:
            wakeup_close(&self.wakeup)

    def clear(self) -> None:
        """Clear the wake-up."""
        wakeup_clear(&self.wakeup)

    @property
    def pending(self) -> int:
        """Return the wake-up's flag."""
        return atomic_load(&self.wakeup.pending)
