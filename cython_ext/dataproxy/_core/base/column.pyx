"""Columns in Arrow's memory layout: single values, and runs of repeated values.

Locality: the thread that owns the column.  Locks: none.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_FillInfo
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport buf_free, buf_init, buf_put, buf_reserve
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK

__all__ = ["Bytes", "Memory", "Numbers"]

cdef size_t MOST = 0x7FFFFFFF


cdef int _fine(int status) except -1:
    if status == ST_NO_MEMORY:
        raise MemoryError
    if status != ST_OK:
        raise OverflowError("a column holds more than 2 GiB of text or bytes")
    return 0


cdef void _repeat(uint8_t* p, size_t n, size_t times) noexcept nogil:
    """Copy p[0:n] behind itself until it is there ``times`` times."""
    cdef size_t have = n
    cdef size_t more
    while have < n * times:
        more = min(have, n * times - have)
        memcpy(p + have, p, more)
        have += more


cdef Memory _moved(Buf* buf):
    cdef Memory memory = Memory.__new__(Memory)
    memory.buf = buf[0]
    buf_init(buf)
    return memory


cdef class Memory:
    """Bytes that a column has given away, to read through the buffer protocol; freed with the object."""

    def __init__(self):
        raise TypeError("Memory is what Bytes.take and Numbers.take return")

    def __dealloc__(self):
        buf_free(&self.buf)

    def __getbuffer__(self, Py_buffer* view, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError("the memory of a column is read-only")
        PyBuffer_FillInfo(view, self, self.buf.p if self.buf.n else <uint8_t*>b"", <Py_ssize_t>self.buf.n, 1, flags)


cdef class Bytes:
    """A column of texts or bytes.  One thread at a time."""

    def __cinit__(self):
        buf_init(&self.data)
        buf_init(&self.ends)

    def __dealloc__(self):
        buf_free(&self.data)
        buf_free(&self.ends)

    def __len__(self):
        return <Py_ssize_t>self.count()

    @property
    def nbytes(self):
        """Return the number of bytes of all values."""
        return self.data.n

    cdef size_t count(self) noexcept nogil:
        """Return the number of values."""
        return self.ends.n // sizeof(int32_t) - 1 if self.ends.n else 0

    cdef int put(self, const void* p, size_t n) noexcept nogil:
        """Append one value."""
        cdef int32_t end
        if self.ends.n + 2 * sizeof(int32_t) > self.ends.cap and self._room(1) != ST_OK:
            return ST_NO_MEMORY
        if self.ends.n == 0:
            self._first()
        if n > MOST - self.data.n:
            return ST_LIMIT
        if buf_put(&self.data, p, n) != ST_OK:
            return ST_NO_MEMORY
        end = <int32_t>self.data.n
        memcpy(self.ends.p + self.ends.n, &end, sizeof(end))
        self.ends.n += sizeof(end)
        return ST_OK

    cdef int _room(self, size_t values) noexcept nogil:
        """Make room for the ends of more values, and the first 0."""
        return buf_reserve(&self.ends, (values + 1) * sizeof(int32_t))

    cdef void _first(self) noexcept nogil:
        """Write the 0 before the first end."""
        (<int32_t*>self.ends.p)[0] = 0
        self.ends.n = sizeof(int32_t)

    cdef int _add_again(self, size_t values, size_t size, size_t times) noexcept nogil:
        """Append the last ``values`` values, together ``size`` bytes, ``times`` times more; ST_OK or a failure."""
        cdef size_t start = self.data.n - size
        cdef size_t _i, k
        cdef const int32_t* ends
        cdef int32_t* at
        cdef int32_t moved = 0
        if times > MOST or values * times > MOST or (size and times > (MOST - self.data.n) // size):
            return ST_LIMIT
        if self._room(values * times) != ST_OK or buf_reserve(&self.data, size * times) != ST_OK:
            return ST_NO_MEMORY
        if size:
            _repeat(self.data.p + start, size, times + 1)
        at = <int32_t*>(self.ends.p + self.ends.n)
        ends = at - values
        for _i in range(times):
            moved += <int32_t>size
            for k in range(values):
                at[k] = ends[k] + moved
            at += values
        self.data.n += size * times
        self.ends.n += values * times * sizeof(int32_t)
        return ST_OK

    def add(self, list values not None, size_t times=1):
        """Append all texts ``times`` times.  Raises OverflowError past 2 GiB; do not use the column after that."""
        cdef size_t before = self.data.n
        cdef size_t n = <size_t>len(values)
        cdef bytes raw
        cdef int status
        if times == 0 or n == 0:
            return
        for text in values:
            raw = (<str?>text).encode()
            _fine(self.put(<const char*>raw, <size_t>len(raw)))
        with nogil:
            status = self._add_again(n, self.data.n - before, times - 1)
        _fine(status)

    def take(self):
        """Return (offsets, bytes) in Arrow's layout, each a Memory, and empty the column."""
        if self.ends.n == 0:
            _fine(self._room(0))
            self._first()
        return _moved(&self.ends), _moved(&self.data)


cdef class Numbers:
    """A column of integers of 4 or 8 bytes.  One thread at a time."""

    def __cinit__(self, int width):
        if width != 4 and width != 8:
            raise ValueError(f"integers of {width!r} bytes are not supported; give 4 or 8")
        self.width = width
        buf_init(&self.data)

    def __dealloc__(self):
        buf_free(&self.data)

    def __len__(self):
        return <Py_ssize_t>self.data.n // self.width

    def add(self, int64_t value, size_t times=1):
        """Append a number ``times`` times.  Raises OverflowError if it does not fit into the column's width."""
        cdef size_t size = <size_t>self.width
        cdef uint8_t* p
        if self.width == 4 and value != <int32_t>value:
            raise OverflowError(f"{value!r} does not fit into 4 bytes")
        if times == 0:
            return
        if times > MOST or buf_reserve(&self.data, size * times) != ST_OK:
            raise MemoryError
        with nogil:
            p = self.data.p + self.data.n
            memcpy(p, &value, size)     # little-endian: the low bytes come first
            _repeat(p, size, times)
            self.data.n += size * times

    def count(self, int64_t first, size_t times, int64_t step=1):
        """Append ``first``, ``first + step`` and so on, ``times`` numbers."""
        cdef size_t i
        if times > MOST or buf_reserve(&self.data, <size_t>self.width * times) != ST_OK:
            raise MemoryError
        with nogil:
            for i in range(times):
                if self.width == 4:
                    (<int32_t*>(self.data.p + self.data.n))[i] = <int32_t>(first + <int64_t>i * step)
                else:
                    (<int64_t*>(self.data.p + self.data.n))[i] = first + <int64_t>i * step
            self.data.n += <size_t>self.width * times

    def take(self):
        """Return the numbers in Arrow's layout as a Memory, and empty the column."""
        return _moved(&self.data)
