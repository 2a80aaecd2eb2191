"""Test access to the decisions of the hub's table of faults."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.server.faults.core cimport FaultCore
from dataproxy._core.server.faults.table cimport (
    FaultEvent, FaultTally, FaultWhat, faults_judge, faults_rate, faults_reached, faults_room,
)


cdef class Connection:
    """A connection as the table sees it."""

    cdef FaultTally* tally
    cdef int listener
    cdef int64_t number

    def __cinit__(self, int listener=0, int64_t number=1):
        """Name the connection."""
        self.listener = listener
        self.number = number

    def __dealloc__(self):
        """Release its counters."""
        free(self.tally)

    cdef void _event(self, bytes group, bytes stream, FaultEvent* event):
        """Describe an event."""
        event.listener = self.listener
        event.connection = self.number
        event.group = slice_of(<char*>group, <size_t>len(group))
        event.stream = slice_of(<char*>stream, <size_t>len(stream))
        event.tally = &self.tally

    def judge(self, FaultCore core not None, int point, bytes group=b"g", bytes stream=b"s") -> dict:
        """Let an event happen; return what fires."""
        cdef FaultEvent event
        cdef FaultWhat what
        memset(&what, 0, sizeof(FaultWhat))     # only what belongs to the actions is filled in
        self._event(group, stream, &event)
        if not faults_judge(&core.table, point, &event, &what):
            return {}
        return _shown(&what)

    def room(self, FaultCore core not None, int64_t received) -> int:
        """Return the bytes before the next byte trigger."""
        cdef FaultEvent event
        self._event(b"", b"", &event)
        return faults_room(&core.table, &event, received)

    def reached(self, FaultCore core not None, int64_t received) -> dict:
        """Return what fires at a byte."""
        cdef FaultEvent event
        cdef FaultWhat what
        memset(&what, 0, sizeof(FaultWhat))
        self._event(b"", b"", &event)
        return _shown(&what) if faults_reached(&core.table, &event, received, &what) else {}

    def rate(self, FaultCore core not None) -> int:
        """Return the bytes a second that may be read."""
        cdef FaultEvent event
        self._event(b"", b"", &event)
        return faults_rate(&core.table, &event)


cdef dict _shown(const FaultWhat* what):
    """Return the actions and their parameters."""
    return {
        "actions": what.actions, "code": what.code, "text": what.text[:what.text_n], "stage": what.stage,
        "delay_us": what.delay_us, "copies": what.copies, "garbage": what.garbage[:what.garbage_n],
    }


def armed(FaultCore core not None) -> int:
    """Return the points at which some rule is asked."""
    return core.table.armed
