"""Base of the producer's facade: life of the engine, and the waits that Ctrl-C can interrupt."""

from threading import get_ident

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc

from dataproxy._core.client.batcher cimport batcher_seal_all
from dataproxy._core.client.books cimport books_idle, books_wait_room
from dataproxy._core.client.engine cimport Engine
from dataproxy._core.plat.clock cimport now_us

from dataproxy.errors import ClosedError, ForkedError, LocalProtocolError
from dataproxy.problems import seconds as checked_seconds

__all__ = ["CoreHandle"]

cdef double LONGEST_S = 1e9

cdef enum:
    SLICE_US = 100000       # a signal is looked for at least this often


cdef int64_t microseconds(object seconds) except -1:
    """Return a wait in microseconds, infinite ones as thirty years; ConfigError for what is no wait.  Locality: GIL."""
    cdef double value = checked_seconds(seconds)
    return <int64_t>(min(value, LONGEST_S) * 1e6)


cdef class CoreHandle:
    """Own the engine of one producer."""

    def __cinit__(self, *args, **options):
        self.engine = <Engine*>calloc(1, sizeof(Engine))
        if self.engine == NULL:
            raise MemoryError("no memory for a producer")
        self.watchers = {}
        self.late = []
        self.callers = set()

    def mark_forked(self):
        """Make every later use in this process raise ForkedError.  Thread: the forked child's only one."""
        self.forked = True

    cdef int check_not_forked(self) except -1:
        """Raise ForkedError in a forked child, where locks may be held by threads that do not exist."""
        if self.forked:
            raise ForkedError(
                "this producer was opened before the process was forked; its threads and connections belong to "
                "the parent", hint="open a producer of its own in the child process")
        return 0

    cdef int check_may_wait(self, str what) except -1:
        """Raise LocalProtocolError inside a callback of this producer: ``what`` would hold up all others."""
        if self.callers and get_ident() in self.callers:
            raise LocalProtocolError(
                f"{what} was called inside a callback of the same producer and would hold up every other callback",
                code="IN_CALLBACK", hint="let another thread wait, or use add_done_callback")
        return 0

    cdef int check_usable(self) except -1:
        """Raise ForkedError or ClosedError.  Locality: GIL.  Locks: none."""
        self.check_not_forked()
        if self.closed:
            raise ClosedError("the producer is closed", hint="open a new one to go on sending")
        return 0

    cdef int wait_room(self, int64_t seen, int64_t deadline_us) except -1:
        """Wait for room in the buffer: 1 when something was released since ``seen``, 0 at the deadline.

        Locality: GIL, released while waiting.  Locks: takes batcher.lock, then books.lock.  With nothing in
        flight it seals what is open, since only sealed packs can be delivered; otherwise open packs go on
        growing.  Raises what a signal handler raises.
        """
        cdef Engine* g = self.engine
        cdef int64_t now = now_us()
        cdef bint changed
        while now < deadline_us:
            with nogil:
                if books_idle(&g.books):
                    batcher_seal_all(&g.batcher)
                changed = books_wait_room(&g.books, seen, min(deadline_us, now + SLICE_US))
            PyErr_CheckSignals()
            if changed:
                return 1
            self.check_usable()
            now = now_us()
        return 0
