"""A network without sockets: one ``Net`` holds every simulated connection, and what is written stays in it until
the simulator has taken it, delayed it, cut it, lost it or brought it to the other side.
"""

from libc.errno cimport EBADF, ECONNREFUSED, EPIPE
from libc.stddef cimport size_t
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memmove

from dataproxy._core.base.buf cimport buf_free, buf_put
from dataproxy._core.base.status cimport ST_EOF, ST_OK, ST_SYSTEM, ST_WANT_READ, ST_WANT_WRITE
from dataproxy._core.base.address cimport Address, address_text
from dataproxy._core.net.transport cimport TransportOptions, transport_init
from dataproxy._core.plat.eventfd cimport EFD_CLOEXEC, eventfd
from dataproxy._core.plat.socket cimport close, iovec

__all__ = ["Net", "set_time"]

cdef int64_t _now
cdef int64_t _wall
cdef Net _net = None    # the one that new connections join; one simulation runs at a time in a process

cdef Clock CLOCK
CLOCK.now_us = _now_us
CLOCK.wall_ms = _wall_ms
CLOCK.boot_us = _now_us

cdef TransportOps OPS
OPS.name = "simulated"
OPS.open = _open
OPS.start = _start
OPS.finish = _finish
OPS.recv = _recv
OPS.send = _send
OPS.held = _held
OPS.end = _end
OPS.close = _close


cdef const TransportOps* sim_transport() noexcept nogil:
    """Return the table of simulated connections."""
    return &OPS


cdef const Clock* sim_clock() noexcept nogil:
    """Return the clock that ``set_time`` moves."""
    return &CLOCK


def set_time(int64_t now_us, int64_t wall_ms):
    """Move the simulated clocks."""
    global _now, _wall
    _now = now_us
    _wall = wall_ms


cdef int64_t _now_us() noexcept nogil:
    return _now


cdef int64_t _wall_ms() noexcept nogil:
    return _wall


cdef int _open(Transport* t, int family, const TransportOptions* options) noexcept nogil:
    # A descriptor of its own, since pollers name connections by it; nothing ever happens on it.
    t.fd = eventfd(0, EFD_CLOEXEC)
    t.error = EBADF
    return ST_OK if t.fd >= 0 else ST_SYSTEM


cdef int _start(Transport* t, const Address* peer) noexcept nogil:
    cdef char text[64]
    cdef Pipe* pipe = <Pipe*>calloc(1, sizeof(Pipe))
    if pipe == NULL:
        return ST_SYSTEM
    pipe.port = address_text(peer, text)
    pipe.ends[0].pipe = pipe
    pipe.ends[1].pipe = pipe
    t.state = &pipe.ends[0]
    with gil:
        _net.join(pipe)
    return ST_WANT_WRITE


cdef int _finish(Transport* t) noexcept nogil:
    cdef End* end = <End*>t.state
    if end.pipe.state == PIPE_NEW:
        return ST_WANT_WRITE
    if end.pipe.state == PIPE_UP:
        return ST_OK
    t.error = end.pipe.error
    return ST_SYSTEM


cdef int _recv(Transport* t, void* p, size_t n, size_t* got) noexcept nogil:
    cdef End* end = <End*>t.state
    cdef size_t have = end.inn.n - end.start
    got[0] = 0
    if have > 0:
        got[0] = have if have < n else n
        memcpy(p, end.inn.p + end.start, got[0])
        end.start += got[0]
        if end.start == end.inn.n:
            end.start = 0
            end.inn.n = 0
        return ST_OK
    if end.broken:
        t.error = end.broken
        return ST_SYSTEM
    return ST_EOF if end.fin else ST_WANT_READ


