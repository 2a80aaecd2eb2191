"""Test access to the hub's session table and topic set."""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK, ST_WANT_WRITE
from dataproxy._core.hub.session cimport (
    Session, SessionTable, session_flush, session_free, session_reply, session_unsent, table_add, table_find,
    table_free, table_init, table_remove, table_touch,
)
from dataproxy._core.hub.topics cimport Topics, topics_add, topics_free, topics_init, topics_known
from dataproxy._core.io.transport cimport transport_adopt


cdef class Sessions:
    """A session table driven from Python; sessions are named by their ids."""

    cdef SessionTable raw

    def __cinit__(self):
        """Make an empty table."""
        table_init(&self.raw)

    def __dealloc__(self):
        """Free every session."""
        table_free(&self.raw)

    def add(self, int fd=-1) -> int:
        """Make a session, on a connected socket if one is given, and return its id."""
        cdef Session* s = table_add(&self.raw, 1024)
        if s == NULL:
            raise MemoryError
        if fd >= 0:
            assert transport_adopt(&s.transport, fd, NULL) == ST_OK
        return s.id

    def remove(self, uint64_t id) -> bool:
        """Remove a session; tell whether it was there."""
        cdef Session* s = table_find(&self.raw, id)
        if s == NULL:
            return False
        table_remove(&self.raw, s)
        session_free(s)
        return True

    def touch(self, uint64_t id, int64_t now_us) -> None:
        """Restart the idle time of a session."""
        table_touch(&self.raw, table_find(&self.raw, id), now_us)

    def reply(self, uint64_t id, bytes data not None) -> int:
        """Append a reply; return the unsent bytes."""
        cdef Session* s = table_find(&self.raw, id)
        assert session_reply(s, slice_of(<char*>data, <size_t>len(data))) == ST_OK
        return session_unsent(s)

    def flush(self, uint64_t id) -> int:
        """Write what the socket takes; return the unsent bytes."""
        cdef Session* s = table_find(&self.raw, id)
        cdef size_t sent = 0
        assert session_flush(s, &sent) in (ST_OK, ST_WANT_WRITE)
        return session_unsent(s)

    def reply_memory(self, uint64_t id) -> int:
        """Return the bytes allocated for replies."""
        return table_find(&self.raw, id).output.cap

    def has(self, uint64_t id) -> bool:
        """Tell whether the id is found."""
        return table_find(&self.raw, id) != NULL

    def idle_order(self) -> list:
        """Return the ids, longest idle first; checks that the list reads the same backwards."""
        cdef Session* s = self.raw.idle_first
        cdef list found = []
        cdef list back = []
        while s != NULL:
            found.append(s.id)
            s = s.idle_next
        s = self.raw.idle_last
        while s != NULL:
            back.append(s.id)
            s = s.idle_prev
        assert back == found[::-1]
        return found

    def __len__(self):
        """Return the number of sessions."""
        return self.raw.count


cdef class TopicSet:
    """A set of topics: group, or (group, stream)."""

    cdef Topics raw

    def __cinit__(self, list topics not None):
        """Build the set."""
        cdef bytes group
        cdef bytes stream
        assert topics_init(&self.raw, <size_t>len(topics)) == ST_OK
        for topic in topics:
            group, stream = (topic, b"") if isinstance(topic, bytes) else topic
            assert topics_add(&self.raw, _slice(group), _slice(stream), isinstance(topic, bytes)) == ST_OK

    def __dealloc__(self):
        """Release the memory."""
        topics_free(&self.raw)

    def known(self, bytes group not None, bytes stream not None) -> bool:
        """Tell whether the set knows this stream."""
        return topics_known(&self.raw, _slice(group), _slice(stream))


cdef Slice _slice(bytes text):
    """Return the bytes as a slice."""
    return slice_of(<char*>text, <size_t>len(text))
