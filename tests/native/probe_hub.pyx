"""Test access to the hub's session table and topic set."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK, ST_WANT_WRITE
from dataproxy._core.server.holders cimport (
    HOLDS_FRAMES, HOLDING_KINDS, Holder, Holders, Holding, HoldingKind, holder_name, holders_free, holders_init,
    holders_join, holders_leave, holders_payer, holders_set,
)
from dataproxy._core.server.session cimport (
    Answer, Session, SessionTable, answer_free, session_flush, session_free, session_keep, session_next,
    session_reply, session_unsent, table_add, table_find, table_free, table_init, table_remove, table_touch,
)
from dataproxy._core.server.topics cimport Topics, topics_add, topics_free, topics_init, topics_known
from dataproxy._core.base.address cimport Address, address_parse
from dataproxy._core.net.transport cimport transport_adopt


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

    def keep(self, uint64_t id, int64_t place, bytes data not None) -> int:
        """Keep an answer until its turn; return the bytes of memory that kept ones take."""
        cdef Session* s = table_find(&self.raw, id)
        assert session_keep(s, place, slice_of(<char*>data, <size_t>len(data)), NULL) == ST_OK
        return s.waiting_bytes

    def next(self, uint64_t id, int64_t answered) -> object:
        """Return the kept answer that follows place ``answered``, None if it is not there."""
        cdef Session* s = table_find(&self.raw, id)
        cdef Answer* answer
        s.answered = answered
        answer = session_next(s)
        if answer == NULL:
            return None
        data = (<char*>(answer + 1))[:answer.n]
        answer_free(answer)
        return data

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


cdef class _Member:
    cdef Holder* holder
    cdef Holding* holdings


cdef class HolderAccounts:
    """Who holds how much, by session and address; sessions are named by numbers of the caller."""

    cdef Holders raw
    cdef dict members

    def __cinit__(self):
        """Make empty accounts."""
        holders_init(&self.raw)
        self.members = {}

    def __dealloc__(self):
        """Release everything."""
        for member in self.members.values():
            free((<_Member>member).holdings)
        holders_free(&self.raw)

    def join(self, uint64_t session, str address not None):
        """Begin a session from a numeric address."""
        cdef Address peer
        cdef _Member member = _Member()
        cdef int kind
        assert address_parse(address.encode(), 1, &peer) == ST_OK
        member.holder = holders_join(&self.raw, holder_name(&peer))
        member.holdings = <Holding*>calloc(<size_t>HOLDING_KINDS, sizeof(Holding))
        assert member.holder != NULL and member.holdings != NULL
        for kind in range(<int>HOLDING_KINDS):
            member.holdings[kind].session = session
        self.members[session] = member

    def leave(self, uint64_t session):
        """End a session."""
        cdef _Member member = self.members.pop(session)
        cdef int kind
        for kind in range(<int>HOLDING_KINDS):
            holders_set(&self.raw, member.holder, &member.holdings[kind], <HoldingKind>kind, 0, True)
        holders_leave(&self.raw, member.holder)
        free(member.holdings)

    def set(self, uint64_t session, int64_t held, bint progress, int kind=HOLDS_FRAMES):
        """Enter what a session holds."""
        cdef _Member member = self.members[session]
        holders_set(&self.raw, member.holder, &member.holdings[kind], <HoldingKind>kind, held, progress)

    def payer(self, int kind=HOLDS_FRAMES):
        """Return the session that has to pay, None without any."""
        cdef Holding* holding = holders_payer(&self.raw, <HoldingKind>kind)
        return None if holding == NULL else holding.session

    def total(self, int kind=HOLDS_FRAMES):
        """Return what all hold."""
        return self.raw.bytes[kind]

    def addresses(self):
        """Return how many addresses are known."""
        return self.raw.count