cdef int _send(Transport* t, const iovec* parts, int n, size_t* sent) noexcept nogil:
    cdef End* end = <End*>t.state
    cdef size_t part
    cdef int i
    sent[0] = 0
    if end.broken:
        t.error = EPIPE
        return ST_SYSTEM
    for i in range(n):
        if end.room <= 0:
            break
        part = parts[i].iov_len
        if part > <size_t>end.room:
            part = <size_t>end.room
        if buf_put(&end.out, parts[i].iov_base, part) != ST_OK:
            return ST_SYSTEM
        end.room -= <int64_t>part
        sent[0] += part
    return ST_OK if sent[0] > 0 else ST_WANT_WRITE


cdef int64_t _held(Transport* t) noexcept nogil:
    cdef End* end = <End*>t.state
    return <int64_t>end.out.n + end.pipe.ends[1 if end == &end.pipe.ends[0] else 0].transit


cdef int _end(Transport* t) noexcept nogil:
    t.error = EBADF
    return ST_SYSTEM                # simulated connections end by `close` alone


cdef void _close(Transport* t) noexcept nogil:
    cdef End* end = <End*>t.state
    if t.fd >= 0:
        close(t.fd)
        t.fd = -1
    if end != NULL:
        end.closed = True


cdef int sim_adopt(Transport* t, Pipe* pipe) except -1:
    """Make ``t`` the server's side of a pipe."""
    transport_init(t, &OPS)
    if _open(t, 0, NULL) != ST_OK:
        raise OSError("no descriptor for a simulated connection")
    t.state = &pipe.ends[1]
    return 0


cdef bint end_readable(const End* end) noexcept nogil:
    """Tell whether a read would give something."""
    return end.inn.n > end.start or end.fin or end.broken != 0


cdef bint end_writable(const End* end) noexcept nogil:
    """Tell whether a write would take something or fail."""
    return end.room > 0 or end.broken != 0


