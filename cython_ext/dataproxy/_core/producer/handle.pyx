"""Base of the producer's facade: life of the engine, and the waits that Ctrl-C can interrupt.

Locality: GIL, any thread.  Locks: none, except in ``wait_room``.
"""

from threading import get_ident

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.producer.accumulate.batcher cimport batcher_seal_all
from dataproxy._core.producer.results.accounting cimport accounting_idle, accounting_wait_room
from dataproxy._core.producer.engine cimport Engine
from dataproxy._core.plat.clock cimport now_us

from dataproxy.errors import ClosedError, ForkedError, LocalProtocolError
from dataproxy.problems import seconds as checked_seconds

__all__ = ["CoreHandle"]

cdef double LONGEST_S = 1e9

cdef enum:
    SLICE_US = 100000       # the longest time between two checks for signals


cdef int64_t microseconds(object seconds) except -1:
    """Return seconds as microseconds, infinity as thirty years; raises ConfigError for other values.  Locality: GIL."""
    cdef double value = checked_seconds(seconds)
    return <int64_t>(min(value, LONGEST_S) * 1e6)


cdef int check_own(object thing, uint32_t generation) except -1:
    """Raise ForkedError for an object that a forked child inherited: only the parent knows its result.

    Locality: GIL.
    """
    if generation != this_generation:
        raise ForkedError(
            f"this {type(thing).__name__} belongs to messages that were sent before the process was forked; their "
            "results belong to the parent", hint="wait for it in the process that sent, or send here and use what that "
            "returns")
    return 0


cdef class CoreHandle:
    """Own the engine of one producer."""

    def __cinit__(self, *args, **options):
        self.engine = <Engine*>calloc(1, sizeof(Engine))
        if self.engine == NULL:
            raise MemoryError("no memory for a producer")
        self.watchers = {}
        self.late = []
        self._callers = set()
        self.generation = this_generation
        self.closed = True          # until there is an engine

    @property
    def _inherited(self):
        """Tell whether it was made before a fork and was not started again in this process.  Any thread."""
        return self.generation != this_generation

    def begin_again(self):
        """Raise ForkedError in a forked child; a derived class may start again there instead.  Any thread."""
        raise ForkedError(
            f"this {type(self).__name__} was opened before the process was forked; its threads and connections "
            "belong to the parent", hint="open one in the child process")

    def _trouble(self):
        """Return the last failure as the end of a sentence, empty without one.  Any thread."""
        return ""

    def _refuse_closed(self):
        """Raise the ClosedError of a call that came too late.  Any thread."""
        raise ClosedError("the producer is closed", hint="open a new one to continue")

    cdef int check_may_wait(self, str what) except -1:
        """Raise LocalProtocolError inside a callback of this producer: ``what`` would block all other callbacks."""
        if self._callers and get_ident() in self._callers:
            raise LocalProtocolError(
                f"{what} was called inside a callback of the same producer and would block every other callback",
                code="IN_CALLBACK", hint="let another thread wait, or use add_done_callback")
        return 0

    cdef int check_usable(self) except -1:
        """Start again in a forked child, or raise ForkedError there; raise ClosedError when closed.  Locality: GIL."""
        if self.closed:
            self._refuse_closed()
        if self.generation != this_generation:
            self.begin_again()
        return 0

    cdef int look_for_signals(self) except -1:
        """Run signal handlers that are due, and raise what they raise.  Locality: GIL, between two waits.

        If a handler has forked, the child continues a copy of a wait for the parent's engine: raises ForkedError.
        """
        cdef uint32_t before = this_generation
        PyErr_CheckSignals()
        if before != this_generation:
            raise ForkedError(
                "a signal handler forked the process during this call, which continues only in the parent",
                hint="call again in the child: the producer starts there anew")
        return 0

    def _suspend_when_full(self):
        """Let only the thread that calls ``_wait_here`` wait for room.  Called before the first message."""
        self.suspends = self.blocks

    def _wait_here(self):
        """Allow the calling thread to wait for room.  Thread: the worker of an AsyncProducer."""
        self.waiting_thread = <unsigned long>PyThread_get_thread_ident()

    cdef bint suspended(self):
        """Tell whether this thread must not wait for room.  Locality: GIL."""
        return self.suspends and self.waiting_thread != <unsigned long>PyThread_get_thread_ident()

    cdef bint calls_back(self) except -1:
        """Tell whether this thread makes the callbacks: then waiting results must not block it.  Locality: GIL."""
        if self._callers and get_ident() in self._callers:
            return True
        return self._makes_callbacks is not None and not self.suspended() and self._makes_callbacks()

    cdef int wait_room(self, int64_t seen, int64_t deadline_us) except -1:
        """Wait for room in the buffer: 1 when there may be room since ``seen``, 0 at the deadline (us).

        Locality:  GIL, released while waiting.  Locks: takes batcher.lock, then accounting.lock.  If nothing is in
        flight, it seals all open packs, because only sealed packs can be delivered; otherwise open packs go on growing.
        Raises what a signal handler raises, and ForkedError.
        """
        cdef Engine* g = self.engine
        cdef int64_t now = now_us()
        cdef bint changed
        if self.suspended():
            return 0
        while now < deadline_us:
            with nogil:
                if accounting_idle(&g.accounting):
                    batcher_seal_all(&g.batcher)
                changed = accounting_wait_room(&g.accounting, seen, min(deadline_us, now + SLICE_US))
            self.waited_us += now_us() - now
            self.look_for_signals()
            if changed:
                return 1
            self.check_usable()
            now = now_us()
        return 0
