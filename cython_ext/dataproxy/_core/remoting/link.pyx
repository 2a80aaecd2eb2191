"""One connection of a client: frames are written as they fit, and each answer finds its request.

Locality: GIL.  ``receive`` belongs to the one thread that reads; everything else may be called by any thread.
Locks: none.  While a thread writes without the GIL, ``writing`` keeps others from the bytes that it writes: these put
theirs behind them, and the writer goes on with those.
"""

cimport cython
from libc.errno cimport EAGAIN, EINTR, EPROTO, errno
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memmove, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put_slice, buf_reserve
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport (
    ST_EOF, ST_LIMIT, ST_NEED_DATA, ST_NO_MEMORY, ST_OK, ST_SYSTEM, ST_WANT_READ,
)
from dataproxy._core.plat.socket cimport MSG_NOSIGNAL, SHUT_RDWR, close, recv, send, shutdown
from dataproxy._core.remoting.answers cimport (
    Incoming, answer_of, incoming_of, pull_answer_of, send_answer_of,
)
from dataproxy._core.wire.rocketmq.const cimport (
    CODE_PULL, CODE_SEND_BATCH, CODE_SEND_V2, FLAG_ONE_WAY, FLAG_RESPONSE, FORM_BINARY,
)
from dataproxy._core.wire.rocketmq.frame cimport delimit_frame
from dataproxy._core.wire.rocketmq.header cimport Command, read_command
from dataproxy._core.wire.rocketmq.pull cimport PullRequest, put_pull
from dataproxy._core.wire.rocketmq.send cimport SendRequest, put_send
from dataproxy._core.wire.rocketmq.write cimport CommandWriter, write_begin, write_end, write_field, write_header

from dataproxy.errors import ClosedError, InvalidMessageError, RemoteProtocolError

__all__ = ["Link", "Request"]

cdef enum RequestKind:
    KIND_CALL = 0
    KIND_SEND = 1
    KIND_PULL = 2

cdef enum:
    LANGUAGE_PYTHON = 3
    OWN_VERSION = 407           # a client of 4.9.7: what brokers let it do depends on it
    READ_AT_ONCE = 262144
    KEPT = 1048576              # bytes of a buffer that is kept while it is empty


@cython.auto_pickle(False)
cdef class Request:
    """A request that waits for its answer.  Its subclass says what becomes of it; ``_until``: how long it waits."""


