"""Test access to the pieces of base: timers, histogram, buffer, packs and their pool."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport (
    Buf, buf_free, buf_init, buf_put, buf_put_be16, buf_put_be32, buf_put_be64, buf_put_decimal, buf_put_text,
    buf_put_u8, buf_reserve,
)
from dataproxy._core.base.hist cimport Hist, hist_add, hist_percentile, hist_up_to
from dataproxy._core.pack.pack cimport (
    Pack, PackList, PackPool, PackResult, list_pop, list_push, list_remove, pack_fit, pack_room,
    pool_close, pool_count, pool_give, pool_open, pool_take, pack_result_new, pack_result_release,
)
from dataproxy._core.base.rand cimport rand_below
from dataproxy._core.base.status cimport ST_OK, status_name
from dataproxy._core.base.timers cimport (
    Timer, Timers, timer_init, timers_arm, timers_cancel, timers_init, timers_next, timers_pop,
)
from dataproxy._core.plat.atomic cimport atomic_add

__all__ = ["Buffer", "Histogram", "Pool", "TimerHeap", "random_below", "status_text", "pack_result_references"]


cdef class TimerHeap:
    """A heap over 5,000 numbered timers."""

    cdef Timers heap
    cdef Timer[5000] nodes

    def __cinit__(self):
        cdef int i
        timers_init(&self.heap)
        for i in range(5000):
            timer_init(&self.nodes[i], i, NULL)

    def arm(self, int i, int64_t due):
        """Arm or move timer ``i``."""
        timers_arm(&self.heap, &self.nodes[i], due)

    def cancel(self, int i):
        """Disarm timer ``i``."""
        timers_cancel(&self.heap, &self.nodes[i])

    def armed(self, int i):
        """Tell whether timer ``i`` is armed."""
        return bool(self.nodes[i].armed)

    def pop(self, int64_t now):
        """Return (number, due) of the first timer that is due, or None."""
        cdef Timer* node = timers_pop(&self.heap, now)
        return None if node == NULL else (node.kind, node.due_us)

    def next(self):
        """Return when the first timer is due, -1 without one."""
        return timers_next(&self.heap)

    def __len__(self):
        return self.heap.n


cdef class Histogram:
    """A histogram of non-negative integers."""

    cdef Hist hist

    def __cinit__(self):
        memset(&self.hist, 0, sizeof(Hist))

    def add(self, int64_t value, int64_t weight=1):
        """Count a value."""
        hist_add(&self.hist, value, weight)

    def clear(self):
        """Forget all values."""
        memset(&self.hist, 0, sizeof(Hist))

    def percentile(self, double percent):
        """Return the value below which so many lie, -1 when empty."""
        return hist_percentile(&self.hist, percent)

    def up_to(self, int64_t value):
        """Return how many lie at or below a value."""
        return hist_up_to(&self.hist, value)

    def total(self):
        """Return the sum of all values."""
        return self.hist.total

    def __len__(self):
        return self.hist.n


cdef class Buffer:
    """A growing buffer."""

    cdef Buf buf

    def __cinit__(self):
        buf_init(&self.buf)

    def __dealloc__(self):
        buf_free(&self.buf)

    def put(self, bytes data):
        """Append bytes."""
        return buf_put(&self.buf, <const char*>data, <size_t>len(data))

    def text(self, bytes data):
        """Append a NUL-terminated text."""
        return buf_put_text(&self.buf, data)

    def number(self, int bits, uint64_t value):
        """Append a big-endian number of 8, 16, 32 or 64 bits."""
        if bits == 8:
            return buf_put_u8(&self.buf, <uint8_t>value)
        if bits == 16:
            return buf_put_be16(&self.buf, <uint16_t>value)
        if bits == 32:
            return buf_put_be32(&self.buf, <uint32_t>value)
        return buf_put_be64(&self.buf, value)

    def decimal(self, int64_t value):
        """Append a number as text."""
        return buf_put_decimal(&self.buf, value)

    def reserve(self, size_t extra):
        """Make room; return (status, capacity)."""
        cdef int status = buf_reserve(&self.buf, extra)
        return status, self.buf.cap

    def free(self):
        """Release the memory."""
        buf_free(&self.buf)

    def __bytes__(self):
        return self.buf.p[:self.buf.n] if self.buf.n else b""


cdef class Pool:
    """A pack pool, and one list of packs taken from it."""

    cdef PackPool pool
    cdef PackList list

    def __cinit__(self, size_t max_bytes, int64_t most=1 << 40):
        pool_open(&self.pool, max_bytes, most)
        memset(&self.list, 0, sizeof(PackList))

    def __dealloc__(self):
        cdef Pack* p = list_pop(&self.list)
        while p != NULL:
            pool_give(&self.pool, p)
            p = list_pop(&self.list)
        pool_close(&self.pool)

    cdef Pack* find(self, int64_t ident) except NULL:
        """Return the pack with this number."""
        cdef Pack* p = self.list.head
        while p != NULL:
            if <int64_t><uintptr_t>p.stream == ident:
                return p
            p = p.next
        raise KeyError(ident)

    def take(self, int64_t ident, size_t head, size_t cap):
        """Take a pack into the list; return its capacity."""
        cdef Pack* p = pool_take(&self.pool, head, cap)
        if p == NULL:
            raise MemoryError
        assert p.count == 0 and p.body_n == 0 and p.pack_result == NULL and p.conn == -1 and not p.timer.armed
        p.stream = <void*><uintptr_t>ident
        list_push(&self.list, p)
        return p.cap

    def give(self, int64_t ident):
        """Give a pack of the list back."""
        cdef Pack* p = self.find(ident)
        list_remove(&self.list, p)
        pool_give(&self.pool, p)

    def room(self, int64_t ident, size_t extra):
        """Make room in a pack and use it; return its capacity."""
        cdef Pack* p = self.find(ident)
        if pack_room(p, extra) != ST_OK:
            raise MemoryError
        pool_count(&self.pool, p)
        memset(p.buf + p.head + p.body_n, 170, extra)
        p.body_n += extra
        return p.cap

    def order(self):
        """Return the numbers in the list, checked from both ends."""
        cdef Pack* p = self.list.head
        forth, back = [], []
        while p != NULL:
            forth.append(<int64_t><uintptr_t>p.stream)
            p = p.next
        p = self.list.tail
        while p != NULL:
            back.append(<int64_t><uintptr_t>p.stream)
            p = p.prev
        assert forth == back[::-1] and len(forth) == self.list.n
        return forth

    def fit(self, int64_t ident):
        """Let a pack give back what its buffer has beyond its bytes; return its capacity."""
        cdef Pack* p = self.find(ident)
        pack_fit(&self.pool, p, 0)
        return p.cap

    def head(self, int64_t ident):
        """Return the first bytes of a pack."""
        cdef Pack* p = self.find(ident)
        return p.buf[p.head:p.head + min(p.body_n, 16)]

    @property
    def spare_bytes(self):
        """Return the bytes kept for the next packs."""
        return self.pool.spare_bytes

    @property
    def in_use(self):
        """Return the bytes of the packs that were taken."""
        return self.pool.in_use


def pack_result_references():
    """Return how a result's count of references goes: made, shared, released."""
    cdef PackResult* v = pack_result_new()
    counts = [v.refs]
    atomic_add(&v.refs, 1)
    counts.append(v.refs)
    pack_result_release(v)
    counts.append(v.refs)
    pack_result_release(v)
    return counts


def random_below(uint64_t seed, uint64_t n, int times):
    """Return so many random numbers below ``n``."""
    cdef uint64_t state = seed
    return [rand_below(&state, n) for _ in range(times)]


def status_text(int status):
    """Return the name of a status."""
    return (<bytes>status_name(status)).decode()
