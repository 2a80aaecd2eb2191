"""Notifiers: one reading of a loop's eventfd wakes every task of that loop whose pack is settled.

The tasks are woken inside the loop's reader callback, in the way in which a handle of the loop would wake them.  So
nothing is scheduled for a single message.

Locality: GIL, the thread of the Notifier's loop, unless a docstring says otherwise.  Locks: waits take accounting.lock;
``drain`` and ``close`` take the queue's.
"""

import asyncio
import contextvars
from functools import partial

cimport cython
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int64_t

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.producer.accumulate.batcher cimport batcher_seal_of
from dataproxy._core.producer.results.accounting cimport (
    accounting_await_mark, accounting_await_room, accounting_await_result, accounting_mark,
)
from dataproxy._core.producer.results.fields cimport pack_result_fields
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.aio.loopqueue cimport (
    MARK_ROOM, LoopWait, loopqueue_close, loopqueue_new, loopqueue_poke, loopqueue_put, loopqueue_release,
    loopqueue_take, wait_free, wait_new,
)

from dataproxy.errors import LocalProtocolError, TransportError

__all__ = ["Notifier", "current_notifier", "open_notifiers"]

cdef enum:
    WAKES = 512         # tasks woken before the loop may do its other work

cdef dict _notifiers = {}   # id of a loop -> its open Notifier, which keeps the loop alive; GIL
cdef object _running_loop = asyncio._get_running_loop
cdef WakeFunction wake_waiter = NULL


cdef void set_wake(WakeFunction function):
    """Set the function that wakes a waiter.  Locality: GIL, called once, before the first wait."""
    global wake_waiter
    wake_waiter = function


cdef Notifier notifier_here():
    """Return the Notifier of the running loop, opened on first use.  Locality: GIL, a thread with a running loop.

    Raises LocalProtocolError outside of a loop, TransportError without an eventfd.
    """
    loop = _running_loop()
    if loop is None:
        raise LocalProtocolError(
            "there is no running event loop in this thread",
            hint="call it from a coroutine, or use dataproxy.Producer in plain threads")
    notifier = _notifiers.get(<size_t><void*>loop)
    if notifier is None or (<Notifier>notifier).generation != this_generation:
        for key, other in list(_notifiers.items()):
            if (<Notifier>other).inherited():
                del _notifiers[key]
            elif (<Notifier>other).loop.is_closed():
                (<Notifier>other).close()
        notifier = Notifier(loop)
    return <Notifier>notifier


def current_notifier():
    """Return the running loop's Notifier.  Raises LocalProtocolError outside of a loop."""
    return notifier_here()


def open_notifiers():
    """Return how many loops have an open Notifier.  Any thread."""
    return len(_notifiers)


