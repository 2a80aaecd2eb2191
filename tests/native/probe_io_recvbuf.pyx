"""Test access to the receive buffer."""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.net.recvbuf cimport (
    RecvBuf, recvbuf_consume, recvbuf_data, recvbuf_filled, recvbuf_free, recvbuf_init, recvbuf_rest, recvbuf_room,
)


cdef class ReceiveBuffer:
    """A receive buffer driven from Python."""

    cdef RecvBuf raw

    def __cinit__(self, size_t limit):
        """Make an empty buffer that holds at most ``limit`` bytes."""
        recvbuf_init(&self.raw, limit)

    def __dealloc__(self):
        """Release the memory."""
        recvbuf_free(&self.raw)

    def write(self, bytes data not None) -> int:
        """Copy ``data`` into the room; return the status."""
        cdef uint8_t* p = NULL
        cdef size_t n = 0
        cdef int status = recvbuf_room(&self.raw, <size_t>len(data), &p, &n)
        if status == ST_OK:
            assert n >= <size_t>len(data)
            memcpy(p, <const char*>data, <size_t>len(data))
            recvbuf_filled(&self.raw, <size_t>len(data))
        return status

    def data(self) -> bytes:
        """Return a copy of the unread bytes."""
        cdef Slice s = recvbuf_data(&self.raw)
        return (<const char*>s.p)[:s.n] if s.n else b""

    def consume(self, size_t n) -> None:
        """Drop bytes from the front."""
        recvbuf_consume(&self.raw, n)

    def rest(self, size_t keep) -> None:
        """End a round."""
        recvbuf_rest(&self.raw, keep)

    @property
    def capacity(self) -> int:
        """Return the bytes allocated."""
        return self.raw.cap
