"""Messages of a producer that are under way, and what is done for each of them."""

from libc.stdint cimport uint32_t

from dataproxy._core.remoting.link cimport Link, Request
from dataproxy._core.remoting.outgoing cimport Encoded


cdef class Send(Request):
    cdef public Sends _handler
    cdef public str _topic
    cdef public str _id
    cdef public Encoded _content    # None when there is a result
    cdef public Py_ssize_t _count   # of messages
    cdef public Py_ssize_t _size    # bytes of memory
    cdef public double _begun       # seconds of the monotonic clock, as all times here
    cdef public double _deadline    # set when it is accepted
    cdef public double _ended       # when it had its answer
    cdef public long long _number
    cdef public int _attempts
    cdef public int _refusals
    cdef public unsigned long _by   # the thread that sends it, until it is written, or waits for that
    cdef public object _bucket      # of the key, or None
    cdef public object _fixed       # number of the queue that the caller chose, or None
    cdef public object _queue       # of the last attempt, or None
    cdef public str _avoided        # broker of the last attempt
    cdef public str _why            # it has no result
    cdef public bint _batch
    cdef public bint _written       # and no answer is there
    cdef public bint _maybe         # an attempt may have stored it
    cdef public object _result      # SendAnswer, or what was made of it, or DataProxyError; None: there is none
    cdef public object _event       # of who waits for the result, or None
    cdef public list _callbacks     # or None


cdef class Sends:
    cdef public object _lock        # reentrant: a signal handler may close the producer in the middle of a send
    cdef object client
    cdef object connections
    cdef object known               # topic -> route, or None
    cdef object link_to             # address -> Link, or None
    cdef bytes group
    cdef uint32_t generation        # of the process it was made in
    cdef double delivery_timeout
    cdef double request_timeout
    cdef long long buffer_bytes
    cdef long long in_flight
    # The rest is guarded by the lock.
    cdef public long long _last     # number of the last message
    cdef public dict _open          # Send -> None, in the order in which they were accepted
    cdef public dict _counts        # messages by outcome
    cdef public list _flushes
    cdef public long long _bytes
    cdef public bint _awaited       # somebody waits for room, and was not told since
    cdef public bint _looking
    cdef public bint _over
    cdef long long turn
    cdef public dict _unrouted      # topic -> deque of those that wait for its route
    cdef public dict _held          # address -> deque of those that wait for its connection, or their turn
    cdef public dict _away          # brokers that could not be reached, and until when none tries it again

    cdef int take(self, Send delivery, double now) except -1
    cpdef bint _fits(self, Py_ssize_t size)
    cdef bint has_room(self, Link link)
    cdef int write(self, Link link, Send delivery, double now) except -1
    cpdef object _place(self, Send delivery, double now)
    cpdef object _pick(self, Send delivery, route)
    cdef bint avoids(self, Send delivery, route, queue) except -1
    cdef int hold(self, dict place, key, Send delivery) except -1
    cdef int go_on(self, Send delivery, found) except -1
    cpdef int _settle(self, Send delivery, str outcome, result) except -1
    cdef bint count(self, Send delivery, str outcome, result, bint* wakes) except -1