cdef class Net:
    """Every connection of one simulation, by number in the order of connecting; sides: 0 client, 1 server."""

    def __cinit__(self):
        global _net
        _net = self

    def __dealloc__(self):
        cdef int i, k
        for i in range(self.n):
            for k in range(2):
                buf_free(&self.pipes[i].ends[k].out)
                buf_free(&self.pipes[i].ends[k].inn)
            free(self.pipes[i])
        free(self.pipes)

    def leave(self):
        """Release this simulation's objects; no connection can be made afterwards."""
        global _net
        if _net is self:
            _net = None

    cdef int join(self, Pipe* pipe) except -1:
        """Keep a new connection."""
        cdef Pipe** grown
        if self.n == self.cap:
            self.cap = 2 * self.cap if self.cap else 16
            grown = <Pipe**>realloc(self.pipes, <size_t>self.cap * sizeof(Pipe*))
            if grown == NULL:
                raise MemoryError
            self.pipes = grown
        self.pipes[self.n] = pipe
        self.n += 1
        return 0

    cdef Pipe* pipe(self, int index) except NULL:
        """Return the pipe with this number."""
        if not 0 <= index < self.n:
            raise IndexError(index)
        return self.pipes[index]

    def __len__(self):
        """Return the number of connections ever asked for."""
        return self.n

    def dial(self, int64_t window):
        """Make a connection whose client side is the caller's, and return its number."""
        cdef Pipe* pipe = <Pipe*>calloc(1, sizeof(Pipe))
        if pipe == NULL:
            raise MemoryError
        pipe.ends[0].pipe = pipe
        pipe.ends[1].pipe = pipe
        self.join(pipe)
        self.connected(self.n - 1, window, window)
        return self.n - 1

    def port(self, int index):
        """Return the port that the client asked for."""
        return self.pipe(index).port

    def connected(self, int index, int64_t window, int64_t buffer):
        """Say that the handshake is over; each way ``window`` bytes may be under way or unread.

        A socket holds up to ``buffer`` bytes that the other side's host does not have.
        """
        cdef Pipe* p = self.pipe(index)
        p.state = PIPE_UP
        p.window = window
        p.buffer = buffer
        p.ends[0].room = buffer
        p.ends[1].room = buffer

    def failed(self, int index, int error=ECONNREFUSED):
        """Say that the connect failed."""
        cdef Pipe* p = self.pipe(index)
        p.state = PIPE_FAILED
        p.error = error

    def sweep(self):
        """Return (number, side) of each side that wrote something or has closed, and bring the windows up to date.

        A closed side is told once, as (number, side + 2), after what it wrote.
        """
        cdef Pipe* p
        cdef int i, side
        cdef list found = []
        while self.first < self.n and self.pipes[self.first].dead:
            self.first += 1
        for i in range(self.first, self.n):
            p = self.pipes[i]
            if p.dead:
                continue
            for side in range(2):
                if p.ends[side].out.n > 0:
                    found.append((i, side))
                if p.ends[side].closed and not p.ends[side].noted:
                    p.ends[side].noted = True
                    found.append((i, side + 2))
            if p.ends[0].noted and p.ends[1].noted:
                p.dead = True
            elif p.state == PIPE_UP:
                for side in range(2):
                    self.open_window(p, side)
        return found

    cdef void open_window(self, Pipe* p, int side):
        """Set what a side may write."""
        p.ends[side].room = p.buffer - p.ends[1 - side].transit - <int64_t>p.ends[side].out.n

    def dead(self, int index):
        """Tell whether both sides have closed."""
        return bool(self.pipe(index).dead)

    def set_window(self, int index, int64_t window):
        """Change how many bytes may be under way or unread, each way."""
        self.pipe(index).window = window

    def under_way(self, int index, int side, int64_t change):
        """Change how many bytes are on their way to a side; return whether the other one may write again."""
        cdef Pipe* p = self.pipe(index)
        cdef bint full = p.ends[1 - side].room <= 0
        p.ends[side].transit += change
        self.open_window(p, 1 - side)
        return full and p.ends[1 - side].room > 0

    def held(self, int index, int side):
        """Return how many bytes of a side the other side's host does not have."""
        cdef Pipe* p = self.pipe(index)
        return <int64_t>p.ends[side].out.n + p.ends[1 - side].transit

    def open(self, int index, int side):
        """Return how many bytes of a side its peer's window allows to be sent."""
        cdef Pipe* p = self.pipe(index)
        cdef End* other = &p.ends[1 - side]
        return max(0, min(<int64_t>p.ends[side].out.n, p.window - other.transit - <int64_t>(other.inn.n - other.start)))

    def take(self, int index, int side, int64_t most=0x7FFFFFFFFFFFFFFF):
        """Take up to so many bytes of what a side has written."""
        cdef End* end = &self.pipe(index).ends[side]
        cdef size_t n = min(<size_t>most, end.out.n)
        cdef bytes data = end.out.p[:n] if n else b""
        if n < end.out.n:
            memmove(end.out.p, end.out.p + n, end.out.n - n)
        end.out.n -= n
        return data

    def give(self, int index, int side, bytes data not None):
        """Bring bytes to a side, which may have closed meanwhile."""
        cdef End* end = &self.pipe(index).ends[side]
        if not end.closed and not end.broken:
            if buf_put(&end.inn, <const char*>data, <size_t>len(data)) != ST_OK:
                raise MemoryError

    def end(self, int index, int side):
        """Bring the peer's end of stream to a side."""
        self.pipe(index).ends[side].fin = True

    def break_off(self, int index, int side, int error, bint forget=False):
        """Make every call of a side fail; with ``forget`` what it has not read is lost, too."""
        cdef End* end = &self.pipe(index).ends[side]
        end.broken = error
        if forget:
            end.inn.n = 0
            end.start = 0

    def closed(self, int index, int side):
        """Tell whether a side has closed its socket."""
        return bool(self.pipe(index).ends[side].closed)

    def up(self, int index):
        """Tell whether the connection was made."""
        return self.pipe(index).state == PIPE_UP
