"""The table of faults for Python: rules are checked numbers and texts, counters can be read.

Locality: any thread, with the GIL.  Locks: takes the mutex of the table.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.server.faults.table cimport (
    DO_CLOSE, DO_COPIES, DO_CORRUPT, DO_DELAY, DO_FOREIGN, DO_FREEZE, DO_GARBAGE, DO_LOAD, DO_NO_REPLY, DO_REFUSE,
    DO_REVERSE, DO_SLICE, DO_SLOW, FAULT_GARBAGE, FAULT_NAME, FAULT_TEXT, FAULTS_MOST, NUMBER_FAR, NUMBER_NEXT,
    NUMBER_OTHER, NUMBER_PREVIOUS, NUMBER_SETTLED, POINT_BYTES, POINT_CONNECT, POINT_DATA, POINT_HEARTBEAT, FaultRule,
    faults_add, faults_counts, faults_free, faults_init, faults_remove,
)

ACTIONS = {
    "refuse": <int>DO_REFUSE, "no_reply": <int>DO_NO_REPLY, "delay": <int>DO_DELAY, "copies": <int>DO_COPIES,
    "foreign_id": <int>DO_FOREIGN, "reverse": <int>DO_REVERSE, "slice": <int>DO_SLICE, "garbage": <int>DO_GARBAGE,
    "corrupt": <int>DO_CORRUPT, "close": <int>DO_CLOSE, "freeze": <int>DO_FREEZE, "load": <int>DO_LOAD,
    "slow": <int>DO_SLOW,
}
POINTS = {
    "connect": <int>POINT_CONNECT, "data": <int>POINT_DATA, "heartbeat": <int>POINT_HEARTBEAT,
    "bytes": <int>POINT_BYTES,
}
NUMBERS = {
    "far": <int>NUMBER_FAR, "next": <int>NUMBER_NEXT, "previous": <int>NUMBER_PREVIOUS, "other": <int>NUMBER_OTHER,
    "settled": <int>NUMBER_SETTLED,
}
LIMITS = {
    "rules": <int>FAULTS_MOST, "name": <int>FAULT_NAME, "text": <int>FAULT_TEXT, "garbage": <int>FAULT_GARBAGE,
}


cdef class FaultCore:
    """Hold the rules of one hub.  Every method may be called from any thread."""

    def __cinit__(self):
        """Make an empty table."""
        if faults_init(&self.table) != ST_OK:
            raise MemoryError

    def __dealloc__(self):
        """Release the table."""
        faults_free(&self.table)

    def add(self, *, str action not None, int points, int listener=-1, int64_t connection=0, bytes group=None,
            bytes stream=None, bint each=False, int64_t after=0, int64_t every=0, int64_t first=0, int64_t times=0,
            int64_t at_byte=-1, double share=1.0, uint64_t seed=0, int code=0, int load=-1, int copies=1, int batch=0,
            int stage=0, int side=0, bint reset=False, int mask=0, int64_t corrupt_at=0, int64_t delay_us=0,
            int64_t rate=0, int number=0, bytes text=b"", bytes garbage=b"") -> int:
        """Add a rule of checked values and return its id.  Raises OverflowError when the table is full."""
        cdef FaultRule* rule = <FaultRule*>calloc(1, sizeof(FaultRule))
        cdef int64_t id
        if rule == NULL:
            raise MemoryError
        try:
            rule.points = points
            rule.listener = listener
            rule.connection = connection
            rule.has_group = group is not None
            rule.group_n = _copy(rule.group, FAULT_NAME, group)
            rule.has_stream = stream is not None
            rule.stream_n = _copy(rule.stream, FAULT_NAME, stream)
            rule.each = each
            rule.after = after
            rule.every = every
            rule.first = first
            rule.times = times
            rule.at_byte = at_byte
            rule.share = max(<uint64_t>(share * 18446744073709551615.0), 1) if share < 1.0 else 0
            rule.random = _spread(seed)
            rule.what.actions = ACTIONS[action]
            rule.what.code = code
            rule.what.load = load
            rule.what.copies = copies
            rule.what.batch = batch
            rule.what.stage = stage
            rule.what.side = side
            rule.what.reset = reset
            rule.what.mask = <uint8_t>mask
            rule.what.corrupt_at = corrupt_at
            rule.what.delay_us = delay_us
            rule.what.rate = rate
            rule.what.number = number
            rule.what.text_n = _copy(<uint8_t*>rule.what.text, FAULT_TEXT, text)
            rule.what.garbage_n = _copy(rule.what.garbage, FAULT_GARBAGE, garbage)
            with nogil:
                id = faults_add(&self.table, rule)
        finally:
            free(rule)
        if id == -2:
            raise MemoryError
        if id < 0:
            raise OverflowError(f"the table of faults is full ({<int>FAULTS_MOST} rules)")
        return id

    def remove(self, int64_t id) -> tuple:
        """Remove a rule and return its last counts as ``counts`` does.  Raises KeyError if it is not in the table."""
        cdef int64_t seen = 0
        cdef int64_t fired = 0
        cdef bint found
        with nogil:
            found = faults_remove(&self.table, id, &seen, &fired)
        if not found:
            raise KeyError(id)
        return seen, fired

    def counts(self, int64_t id) -> tuple:
        """Return (events that matched, times fired) of a rule.  Raises KeyError when it is not in the table."""
        cdef int64_t seen = 0
        cdef int64_t fired = 0
        cdef bint found
        with nogil:
            found = faults_counts(&self.table, id, &seen, &fired)
        if not found:
            raise KeyError(id)
        return seen, fired


cdef size_t _copy(uint8_t* to, size_t room, bytes text) except? 0:
    """Copy a text that has to fit and return its length."""
    cdef size_t n = 0 if text is None else <size_t>len(text)
    if n > room:
        raise ValueError(f"{n} bytes do not fit: at most {room} are allowed")
    if n > 0:
        memcpy(to, <const char*>text, n)
    return n


cdef uint64_t _spread(uint64_t seed) noexcept:
    """Return a generator's state for a seed; neighbours get far states (splitmix64, Steele et al. 2014)."""
    cdef uint64_t x = seed + <uint64_t>0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    x ^= x >> 31
    return x if x else 1
