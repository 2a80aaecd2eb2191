"""Messages of a producer that are under way: what is done for each of them.

What is rare is done by the subclasses in `dataproxy.rocketmq.sending`: routes, connections, refusals, the ends of
messages that are late, waits.

Locality: GIL, any thread.  Locks: ``Sends._lock``, held for a few assignments and for writing a frame.
"""

cimport cython
from collections import deque
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from functools import partial
from libc.string cimport memset

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.plat.clock cimport now_us, wall_ms
from dataproxy._core.plat.pytype cimport untrack
from dataproxy._core.remoting.answers cimport SendAnswer
from dataproxy._core.remoting.link cimport Link, Request, bytes_slice
from dataproxy._core.remoting.outgoing cimport Encoded
from dataproxy._core.wire.rocketmq.send cimport SendRequest

from dataproxy.errors import ClosedError, InvalidMessageError

__all__ = ["NO_QUEUE", "Send", "Sends"]

cdef enum:
    QUEUES = 4                  # of a topic that a send makes
    COST = 512                  # bytes that a message takes beside its body and its properties, as measured

cdef double LOOK_S = 0.25       # between two looks for messages that wait too long

cdef inline double now_s() noexcept:
    """Return seconds of the clock of ``time.monotonic``."""
    return now_us() * 1e-6


NO_QUEUE = object()     #: There is no queue such as a message wants.


@cython.auto_pickle(False)
cdef class Send(Request):
    """A message that is under way, or a batch of ``count``."""

    def __init__(self, str topic not None, Encoded content not None, Py_ssize_t count, Sends handler not None):
        self._topic, self._content, self._count, self._handler = topic, content, count, handler
        self._id = content.id
        self._size = len(content.body) + len(content.properties) + COST
        self._begun = self._deadline = now_s()
        self._avoided = self._why = ""
        untrack(self)   # the tables hold it until it has a result, which holds nothing of a cycle

    def _answered(self, SendAnswer answer not None):
        """Take a broker's answer.  Thread: the one that reads."""
        cdef Sends handler = self._handler
        self._written = False
        if answer.stored:
            self._ended = now_s()
            handler._settle(self, "delivered", answer)
        else:
            handler._refused(self, answer)

    def _lost(self, error):
        """Take the news that there is no answer.  Thread: the one that reads, or that dropped the connection."""
        self._handler.lost(self, error)


