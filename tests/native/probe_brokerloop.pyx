"""A server loop of a hub on virtual time: its rounds, its sockets and its store's committer under a test's hand."""

from libc.stdint cimport int64_t
from libc.string cimport strlen

from dataproxy._core.base.address cimport Address, address_parse, address_text
from dataproxy._core.base.status cimport ST_OK, ST_STORE
from dataproxy._core.net.poller cimport POLL_BATCH, POLL_READ, PollEvent, poller_add, poller_wait, wakeup_watch
from dataproxy._core.net.transport cimport transport_adopt
from dataproxy._core.plat.atomic cimport atomic_add
from dataproxy._core.server.committer cimport Committer, committer_step
from dataproxy._core.server.core cimport HubCore
from dataproxy._core.server.entries cimport Entry, StoreOps
from dataproxy._core.server.holders cimport holder_name, holders_join
from dataproxy._core.server.loop cimport TAG_WAKEUP, loop_round, loop_timeout
from dataproxy._core.server.session cimport Session, table_add, table_touch
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.server.store.core cimport StoreCore
from dataproxy._core.server.tubemq.core cimport RegistrationsCore
from dataproxy._core.server.tubemq.fetches cimport fetches_free

__all__ = ["BrokerLoop"]


cdef enum:
    RECEIVE_MOST = 4194304


cdef void _fail(void* store, Entry* chain) noexcept nogil:
    """Append nothing, as a store whose disk fails."""
    while chain != NULL:
        chain.status = ST_STORE
        chain = chain.next


cdef class BrokerLoop:
    """The only loop of a core that is open and serves data; nobody else runs it, or the committer.  Times in us."""

    cdef HubCore core
    cdef StoreCore store
    cdef RegistrationsCore broker
    cdef const StoreOps* kept
    cdef StoreOps failing

    def __init__(self, HubCore core not None, StoreCore store not None, RegistrationsCore broker not None):
        """Begin to play it."""
        cdef ServerLoop* d = &core.loops[0]
        self.core, self.store, self.broker = core, store, broker
        self.kept = store.committer.ops
        self.failing = self.kept[0]
        self.failing.append = _fail
        if wakeup_watch(&d.wakeup, &d.poller, <void*>TAG_WAKEUP) != ST_OK:
            raise OSError("the wake-up cannot be watched")

    def adopt(self, int fd, int64_t now_us):
        """Take the server's end of a connection; the descriptor is the loop's from now on."""
        cdef ServerLoop* d = &self.core.loops[0]
        cdef int listener = self.core.tubemq
        cdef Session* s = table_add(&d.table, RECEIVE_MOST)
        cdef Address peer
        if s == NULL or address_parse(b"127.0.0.1", 1, &peer) != ST_OK:
            raise MemoryError
        atomic_add(&d.shared.connections, 1)
        s.holder = holders_join(&d.holders, holder_name(&peer))
        table_touch(&d.table, s, now_us)
        address_text(&peer, s.source)
        s.source_n = <unsigned char>strlen(s.source)
        s.listener = listener
        s.wire = d.shared.listeners[listener].wire
        s.number = atomic_add(&d.shared.listeners[listener].accepted, 1)
        s.interest = POLL_READ
        if (s.holder == NULL or transport_adopt(&s.transport, fd, NULL) != ST_OK
                or poller_add(&d.poller, &s.transport, <void*>s.id, POLL_READ) != ST_OK):
            raise OSError("the connection cannot be taken")

    def round(self, int64_t now_us, int64_t wall_ms) -> int:
        """Run rounds until nothing is ready; return the time until the next deadline, -1 without one."""
        cdef ServerLoop* d = &self.core.loops[0]
        cdef PollEvent events[POLL_BATCH]
        cdef int n = 1
        d.now_us, d.wall_ms = now_us, wall_ms
        with nogil:
            while n > 0:
                n = poller_wait(&d.poller, events, POLL_BATCH, 0)
                loop_round(d, events, n)
        return loop_timeout(d)

    @property
    def holds(self) -> bool:
        """Tell whether something waits for the committer."""
        return self.store.committer.head != NULL

    def commit(self, bint fails=False) -> None:
        """Commit what waits, or let the disk refuse it."""
        cdef Committer* c = self.store.committer
        c.ops = self.kept
        if fails:
            c.ops = &self.failing
        with nogil:
            while c.head != NULL:
                committer_step(c, 0)
        c.ops = self.kept

    def end(self) -> None:
        """End the loop as a killed process does: what waits for the committer is lost."""
        self.commit(fails=True)
        fetches_free(&self.core.loops[0])
        self.store._informed = None         # they hold each other
        self.store._committer.noticed[0] = self.store._committer.noticed[1] = NULL
        self.broker.store = None
        self.store.close()