@cython.final
@cython.auto_pickle(False)
cdef class Link:
    """A connection, which is closed with this object.  ``fd``: of a connected socket that does not block.

    ``seal``: for TLS, an object whose ``seal(bytes)`` returns what travels for them, and whose ``open(bytes)`` returns
    what is in bytes that came, or None at the end.
    """

    def __cinit__(self, int fd, seal=None):
        self.fd = fd
        self.seal = seal
        self.requests = {}
        buf_init(&self.waiting)
        buf_init(&self.leaving)
        buf_init(&self.arrived)
        buf_init(&self.scratch)

    def __dealloc__(self):
        if self.fd >= 0:
            close(self.fd)
        buf_free(&self.waiting)
        buf_free(&self.leaving)
        buf_free(&self.arrived)
        buf_free(&self.scratch)

    cdef int check_open(self) except -1:
        """Raise ClosedError after `close`."""
        if self.over:
            raise ClosedError("the connection has ended", retriable=True, fatal=False)
        return 0

    @property
    def closed(self):
        """Return whether it was closed."""
        return self.over

    def fileno(self):
        """Return the descriptor, -1 for a link that is closed."""
        return self.fd

    @property
    def errno(self):
        """Return the system's number of what ended the connection; 0: the server did."""
        return self.error

    @property
    def unsent(self):
        """Return how many bytes the socket has not taken."""
        return self.unsent_bytes()

    cdef size_t unsent_bytes(self) noexcept:
        """Return how many bytes the socket has not taken."""
        return self.waiting.n + self.leaving.n - self.left

    cdef Command head(self, int code, int flag):
        """Return what all commands of a client begin with."""
        cdef Command head
        memset(&head, 0, sizeof(Command))
        head.form, head.code, head.flag = FORM_BINARY, code, flag
        head.language, head.version, head.extended = LANGUAGE_PYTHON, OWN_VERSION, True
        return head

    cdef int32_t number(self, Request request, int kind):
        """Return the number of the next request; ``request`` waits for its answer, unless it is None."""
        self.last = 0 if self.last == 0x7FFFFFFF else self.last + 1
        if request is not None:
            request.kind = kind
            self.requests[self.last] = request
            self.sends += kind == KIND_SEND
        return self.last

    cpdef Request forget(self, int32_t number):
        """Return the request with this number, which waits no more; None: there is none."""
        cdef Request request = self.requests.pop(number, None)
        if request is not None:
            self.sends -= request.kind == KIND_SEND
        return request

    cdef int check(self, int status) except -1:
        """Raise what a frame could not be written for."""
        if status == ST_OK:
            return 0
        self.forget(self.last)
        if status == ST_NO_MEMORY:
            raise MemoryError("no memory for a request")
        if status == ST_LIMIT:
            raise InvalidMessageError("the request is larger than a frame may be (16 MiB)", code="BODY_TOO_LARGE")
        raise InvalidMessageError("a field of the request is too long")

    def call(self, Request request, int code, dict fields not None, bytes body not None):
        """Write a request; without ``request`` it gets no answer.  Raises ClosedError, InvalidMessageError."""
        cdef CommandWriter w
        cdef Command head = self.head(code, FLAG_ONE_WAY if request is None else 0)
        cdef bytes name, value
        self.check_open()
        texts = [(one.encode(), other.encode()) for one, other in fields.items()]
        head.opaque = self.number(request, KIND_CALL)
        write_begin(&w, &self.waiting, &head)
        for name, value in texts:
            write_field(&w, bytes_slice(name), bytes_slice(value))
        write_header(&w)
        if w.status == ST_OK:
            w.status = buf_put_slice(&self.waiting, bytes_slice(body))
        self.check(write_end(&w))

    def answer(self, Incoming incoming not None, int code, str remark not None, bytes body not None):
        """Write the answer to a request of the server, in its form.  Raises ClosedError, InvalidMessageError."""
        cdef CommandWriter w
        cdef Command head = self.head(code, FLAG_RESPONSE)
        cdef bytes text = remark.encode("utf-8", "replace")
        self.check_open()
        head.form, head.opaque, head.remark = incoming.form, incoming.opaque, bytes_slice(text)
        write_begin(&w, &self.waiting, &head)
        write_header(&w)
        if w.status == ST_OK:
            w.status = buf_put_slice(&self.waiting, bytes_slice(body))
        self.check(write_end(&w))

    def send(self, Request request, bytes group not None, bytes topic not None, int queue, bytes properties not None,
             bytes body not None, int sys_flag, int64_t born_ms, int flag, int default_queues, bint batch,
             int attempts, int most_attempts):
        """Write a send; without ``request`` it gets no answer.  Raises ClosedError, InvalidMessageError."""
        cdef SendRequest s
        memset(&s, 0, sizeof(SendRequest))
        s.producer_group, s.topic, s.queue = bytes_slice(group), bytes_slice(topic), queue
        s.default_queues = default_queues
        s.properties, s.body, s.sys_flag, s.born_ms = bytes_slice(properties), bytes_slice(body), sys_flag, born_ms
        s.flag, s.batch, s.reconsume_times, s.max_reconsume = flag, batch, attempts, most_attempts
        self.put(request, &s)

    cdef int put(self, Request request, SendRequest* s) except -1:
        """Write a send, with the template of topics that clients name.  Raises as `send`."""
        cdef Command head
        head = self.head(CODE_SEND_BATCH if s.batch else CODE_SEND_V2, FLAG_ONE_WAY if request is None else 0)
        self.check_open()
        s.default_topic = slice_of(b"TBW102", 6)
        head.opaque = self.number(request, KIND_SEND)
        return self.check(put_send(&self.waiting, &head, s))

    def pull(self, Request request not None, bytes group not None, bytes topic not None, int queue, int64_t offset,
             *, int most, int sys_flag, int64_t commit, int64_t suspend_ms, bytes subscription not None,
             int64_t version, bytes kind not None, str broker not None):
        """Write a pull; ``broker`` is the name that its messages have.  Raises ClosedError, InvalidMessageError."""
        cdef Command head = self.head(CODE_PULL, 0)
        cdef PullRequest p
        self.check_open()
        memset(&p, 0, sizeof(PullRequest))
        p.group, p.topic, p.queue, p.offset, p.most = bytes_slice(group), bytes_slice(topic), queue, offset, most
        p.sys_flag, p.commit_offset, p.suspend_ms, p.sub_version = sys_flag, commit, suspend_ms, version
        p.subscription, p.expression_type = bytes_slice(subscription), bytes_slice(kind)
        request.broker = broker
        head.opaque = self.number(request, KIND_PULL)
        self.check(put_pull(&self.waiting, &head, &p))

    def flush(self):
        """Write what the socket takes; return whether that was all.

        A broken connection takes everything, and `receive` tells its end.
        """
        cdef Py_ssize_t n = 0
        cdef Buf free
        if self.writing:
            return True     # the thread that writes goes on with what is new
        self.writing = True
        while not self.over:
            if self.left == self.leaving.n:
                if self.waiting.n == 0:
                    break
                free = self.leaving
                free.n = 0
                self.leaving, self.waiting, self.left = self.waiting, free, 0
                if self.seal is not None and not self.seal_leaving():
                    break
            with nogil:
                n = send(self.fd, self.leaving.p + self.left, self.leaving.n - self.left, MSG_NOSIGNAL)
            if n >= 0:
                self.left += n
                self.sent_bytes += n
            elif errno == EAGAIN and not self.over:
                self.writing = False
                return False
            elif errno != EINTR:
                self.error = errno
                self.left = self.leaving.n
                self.waiting.n = 0
                break
        self.writing = False
        if self.over:
            self.release()
        if self.leaving.cap > KEPT:
            buf_free(&self.leaving)
        self.leaving.n = self.left = 0
        return True

    cdef bint seal_leaving(self):
        """Put what travels for `leaving` in its place; False: that is not possible, and the connection ends."""
        cdef bytes sealed
        try:
            sealed = self.seal.seal((<const char*>self.leaving.p)[:self.leaving.n])
            self.leaving.n = 0
            if buf_put_slice(&self.leaving, bytes_slice(sealed)) == ST_OK:
                return True
        except (OSError, MemoryError):
            pass
        self.error = EPROTO
        self.left = self.leaving.n
        self.waiting.n = 0
        if self.fd >= 0:
            shutdown(self.fd, SHUT_RDWR)
        return False

    cdef int open_fresh(self) except -1:
        """Put what is in the bytes that have just come in their place; return whether the stream goes on.

        Raises RemoteProtocolError, MemoryError.
        """
        cdef bytes sealed = (<const char*>self.arrived.p + self.arrived.n - self.fresh)[:self.fresh]
        cdef bytes plain
        self.arrived.n -= self.fresh
        found = self.seal.open(sealed)
        if found is None:
            return 0
        plain = found
        if buf_put_slice(&self.arrived, bytes_slice(plain)) != ST_OK:
            raise MemoryError("no memory for what a broker sends")
        return 1

    cdef int read_some(self) noexcept nogil:
        """Read what is there, up to READ_AT_ONCE bytes: ST_OK, ST_WANT_READ, ST_EOF, ST_SYSTEM or ST_NO_MEMORY."""
        cdef Py_ssize_t n
        if self.done:
            memmove(self.arrived.p, self.arrived.p + self.done, self.arrived.n - self.done)
            self.arrived.n -= self.done
            self.done = 0
        if buf_reserve(&self.arrived, READ_AT_ONCE) != ST_OK:
            return ST_NO_MEMORY
        while True:
            n = recv(self.fd, self.arrived.p + self.arrived.n, READ_AT_ONCE, 0)
            if n > 0:
                self.arrived.n += <size_t>n
                self.fresh = <size_t>n
                self.read_bytes += n
                return ST_OK
            if n == 0:
                return ST_EOF
            if errno == EAGAIN:
                return ST_WANT_READ
            if errno != EINTR:
                self.error = errno
                return ST_SYSTEM

    cdef object take(self, Command* command):
        """Return (request, what came) of a frame, None of an answer that nobody waits for."""
        cdef Request request
        if not command.flag & FLAG_RESPONSE:
            return (None, incoming_of(command))
        request = self.forget(command.opaque) if command.numbered else None
        if request is None:
            return None
        try:
            if request.kind == KIND_SEND:
                return (request, send_answer_of(command))
            if request.kind == KIND_PULL:
                return (request, pull_answer_of(command, request.broker))
            return (request, answer_of(command))
        except RemoteProtocolError as error:
            return (request, error)

    def receive(self):
        """Read once; return pairs of a request and its answer, or its RemoteProtocolError, and None for the end.

        A request of the server has None in the place of its request.  None and a RemoteProtocolError are the last pair
        if what came is no frame of this protocol.  Thread: the one that reads.
        """
        cdef Command command
        cdef size_t size = 0
        cdef int status
        cdef list found = []
        if self.over:
            return None
        with nogil:
            status = self.read_some()
        if status == ST_WANT_READ:
            return found
        if status == ST_NO_MEMORY:
            raise MemoryError("no memory for what a broker sends")
        if status != ST_OK or (self.seal is not None and not self.open_fresh()):
            return None
        while True:
            status = delimit_frame(self.arrived.p + self.done, self.arrived.n - self.done, 0, &size)
            if status == ST_NEED_DATA:
                break
            if status == ST_OK:
                self.scratch.n = 0
                status = read_command(self.arrived.p + self.done, size, &self.scratch, &command)
            if status == ST_NO_MEMORY:
                raise MemoryError("no memory for what a broker sends")
            if status != ST_OK:
                text = "what came is no frame of RocketMQ" if status != ST_LIMIT else "a frame is larger than 16 MiB"
                found.append((None, RemoteProtocolError(text)))     # behind the answers that came before it
                break
            pair = self.take(&command)
            self.done += size
            if pair is not None:
                found.append(pair)
        if self.done == self.arrived.n:
            self.done = self.arrived.n = 0
            if self.arrived.cap > KEPT:
                buf_free(&self.arrived)
        return found

    def close(self):
        """Close the connection, and return the requests that wait for answers."""
        cdef dict open = self.requests
        self.over = True
        if self.fd >= 0:
            shutdown(self.fd, SHUT_RDWR)    # a thread that writes ends that, and releases the descriptor
        if not self.writing:
            self.release()
        self.requests = {}
        return list(open.values())

    cdef void release(self) noexcept:
        """Give the descriptor back to the system."""
        if self.fd >= 0:
            close(self.fd)
        self.fd = -1
