"""Taking connections from the listeners that are open.

Locality: door loop.  Locks: none.
"""

from libc.string cimport strlen

from dataproxy._core.base.status cimport ST_OK, ST_WANT_READ
from dataproxy._core.hub.doorread cimport READ_CHUNK
from dataproxy._core.hub.doorstate cimport LISTENERS_MOST, TAG_LISTENER, close_session
from dataproxy._core.hub.faults cimport POINT_CONNECT
from dataproxy._core.hub.holders cimport holder_name, holders_join
from dataproxy._core.hub.listener cimport FAMILIES, Listener, listener_accept
from dataproxy._core.hub.misbehaviour cimport misbehave_connect
from dataproxy._core.hub.session cimport (
    CLOSE_FAULT, CLOSE_MEMORY, CLOSE_REFUSED, CLOSE_RESET, Session, table_add, table_touch,
)
from dataproxy._core.io.address cimport Address, address_text
from dataproxy._core.io.poller cimport POLL_READ, poller_add, poller_add_fd, poller_remove_fd
from dataproxy._core.io.transport cimport transport_adopt
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.plat.socket cimport close

cdef enum:
    ACCEPT_ROUND = 64           # connections taken in one round
    ACCEPT_PAUSE_US = 100000    # after running out of descriptors


cdef void _watch(Door* d) noexcept nogil:
    """Make the poller watch exactly the open listeners, while connections are taken."""
    cdef Listener* slot
    cdef bint wanted
    cdef int i, family
    for i in range(d.shared.listener_count):
        slot = &d.shared.listeners[i]
        wanted = d.accepting and atomic_load(&slot.shut) == 0
        for family in range(<int>FAMILIES):
            if slot.fds[family] >= 0:
                _watch_one(d, i, family, wanted)


cdef void _watch_one(Door* d, int listener, int family, bint wanted) noexcept nogil:
    """Add one socket of a listener to the poller, or remove it."""
    cdef int fd = d.shared.listeners[listener].fds[family]
    cdef uint64_t bit = <uint64_t>1 << listener
    cdef uint64_t tag = TAG_LISTENER + <uint64_t>(family * <int>LISTENERS_MOST + listener)
    if wanted and not d.watched[family] & bit:
        if poller_add_fd(&d.poller, fd, <void*>tag, POLL_READ) != ST_OK:
            d.accept_again_us = d.now_us + ACCEPT_PAUSE_US
            return
        d.watched[family] |= bit
    elif d.watched[family] & bit and not wanted:
        poller_remove_fd(&d.poller, fd)
        d.watched[family] &= ~bit


cdef void accept_pause(Door* d, int64_t again_us) noexcept nogil:
    """Stop taking connections; ``again_us`` 0 means for good."""
    d.accepting = False
    d.accept_again_us = again_us
    _watch(d)


cdef void accept_resume(Door* d) noexcept nogil:
    """Take connections (again)."""
    d.accepting = True
    d.accept_again_us = 0
    _watch(d)


cdef void accept_follow(Door* d) noexcept nogil:
    """Watch the listeners that are open now, and close the connections of those that were killed.

    Connections that wait already are taken first, because they came before the change.
    """
    cdef Session* following = d.table.idle_first
    cdef uint64_t killed = 0
    cdef int64_t kills
    cdef Session* s
    cdef int i, family
    if d.accepting:
        _watch(d)
    for i in range(d.shared.listener_count):
        for family in range(<int>FAMILIES):
            if d.watched[family] & (<uint64_t>1 << i):
                _accept_from(d, i, family)
    for i in range(d.shared.listener_count):
        kills = atomic_load(&d.shared.listeners[i].kills)
        if kills != d.kills[i]:
            d.kills[i] = kills
            killed |= <uint64_t>1 << i
    while killed and following != NULL:
        s = following
        following = s.idle_next
        if killed & (<uint64_t>1 << s.listener):
            close_session(d, s, CLOSE_FAULT)


cdef void accept_ready(Door* d, uint64_t tag) noexcept nogil:
    """Take the connections that wait at the socket of a tag, up to the bound of a round."""
    cdef int place = <int>(tag - TAG_LISTENER)
    _accept_from(d, place % <int>LISTENERS_MOST, place // <int>LISTENERS_MOST)


cdef void _accept_from(Door* d, int listener, int family) noexcept nogil:
    """Take the connections that wait at one socket."""
    cdef Listener* slot = &d.shared.listeners[listener]
    cdef Address peer
    cdef int fd = -1
    cdef int status
    cdef int taken = 0
    while taken < ACCEPT_ROUND:
        taken += 1
        status = listener_accept(slot, family, &fd, &peer)
        if status == ST_WANT_READ:
            return
        if status != ST_OK:
            if atomic_load(&slot.shut):
                _watch(d)
                return
            # Epoll is level-triggered: without a pause, a connection that cannot be taken wakes the loop all the time.
            relaxed_add(&d.counters.accept_pauses, 1)
            accept_pause(d, d.now_us + ACCEPT_PAUSE_US)
            return
        relaxed_add(&d.counters.accepted, 1)
        if atomic_add(&d.shared.connections, 1) > d.shared.max_connections:
            _turn_away(d, fd, CLOSE_REFUSED)
        else:
            _welcome(d, fd, &peer, listener)


cdef void _turn_away(Door* d, int fd, int reason) noexcept nogil:
    """Close a connection that got no session."""
    atomic_add(&d.shared.connections, -1)
    relaxed_add(&d.counters.closed[reason], 1)
    close(fd)


cdef void _welcome(Door* d, int fd, const Address* peer, int listener) noexcept nogil:
    """Make a session for a new connection."""
    cdef Session* s = table_add(&d.table, d.shared.max_frame + READ_CHUNK)
    if s == NULL:
        _turn_away(d, fd, CLOSE_MEMORY)
        return
    s.holder = holders_join(&d.holders, holder_name(peer))
    table_touch(&d.table, s, d.now_us)
    relaxed_store(&d.sessions, d.table.count)
    address_text(peer, s.source)
    s.source_n = <unsigned char>strlen(s.source)
    s.listener = listener
    s.number = atomic_add(&d.shared.listeners[listener].accepted, 1)
    s.interest = POLL_READ
    if s.holder == NULL:
        transport_adopt(&s.transport, fd, NULL)
        close_session(d, s, CLOSE_MEMORY)
        return
    if (transport_adopt(&s.transport, fd, NULL) != ST_OK
            or poller_add(&d.poller, &s.transport, <void*>s.id, POLL_READ) != ST_OK):
        close_session(d, s, CLOSE_RESET)
        return
    if relaxed_load(&d.shared.faults.armed) & POINT_CONNECT:
        misbehave_connect(d, s)