@cython.final
cdef class Notifier:
    """Wake one event loop when packs are settled that some of its tasks wait for.

    It is open from the first wait on its loop until no producer uses it and nobody waits.
    """

    def __cinit__(self, loop):
        self.loop = loop
        self.done = loop.create_future()
        self.done.set_result(None)
        self.waits = {}
        self.hasty = {}
        self.generation = this_generation
        self.queue = loopqueue_new()
        if self.queue == NULL:
            self.closed = True
            raise TransportError("the kernel gave no eventfd for the event loop", hint="raise the limit of open files")
        _notifiers[<size_t><void*>loop] = self
        try:
            contextvars.Context().run(loop.add_reader, self.queue.fd, self.drain)
        except BaseException:
            self.close()
            raise

    def __dealloc__(self):
        if self.queue != NULL and not self.inherited():
            if not self.closed:
                loopqueue_close(self.queue)
            loopqueue_release(self.queue)

    # --- life

    cdef bint inherited(self):
        """Tell whether it was made before a fork: then its loop and its lock belong to the parent.  Locality: GIL."""
        return self.generation != this_generation

    def acquire(self):
        """Keep it open for one more producer."""
        self.users += 1

    def release(self):
        """Count one producer less; the last one closes the Notifier, unless somebody waits.  Any thread."""
        self.users -= 1
        if self.users or self.closed or self.inherited():
            return
        if self.loop.is_closed():
            self.close()
        elif _running_loop() is self.loop:
            self.close_idle()
        else:
            try:
                self.loop.call_soon_threadsafe(self.close_idle)
            except RuntimeError:        # the loop was closed in between
                self.close()

    def close_idle(self):
        """Close the Notifier if no producer uses it and nobody waits."""
        if not self.users and not self.waits and self.taken == NULL and self.batch is None:
            self.close()

    def close(self):
        """Release the eventfd.  When this is called, no task of an open loop waits any more."""
        cdef LoopWait* w
        if self.closed or self.inherited():
            return
        self.closed = True
        if not self.loop.is_closed():
            self.loop.remove_reader(self.queue.fd)
        loopqueue_close(self.queue)
        self.end_batch()
        while self.taken != NULL:
            w = self.taken
            self.taken = w.next
            wait_free(w)
        self.newest = NULL
        self.newest_waiters = None
        self.waits = {}
        self.hasty = {}
        if _notifiers.get(<size_t><void*>self.loop) is self:
            del _notifiers[<size_t><void*>self.loop]

    # --- waiting

    cdef list waiters_of(self, CoreHandle core, PackResult* v):
        """Return the list of the Waiters of a pack, or None if it is settled.  Raises MemoryError."""
        cdef LoopWait* w
        if v == self.newest:
            return self.newest_waiters
        found = self.waits.get(<size_t>v)
        if found is None:
            w = wait_new(self.queue, v, 0)
            if w == NULL:
                raise MemoryError("no memory for a wait")
            if not accounting_await_result(&core.engine.accounting, w):
                wait_free(w)
                return None
            found = []
            self.waits[<size_t>v] = found
            hasty = self.hasty.get(core)
            if hasty is None:
                self.hasty[core] = hasty = []
                self.loop.call_soon(self.seal_soon, core)
            (<list>hasty).append((<size_t>v, found))
        self.newest = v
        self.newest_waiters = <list>found
        return <list>found

    def seal_soon(self, CoreHandle core):
        """Seal the packs that tasks wait for, after one turn of the loop: then they hold the messages of all tasks.

        If packs are in flight, the seal waits for their results, and the open packs get more messages meanwhile.
        """
        if self.closed or self.inherited():
            return
        if not self.call_on_settled(core, accounting_mark(&core.engine.accounting), partial(self.seal_awaited, core)):
            self.seal_awaited(core)

    def seal_awaited(self, CoreHandle core):
        """Seal the packs that ``seal_soon`` has noted and that are still waited for."""
        cdef PackResult* v
        for key, waiters in self.hasty.pop(core, ()):
            if self.waits.get(key) is waiters:      # its result was not handled yet, so the result still exists
                v = <PackResult*><size_t>key
                with nogil:
                    batcher_seal_of(&core.engine.batcher, v)

    def call_on_room(self, CoreHandle core, int64_t seen, function):
        """Call ``function()`` once when there may be room in the buffer; False if that happened since ``seen``.

        Raises MemoryError.
        """
        cdef LoopWait* w = wait_new(self.queue, NULL, MARK_ROOM)
        if w == NULL:
            raise MemoryError("no memory for a wait")
        self.waits[w.key] = function
        if accounting_await_room(&core.engine.accounting, w, seen):
            return True
        del self.waits[w.key]
        wait_free(w)
        return False

    def call_on_settled(self, CoreHandle core, int64_t mark, function):
        """Call ``function()`` once when all packs up to the serial ``mark`` are settled; False if they are already.

        Raises MemoryError.
        """
        cdef LoopWait* w = wait_new(self.queue, NULL, mark)
        if w == NULL:
            raise MemoryError("no memory for a wait")
        self.waits[w.key] = function
        if accounting_await_mark(&core.engine.accounting, w):
            return True
        del self.waits[w.key]
        wait_free(w)
        return False

    def call_in_turn(self, function):
        """Call ``function()`` once, after all waits that are queued now were handled.  Raises MemoryError."""
        cdef LoopWait* w = wait_new(self.queue, NULL, MARK_ROOM)
        if w == NULL:
            raise MemoryError("no memory for a wait")
        self.waits[w.key] = function
        loopqueue_put(self.queue, w)

    # --- waking

    cdef int next_batch(self) except -1:
        """Begin with the next settled wait; 1, or 0 if there is none."""
        cdef LoopWait* w = self.taken
        if w == NULL:
            return 0
        self.taken = w.next
        found = self.waits.pop(w.key, None)
        if w.pack_result != NULL and w.pack_result == self.newest:
            self.newest = NULL
            self.newest_waiters = None
        self.current = w
        self.at = 0
        if isinstance(found, list):
            self.fields = pack_result_fields(w.pack_result)
            self.batch = <list>found
        else:
            self.fields = None
            self.batch = [] if found is None else [found]
        return 1

    cdef void end_batch(self):
        """End the work on the current wait and release it."""
        if self.current != NULL:
            wait_free(self.current)
            self.current = NULL
        self.batch = None
        self.fields = None

    def drain(self):
        """Wake the tasks whose packs are settled; the reader callback of the loop."""
        self.drained_by = <unsigned long>PyThread_get_thread_ident()
        try:
            self.wake_all()
        finally:
            self.drained_by = 0

    cdef int wake_all(self) except -1:
        """Do the work of ``drain``.  It runs outside of any task."""
        cdef int left = WAKES
        cdef LoopWait* w
        cdef LoopWait* last
        if self.closed or self.inherited():
            return 0
        w = loopqueue_take(self.queue)
        if self.taken == NULL:
            self.taken = w
        elif w != NULL:
            last = self.taken
            while last.next != NULL:
                last = last.next
            last.next = w
        try:
            while self.batch is not None or self.next_batch():
                while self.batch is not None and self.at < len(self.batch):
                    if left == 0:
                        loopqueue_poke(self.queue)      # the loop comes back after its other work
                        return 0
                    left -= 1
                    item = self.batch[self.at]
                    self.batch[self.at] = None      # a finished Waiter is freed at once, and its memory is used again
                    self.at += 1
                    if self.fields is not None:
                        wake_waiter(item)
                    else:
                        item()
                self.end_batch()
        except BaseException:
            if not self.closed:
                loopqueue_poke(self.queue)
            raise
        self.close_idle()
        return 0

    def __repr__(self):
        return f"<Notifier of {self.loop!r}, {len(self.waits)} waits>"
