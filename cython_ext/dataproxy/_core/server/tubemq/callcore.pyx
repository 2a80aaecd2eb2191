"""Calls of control as the hub's thread sees them: it takes them one by one, and gives each back with its answer.

Locality: GIL, but for the wait for a call.  Locks: takes CallQueue.mutex.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.plat.atomic cimport relaxed_load
from dataproxy._core.server.state cimport loop_answered
from dataproxy._core.server.calls cimport (
    calls_free, calls_give, calls_init, calls_stop, calls_take, calls_wake,
)
from dataproxy._core.wire.tubemq.answers cimport add_answer, add_exception
from dataproxy._core.wire.tubemq.const cimport RPC_ERROR

__all__ = ["CallsCore", "PendingCall"]


cdef bytes _bytes(Slice s):
    return s.p[:s.n] if s.n else b""


cdef Slice _slice(bytes text):
    return slice_of(<const uint8_t*><const char*>text, <size_t>len(text))


@cython.no_gc_clear
cdef class PendingCall:
    """One call, which is owed an answer.  One that is dropped without any is answered as failed."""

    def __dealloc__(self):
        """Answer it, if nobody has."""
        if self.call != NULL:
            self._fail(b"java.lang.reflect.InvocationTargetException", b"", RPC_ERROR)

    @property
    def version(self) -> int:
        """Return the version of the protocol that the client speaks."""
        return self._open().version

    @property
    def service(self) -> int:
        """Return the number of the service that was called."""
        return self._open().service

    @property
    def method(self) -> int:
        """Return the number of the method."""
        return self._open().method

    @property
    def request(self) -> bytes:
        """Return the message."""
        return _bytes(self._open().request)

    @property
    def peer(self) -> str:
        """Return the numeric address that it came from."""
        return _bytes(self._open().peer).decode()

    def give(self, bytes data not None) -> None:
        """Answer with a message; once.  Raises ValueError for a call that is answered."""
        cdef Call* call = self._open()
        self.call = NULL
        if add_answer(&call.answer, call.serial, call.method, _slice(data)) != ST_OK:
            self.call = call
            self._fail(b"java.lang.OutOfMemoryError", b"the answer is too large", RPC_ERROR)
            return
        calls_give(&self.calls.queue, call)

    def fail(self, int status, bytes name not None, bytes trace not None) -> None:
        """Answer with an exception in the place of a message; once.  Raises ValueError for a call that is answered."""
        self._open()
        self._fail(name, trace, status)

    cdef Call* _open(self) except NULL:
        if self.call == NULL:
            raise ValueError("the call is answered, or was not made by CallsCore.take")
        return self.call

    cdef int _fail(self, bytes name, bytes trace, int status) except -1:
        cdef Call* call = self.call
        self.call = NULL
        add_exception(&call.answer, call.serial, status, _slice(name), _slice(trace))
        calls_give(&self.calls.queue, call)
        return 0


cdef class CallsCore:
    """The queue of a hub's calls of control.

    At most ``most_calls`` with ``most_bytes`` wait or are worked on, of which an address may have half of what the
    others leave.
    """

    def __cinit__(self, size_t most_calls, size_t most_bytes):
        """Make an empty queue."""
        if calls_init(&self.queue, loop_answered, most_calls, most_bytes) != ST_OK:
            raise MemoryError

    def __dealloc__(self):
        """Release the calls that nobody took."""
        calls_free(&self.queue)

    def take(self, int64_t until_us) -> PendingCall | None:
        """Wait for a call until a time of the monotonic clock, in us; None: it came, or the queue was woken or stopped.

        One thread.
        """
        cdef PendingCall found
        cdef Call* call
        with nogil:
            call = calls_take(&self.queue, until_us)
        if call == NULL:
            return None
        found = PendingCall.__new__(PendingCall)
        found.calls = self
        found.call = call
        return found

    def wake(self) -> None:
        """Make ``take`` return without a call, once.  Any thread."""
        calls_wake(&self.queue)

    def stop(self) -> None:
        """Take no further calls; those that wait are still given out.  Any thread."""
        calls_stop(&self.queue)

    def stats(self) -> dict[str, int]:
        """Return how many calls came, and how many were refused because too many waited.  Any thread."""
        return {"calls": relaxed_load(&self.queue.taken), "refused_calls": relaxed_load(&self.queue.refused)}

    @property
    def stopped(self) -> bool:
        """Tell whether no further calls are taken.  The thread that takes them."""
        return self.queue.stopped