@cython.auto_pickle(False)
cdef class Sends:
    """Bring messages to brokers, and count what becomes of them.  ``lock``: a reentrant one."""

    def __init__(self, client, bytes group not None, limits, lock):
        self.client, self.connections, self.known = client, client.connections, client.routes.known
        self.link_to, self.group, self._lock = client.connections.get, group, lock
        self.generation = this_generation
        self.delivery_timeout, self.request_timeout = limits.delivery_timeout, limits.request_timeout
        self.buffer_bytes, self.in_flight = limits.buffer_bytes, limits.in_flight
        self._open, self._unrouted, self._held, self._away = {}, {}, {}, {}
        self._counts = dict.fromkeys(("delivered", "failed", "expired", "twice", "maybe"), 0)
        self._flushes = []

    def accept(self, Send delivery not None):
        """Take a message; waits for room.

        Raises BufferFullError, ClosedError, ForkedError; DataProxyError: the client has failed.  A signal handler may
        run where Python code is called, and close the producer, or raise.
        """
        cdef double now = delivery._begun
        if self._over or self.generation != this_generation:
            self.client.check()
        try:
            while True:
                with self._lock:
                    if self._over or self._fits(delivery._size):
                        self.take(delivery, now)
                        found = self._place(delivery, now)
                        break
                self._wait_for_room(delivery._size, delivery._begun)
                now = now_s()       # the wait for room is not of its time
            self.go_on(delivery, found)
        except BaseException:
            if delivery._by and delivery in self._open:     # it goes on without this thread
                delivery._maybe = delivery._maybe or delivery._written
                self.connections.later(0.0, partial(self.dispatch, delivery))
            raise
        finally:
            delivery._by = 0

    cdef int take(self, Send delivery, double now) except -1:
        """Count a message as accepted.  Needs the lock."""
        delivery._deadline = now + self.delivery_timeout
        self._last += 1
        delivery._number, delivery._by = self._last, PyThread_get_thread_ident()
        self._open[delivery] = True     # from here on it is accepted
        self._bytes += delivery._size
        if self._over and self._open.pop(delivery, False):      # else `give_up` has seen it
            self._bytes -= delivery._size
            self.client.check()
            raise ClosedError("the producer was closed")
        if not self._looking:
            self._looking = True
            self.connections.later(LOOK_S, self._look)
        return 0

    cpdef bint _fits(self, Py_ssize_t size):
        """Return whether there is room for a message of ``size`` bytes."""
        return self._bytes == 0 or self._bytes + size <= self.buffer_bytes

    def dispatch(self, Send delivery not None):
        """Write a message, or let it wait for its route, its connection, or its turn."""
        cdef double now = now_s()
        if now >= delivery._deadline:
            self._expire(delivery)
            return
        with self._lock:
            found = self._place(delivery, now)
        self.go_on(delivery, found)

    cpdef object _place(self, Send delivery, double now):
        """Write a message, or let it wait; return what there is to do then, for `go_on`.  Needs the lock."""
        cdef object route, queue = None
        if delivery._result is not None:
            return None
        route = self.known(delivery._topic)
        if route is not None:
            queue = self._pick(delivery, route)
        if queue is None:
            if route is not None and route.writable:
                return NO_QUEUE
            self.hold(self._unrouted, delivery._topic, delivery)
            return self._find_routes
        address = route.masters[queue.broker_name]      # queues that take messages are those of masters
        delivery._queue = queue
        link = self.link_to(address)
        if link is None or address in self._held or not self.has_room(link):
            self.hold(self._held, address, delivery)
            return self._connect if link is None and address not in self._away else None
        self.write(link, delivery, now)
        return link

    cdef int go_on(self, Send delivery, found) except -1:
        """Do what a message needs to go on.  Without the lock."""
        if type(found) is Link:
            self.connections.push(found)
        elif found is NO_QUEUE:
            self._refuse_queue(delivery)
        elif found is not None:
            self.client.keeper.soon(found)
        return 0

    cpdef object _pick(self, Send delivery, route):
        """Return the queue that a message goes to, None if there is none.  Needs the lock."""
        cdef tuple queues = route.writable
        if delivery._fixed is not None:
            queues = tuple([one for one in queues if one.queue_id == delivery._fixed])
        if not queues:
            return None
        if delivery._bucket is not None:
            return queues[delivery._bucket % len(queues)]
        self.turn += 1
        found = queues[self.turn % len(queues)]
        if self.avoids(delivery, route, found):
            others = [one for one in queues if not self.avoids(delivery, route, one)]
            return others[self.turn % len(others)] if others else found
        return found

    cdef bint avoids(self, Send delivery, route, queue) except -1:
        """Return whether another queue is better: its broker was tried before, or cannot be reached."""
        if not delivery._avoided and not self._away:
            return False
        return queue.broker_name == delivery._avoided or route.masters[queue.broker_name] in self._away

    cdef int hold(self, dict place, key, Send delivery) except -1:
        """Let a message wait.  Needs the lock."""
        waiting = place.get(key)
        if waiting is None:
            waiting = place[key] = deque()
        waiting.append(delivery)
        delivery._by = 0
        return 0

    cdef bint has_room(self, Link link):
        """Return whether another message may be written to a connection."""
        return link.sends < self.in_flight and <long long>link.unsent_bytes() < self.buffer_bytes

    cdef int write(self, Link link, Send delivery, double now) except -1:
        """Write a message to the broker of its queue.  Needs the lock."""
        cdef Encoded content = delivery._content
        cdef SendRequest s
        cdef Py_ssize_t n
        cdef double due = min(now + self.request_timeout, delivery._deadline)
        delivery._attempts += 1
        delivery._written, delivery._avoided, delivery._until = True, delivery._queue.broker_name, due
        memset(&s, 0, sizeof(SendRequest))
        s.topic.p = <const unsigned char*>PyUnicode_AsUTF8AndSize(delivery._topic, &n)
        s.topic.n = <size_t>n
        s.producer_group, s.queue, s.default_queues = bytes_slice(self.group), delivery._queue.queue_id, QUEUES
        s.properties, s.body = bytes_slice(content.properties), bytes_slice(content.body)
        s.sys_flag, s.flag, s.born_ms, s.batch = content.sys_flag, content.flag, wall_ms(), delivery._batch
        s.max_reconsume = -1
        try:
            link.put(delivery, &s)
        except (ClosedError, MemoryError, InvalidMessageError) as error:
            self._unwritten(delivery, error)
            return 0
        delivery._by = 0
        if due < <double>self.connections._due:     # which is lowered after the request is there: none is missed
            self.connections.look_by(due)
        return 0

    def pump(self, address, Link link not None):
        """Write messages that waited for their turn."""
        cdef Send one
        cdef bint wrote = False
        cdef bint full = False
        cdef double now = now_s()
        if address not in self._held:
            return
        with self._lock:
            held = self._held.get(address)
            while held and self.has_room(link):
                one = held.popleft()
                if one._result is None:     # `give_up` may have ended it
                    self.write(link, one, now)
                    wrote = True
            full = bool(held)
            if held is not None and not held:
                del self._held[address]
        if wrote and full:
            self.connections.write(link)    # others wait for their turn: there is nothing to gather
        elif wrote:
            self.connections.push(link)

    cpdef int _settle(self, Send delivery, str outcome, result) except -1:
        """Give a message its result, once, and call who waits for that."""
        cdef bint wakes = False
        with self._lock:
            if not self.count(delivery, outcome, result, &wakes):
                return 0
            if wakes:       # before the callbacks: one may need a lock that a thread has which waits for room
                self._tell()
        return tell_result(delivery)

    def settle_all(self, list found not None):
        """Take the answers of messages that were stored, under one lock; return the other pairs, in their order.

        The pairs are those of `Link.receive`.  Thread: the one that reads.
        """
        cdef list left = []
        cdef list settled = []
        cdef Send one
        cdef bint wakes = False
        cdef double now = now_s()
        with self._lock:
            for request, answer in found:
                if not is_stored(request, answer):
                    left.append((request, answer))
                    continue
                one = request
                one._written, one._ended = False, now
                if self.count(one, "delivered", answer, &wakes):
                    settled.append(one)
            if wakes:
                self._tell()
        for one in settled:
            tell_result(one)
        return left

    cdef bint count(self, Send delivery, str outcome, result, bint* wakes) except -1:
        """Count a result, unless the message has one; ``wakes`` is set if somebody waits for that.  Needs the lock."""
        if not self._open.pop(delivery, False):
            return False
        self._counts[outcome] += delivery._count
        if delivery._maybe:
            self._counts["twice" if outcome == "delivered" else "maybe"] += delivery._count
        self._bytes = self._bytes - delivery._size if self._open else 0
        wakes[0] = wakes[0] or self._awaited
        for one in self._flushes:
            if delivery._number <= one.last and delivery._number not in one.but:
                one.left -= delivery._count
                wakes[0] = wakes[0] or one.left <= 0
        delivery._result = result
        delivery._content = None        # whoever keeps results does not keep bodies
        return True


cdef bint is_stored(request, answer):
    """Tell whether a message was stored, in words of its answer."""
    return type(answer) is SendAnswer and (<SendAnswer>answer).stored and isinstance(request, Send)


cdef int tell_result(Send delivery) except -1:
    """Call who waits for a result that is there.  Without the lock: nobody is added to them any more."""
    callbacks, delivery._callbacks = delivery._callbacks, None
    if delivery._event is not None:
        delivery._event.set()
    if callbacks is not None:
        for callback in callbacks:
            delivery._call(callback)
    return 0
