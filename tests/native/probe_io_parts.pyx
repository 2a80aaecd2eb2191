"""Test access to the small parts of io: load window, in-flight table, states, backoff, classes of codes."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.conn.balance.router cimport backoff_us, load_add, load_average, load_average_by_slot, load_clear
from dataproxy._core.conn.connection cimport InFlight, LoadWindow, connection_change_allowed, connection_state_name
from dataproxy._core.conn.inflight cimport inflight_free, inflight_get, inflight_init, inflight_put, inflight_remove

__all__ = ["Loads", "Table", "backoff", "change_allowed", "state_name"]


cdef class Loads:
    """A load window."""

    cdef LoadWindow window

    def __cinit__(self, samples=()):
        load_clear(&self.window)
        for sample in samples:
            load_add(&self.window, sample)

    def add(self, int load):
        """Take one sample."""
        load_add(&self.window, load)

    def clear(self):
        """Forget all samples."""
        load_clear(&self.window)

    @property
    def by_age(self):
        """Return the average with weights bound to ages."""
        return load_average(&self.window)

    @property
    def by_slot(self):
        """Return the average with weights bound to slots of the ring."""
        return load_average_by_slot(&self.window)


cdef class Table:
    """An in-flight table over packs that this object owns."""

    cdef InFlight table
    cdef list packs

    def __cinit__(self):
        if inflight_init(&self.table) != 0:
            raise MemoryError
        self.packs = []

    def __dealloc__(self):
        inflight_free(&self.table)
        for address in self.packs:
            free(<void*><size_t>address)

    def put(self, uint32_t seq):
        """Add a new pack under ``seq``; return its address."""
        cdef Pack* p = <Pack*>calloc(1, sizeof(Pack))
        if p == NULL:
            raise MemoryError
        p.seq = seq
        self.packs.append(<size_t>p)
        if inflight_put(&self.table, p) != 0:
            raise MemoryError
        return <size_t>p

    def again(self, size_t address):
        """Add the same pack once more."""
        inflight_put(&self.table, <Pack*>address)

    def get(self, uint32_t seq):
        """Return the address of the pack with this number, or None."""
        cdef Pack* p = inflight_get(&self.table, seq)
        return None if p == NULL else <size_t>p

    def remove(self, uint32_t seq):
        """Forget a number."""
        inflight_remove(&self.table, seq)

    def __len__(self):
        return self.table.n


def change_allowed(int before, int after):
    """Tell whether a connection may change its state so."""
    return bool(connection_change_allowed(before, after))


def state_name(int state):
    """Return the name of a connection's state."""
    return (<bytes>connection_state_name(state)).decode()


def backoff(int attempt, int64_t base, int64_t most, uint64_t seed):
    """Return one wait in microseconds."""
    cdef uint64_t random = seed
    return backoff_us(attempt, base, most, &random)
