"""Life of the links of one executor: endpoints, connects, losses, heartbeats, deadlines.

Every function takes the time as an argument and asks for socket work through ``Link.flags``.

Locks: none.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset, strcmp

from dataproxy._core.base.buf cimport buf_free
from dataproxy._core.pack.pack cimport (
    OUT_EXPIRED, OUT_FAILED, PK_BACKOFF, PK_IN_FLIGHT, PK_QUEUED, PK_SETTLED, PK_TAKEN, PK_WAITING, Pack, PackList,
    pack_state_name,
)
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.base.timers cimport (
    Timer, timer_init, timers_arm, timers_cancel, timers_free, timers_init, timers_pop,
)
from dataproxy._core.base.address cimport Address
from dataproxy._core.conn.router cimport backoff_us, budget_open, doubts_of, load_clear, proxy_doubt, proxy_doubted
from dataproxy._core.conn.heartbeat cimport heartbeat_due, link_silent
from dataproxy._core.conn.inflight cimport inflight_free, inflight_init
from dataproxy._core.conn.keyqueues cimport key_queue_enter, key_queues_abort
from dataproxy._core.conn.connection cimport (
    LC_ACK_TIMEOUT, LC_CONNECTION_LOST, LC_TIMEOUT, LE_CONNECTED, LE_CONNECT_FAILED, LE_DEAF, LE_LOST, LE_SILENT,
    LE_STATE, LF_CLOSE, LF_CONNECT, LF_LOOK, LOAD_STOPPED, LOAD_UNKNOWN, LS_ACTIVE, LS_BACKOFF, LS_CLOSED,
    LS_CONNECTING, LS_IDLE, TK_LINK, Doubt, Endpoint, EventSink, Link, LinkConfig, LinkPool, link_change_allowed,
    link_state_name,
)
from dataproxy._core.conn.progress cimport look_every_us, progress_begin, progress_look, progress_stalled
from dataproxy._core.conn.retry cimport retry_due, retry_expired, retry_unanswered, route, route_waiting
from dataproxy._core.conn.sendq cimport mark_dirty
from dataproxy._core.conn.settle cimport detach, settle_delivered, settle_failed
from dataproxy._core.plat.assertion cimport DP_CHECKED, dp_assert
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.wire.api cimport WireOps


cdef enum:
    SMALL_FRAME = 65536     # bytes of a frame that every server accepts
    CHECKED_PACKS = 256     # of one list, where a debug build looks at all lists in each round


cdef int links_open(
    LinkPool* pool, const WireOps* wire, const LinkConfig* config, EventSink event, void* context,
) noexcept nogil:
    """Make an empty pool; ST_OK or ST_NO_MEMORY.  Locality: the executor's creator."""
    memset(pool, 0, sizeof(LinkPool))
    pool.wire = wire
    memcpy(&pool.config, config, sizeof(LinkConfig))
    pool.event = event
    pool.event_context = context
    pool.reach = -1
    timers_init(&pool.timers)
    budget_open(&pool.budget, config.retry_share)
    return inflight_init(&pool.in_flight)


cdef void links_free(LinkPool* pool) noexcept nogil:
    """Release the pool; no pack may be in it.  Locality: any thread, after the executor ended."""
    cdef int i
    for i in range(pool.n_links):
        buf_free(&pool.links[i].control)
        free(pool.links[i])
    free(pool.links)
    free(pool.active)
    free(pool.endpoints)
    free(pool.doubts)
    inflight_free(&pool.in_flight)
    timers_free(&pool.timers)
    memset(pool, 0, sizeof(LinkPool))


cdef void _activate(LinkPool* pool, Link* link) noexcept nogil:
    if link.active_slot < 0:
        link.active_slot = pool.n_active
        pool.active[pool.n_active] = link
        pool.n_active += 1


cdef void _deactivate(LinkPool* pool, Link* link) noexcept nogil:
    cdef Link* last
    if link.active_slot >= 0:
        pool.n_active -= 1
        last = pool.active[pool.n_active]
        pool.active[link.active_slot] = last
        last.active_slot = link.active_slot
        link.active_slot = -1


cdef void link_enter(LinkPool* pool, Link* link, int state) noexcept nogil:
    """Change the state of a link; nothing else writes ``Link.state``.  Locality: executor.

    An illegal change is not made, and reported: the link keeps what belongs to its state, such as its socket.
    """
    cdef char text[64]
    cdef int n
    if not link_change_allowed(link.state, state):
        dp_assert(False, "the change of state is legal: connection %d goes from %s to %s",
                  link.index, link_state_name(link.state), link_state_name(state))
        n = snprintf(text, sizeof(text), "from %s to %s", link_state_name(link.state), link_state_name(state))
        pool.event(pool.event_context, LE_STATE, link.peer.label, 0, slice_of(text, <size_t>n))
        return
    if state == LS_ACTIVE:
        _activate(pool, link)
    else:
        _deactivate(pool, link)
    link.state = state
    relaxed_store(&link.counters.state, state)
    if state != LS_ACTIVE:
        relaxed_store(&link.counters.load, LOAD_STOPPED)


cdef int _users(const LinkPool* pool, int endpoint, const Link* but) noexcept nogil:
    cdef int i, n = 0
    for i in range(pool.n_links):
        if pool.links[i].endpoint == endpoint and pool.links[i] != but:
            n += 1
    return n


cdef int _pick_endpoint(LinkPool* pool, const Link* link) noexcept nogil:
    """Return the endpoint for the next connect of ``link``.

    A proxy that no link uses is preferred.  Otherwise the link stays with its proxy as long as other links of the
    pool work, so that a proxy that returns is used again.  If no link works, it goes on to the next proxy.
    """
    cdef int i, at, best = -1, fewest = 0, users
    for i in range(pool.n_endpoints):
        at = (pool.next_endpoint + i) % pool.n_endpoints
        if at == link.endpoint and pool.n_endpoints > 1:
            continue
        users = _users(pool, at, link)
        if best < 0 or users < fewest:
            best = at
            fewest = users
    if fewest > 0 and link.endpoint >= 0 and pool.n_active > 0:
        return link.endpoint
    pool.next_endpoint = (best + 1) % pool.n_endpoints
    return best


cdef void _start_connect(LinkPool* pool, Link* link, int endpoint, int64_t now_us) noexcept nogil:
    link.endpoint = endpoint
    memcpy(&link.peer, &pool.endpoints[endpoint], sizeof(Endpoint))
    link.retired = False
    link.connect_deadline_us = now_us + pool.config.connect_timeout_us
    link_enter(pool, link, LS_CONNECTING)
    timers_arm(&pool.timers, &link.timer, link.connect_deadline_us)
    relaxed_add(&link.counters.connects, 1)
    mark_dirty(pool, link, LF_CONNECT)


cdef void _turn_endpoint(LinkPool* pool, const Link* link) noexcept nogil:
    """Let the next connect to a proxy that ``link`` could not reach try its other address.

    The choice of the address is stored for the proxy, so a link that later returns to the proxy tries the other one.
    """
    cdef Endpoint* one
    cdef Address address
    cdef int family
    if link.endpoint < 0 or pool.endpoints[link.endpoint].other_family == 0:
        return
    one = &pool.endpoints[link.endpoint]
    if memcmp(&one.address, &link.peer.address, sizeof(Address)) != 0:
        return                          # another link has changed it already
    memcpy(&address, &one.address, sizeof(Address))
    family = one.family
    memcpy(&one.address, &one.other, sizeof(Address))
    one.family = one.other_family
    memcpy(&one.other, &address, sizeof(Address))
    one.other_family = family


cdef Link* _new_link(LinkPool* pool) noexcept nogil:
    cdef Link* link = <Link*>calloc(1, sizeof(Link))
    cdef Link** links = <Link**>realloc(pool.links, <size_t>(pool.n_links + 1) * sizeof(Link*))
    cdef Link** active
    if links != NULL:
        pool.links = links
    active = <Link**>realloc(pool.active, <size_t>(pool.n_links + 1) * sizeof(Link*))
    if active != NULL:
        pool.active = active
    if link == NULL or links == NULL or active == NULL:
        free(link)
        return NULL
    link.index = pool.n_links
    link.state = LS_IDLE
    link.active_slot = -1
    link.endpoint = -1
    link.counters.load = LOAD_UNKNOWN
    timer_init(&link.timer, TK_LINK, link)
    load_clear(&link.load)
    pool.links[pool.n_links] = link
    pool.n_links += 1
    return link


cdef int _find_endpoint(const LinkPool* pool, const char* label) noexcept nogil:
    cdef int i
    for i in range(pool.n_endpoints):
        if strcmp(pool.endpoints[i].label, label) == 0:
            return i
    return -1


cdef int links_endpoints(
    LinkPool* pool, const Endpoint* list, int n, int links, int offset, int64_t now_us,
) noexcept nogil:
    """Take a new proxy list and the number of links wanted; ST_OK or ST_NO_MEMORY (nothing changed).

    Locality: executor.  A link whose proxy is still listed is not changed.  A link whose proxy left the list takes no
    new frames, and is closed when no frame waits on it.  ``offset`` makes several executors begin at different proxies.
    """
    cdef Endpoint* copy = <Endpoint*>malloc(<size_t>n * sizeof(Endpoint))
    cdef Doubt* doubts = doubts_of(pool, list, n)
    cdef Link* link
    cdef int i
    if copy == NULL or doubts == NULL:
        free(copy)
        free(doubts)
        return ST_NO_MEMORY
    memcpy(copy, list, <size_t>n * sizeof(Endpoint))
    free(pool.endpoints)
    free(pool.doubts)
    pool.endpoints = copy
    pool.doubts = doubts
    pool.n_endpoints = n
    pool.next_endpoint = offset % n
    for i in range(pool.n_links):
        link = pool.links[i]
        if link.state == LS_IDLE:
            continue
        link.endpoint = _find_endpoint(pool, link.peer.label)
        if link.endpoint < 0:
            link.retired = True
            _retire(pool, link)
        else:
            link.retired = False
            if link.state == LS_ACTIVE:
                _activate(pool, link)
    route_waiting(pool, now_us)         # a link that was being closed takes frames again if its proxy came back
    for i in range(pool.n_links):
        link = pool.links[i]
        if link.state == LS_IDLE and _busy_links(pool) < links:
            _start_connect(pool, link, _pick_endpoint(pool, link), now_us)
    while _busy_links(pool) < links:        # a retired link keeps its slot until its frames have results
        link = _new_link(pool)
        if link == NULL:
            return ST_NO_MEMORY if pool.n_links == 0 else ST_OK
        _start_connect(pool, link, _pick_endpoint(pool, link), now_us)
    return ST_OK


cdef int _busy_links(const LinkPool* pool) noexcept nogil:
    cdef int i, n = 0
    for i in range(pool.n_links):
        if pool.links[i].state != LS_IDLE and not pool.links[i].retired:
            n += 1
    return n


cdef void _retire(LinkPool* pool, Link* link) noexcept nogil:
    """Stop using a link whose proxy left the list; its frames may still be answered."""
    _deactivate(pool, link)             # no new frames
    if link.queue.head == NULL and link.flight.head == NULL:
        mark_dirty(pool, link, LF_CLOSE)
    # else its timer is armed for ack_timeout at most: then it closes if no frame is left


cdef void links_submit(LinkPool* pool, Pack* p, int64_t now_us) noexcept nogil:
    """Take a sealed, framed pack; its result comes through ``pool.settled``.  Locality: executor."""
    dp_assert(p.state == PK_TAKEN, "a pack that is submitted is in no list: state=%s, seq=%u",
              pack_state_name(p.state), p.seq)
    if p.deadline_us <= now_us:
        settle_failed(pool, p, OUT_EXPIRED, LC_TIMEOUT)
        return
    timers_arm(&pool.timers, &p.timer, p.deadline_us)
    if p.key_queue == NULL or key_queue_enter(pool, p):
        route(pool, p, now_us)


cdef void links_connected(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil:
    """Begin to use a link whose connect succeeded.  Locality: executor."""
    cdef bint doubted = proxy_doubted(pool, link)
    dp_assert(link.state == LS_CONNECTING, "a connection that was made was connecting: state=%s, link=%d",
              link_state_name(link.state), link.index)
    load_clear(&link.load)
    link.head_sent = 0
    link.control.n = 0
    link.control_sent = 0
    link.unanswered = 0
    link.avoid_until_us = 0
    if doubted:
        proxy_doubt(pool, link.peer.label, now_us)      # the time of the doubt begins now that the proxy can be asked
    link.last_read_us = now_us
    link.owed = 0
    link.reason_code = 0
    link.heartbeat_at_us = now_us if doubted else now_us + pool.config.heartbeat_us
    progress_begin(pool, link, now_us)
    link_enter(pool, link, LS_ACTIVE)
    relaxed_store(&link.counters.load, LOAD_UNKNOWN)
    relaxed_store(&link.counters.unanswered, 0)
    _arm(pool, link, now_us)
    pool.event(pool.event_context, LE_CONNECTED, link.peer.label, 0, slice_of(NULL, 0))
    route_waiting(pool, now_us)


cdef void _give_back(LinkPool* pool, Link* link, int code, int64_t now_us) noexcept nogil:
    """Route all frames of a lost link again, in order: unanswered ones first, then unwritten ones.

    ``code`` is the reason for the loss: whether this side closed a silent connection, or the connection broke.
    """
    cdef Pack* p
    cdef int64_t n = link.flight.n
    link.head_sent = 0
    while n > 0:
        n -= 1
        p = link.flight.head
        if now_us >= p.deadline_us:
            retry_expired(pool, p)
        else:
            retry_unanswered(pool, p, code, now_us)
    n = link.queue.n
    while n > 0:
        n -= 1
        p = link.queue.head
        if p.answered:
            settle_delivered(pool, p)
        elif now_us >= p.deadline_us:
            retry_expired(pool, p)
        else:
            detach(pool, p)
            p.code = code
            route(pool, p, now_us)
    dp_assert(link.queue.n == 0 and link.flight.n == 0, "a lost connection has no frames: queue.n=%ld, flight.n=%ld",
              link.queue.n, link.flight.n)
    dp_assert(link.queue_bytes == 0 and link.flight_bytes == 0,
              "a lost connection has no bytes: queue_bytes=%ld, flight_bytes=%ld", link.queue_bytes, link.flight_bytes)


cdef void _doubt(LinkPool* pool, const Link* link, int64_t now_us) noexcept nogil:
    """Avoid the proxy of a silent link until it sends something; the other links to it send a heartbeat at once.

    A link whose last heartbeat has no answer yet sends none.
    """
    cdef Link* other
    cdef int i
    proxy_doubt(pool, link.peer.label, now_us)
    for i in range(pool.n_links):
        other = pool.links[i]
        if other == link or other.state != LS_ACTIVE or strcmp(other.peer.label, link.peer.label) != 0:
            continue
        if other.unanswered == 0:
            other.heartbeat_at_us = now_us
            _arm(pool, other, now_us)


cdef Slice _large_frame(const Link* link, int event, char* text, size_t room) noexcept nogil:
    """Return a text for a large frame that was unanswered when the peer closed: the peer's limit may be smaller."""
    cdef const Pack* p = link.flight.head
    cdef size_t largest = 0
    cdef int n
    if event != LE_LOST:
        return slice_of(NULL, 0)
    while p != NULL:
        largest = max(largest, p.frame_n)
        p = p.next
    if link.head_sent > 0 and link.queue.head != NULL:
        largest = max(largest, link.queue.head.frame_n)
    if largest <= SMALL_FRAME:
        return slice_of(NULL, 0)
    n = snprintf(text, room, "a frame of %zu bytes", largest)
    return slice_of(text, <size_t>n)


cdef void links_lost(LinkPool* pool, Link* link, int event, int detail, int64_t now_us) noexcept nogil:
    """Act on a failed connect or a lost connection; the executor has closed the socket.

    Locality: executor.  The link connects again after a backoff: to a proxy that no link uses, else to its own as long
    as other links of the pool work, else to the next of the list.  If a proxy could not be reached, its other address
    is tried next.
    """
    cdef char text[48]
    if link.state == LS_IDLE or link.state == LS_CLOSED:
        return
    if link.state == LS_BACKOFF and not link.retired and not pool.closing:
        return                  # it has no connection, and its proxy left the list and came back before it was closed
    link.flags = 0
    link.close_event = 0
    link.close_detail = 0
    relaxed_add(&link.counters.losses, 1)
    timers_cancel(&pool.timers, &link.timer)
    if event:
        pool.event(pool.event_context, event, link.peer.label, detail, _large_frame(link, event, text, sizeof(text)))
    link.failures += 1
    if link.state == LS_CONNECTING:
        _turn_endpoint(pool, link)
    if event == LE_SILENT or event == LE_DEAF:
        _doubt(pool, link, now_us)
    if link.retired or pool.closing:
        link_enter(pool, link, LS_IDLE)
        link.endpoint = -1
    else:
        link_enter(pool, link, LS_BACKOFF)
        link.reconnect_at_us = now_us + backoff_us(
            link.failures, pool.config.reconnect_backoff_us, pool.config.reconnect_backoff_max_us, &pool.random)
        timers_arm(&pool.timers, &link.timer, link.reconnect_at_us)
    _give_back(pool, link, LC_ACK_TIMEOUT if event == LE_SILENT else LC_CONNECTION_LOST, now_us)
    relaxed_store(&link.counters.waiting, 0)
    relaxed_store(&link.counters.in_flight, 0)


cdef void _arm(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil:
    """Arm an active link's timer for the earliest time at which something must be checked."""
    cdef int64_t due = now_us + (look_every_us(&pool.config) if link.waits else pool.config.ack_timeout_us)
    if link.waits and link.moved_us + pool.config.ack_timeout_us < due:
        due = link.moved_us + pool.config.ack_timeout_us
    if pool.config.heartbeat_us and link.heartbeat_at_us < due:
        due = link.heartbeat_at_us
    if link.flight.head != NULL and link.flight.head.sent_us + pool.config.ack_timeout_us < due:
        due = link.flight.head.sent_us + pool.config.ack_timeout_us
    timers_arm(&pool.timers, &link.timer, due if due > now_us else now_us + 1000)


cdef void _ack_timeouts(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil:
    cdef Pack* p
    cdef int64_t oldest = now_us - pool.config.ack_timeout_us
    if progress_stalled(pool, link, now_us):
        link_silent(pool, link, LE_SILENT)
        return
    while link.flight.head != NULL and link.flight.head.sent_us <= oldest:
        p = link.flight.head
        if link.last_read_us <= p.sent_us:
            # Nothing was received since the proxy had to answer: the connection is treated as lost.
            link_silent(pool, link, LE_SILENT)
            return
        retry_unanswered(pool, p, LC_ACK_TIMEOUT, now_us)


cdef void _check_list(const PackList* packs, int state, int link, int64_t bytes) noexcept nogil:
    """Check that a list is whole, that its packs are in ``state`` and on ``link``, and that their frames are ``bytes``.

    ``link``: -1 for a list of no link; then ``bytes`` is not compared.
    """
    cdef const Pack* p = packs.head
    cdef const Pack* before = NULL
    cdef int64_t n = 0, sum = 0
    while p != NULL and n < CHECKED_PACKS:
        dp_assert(p.prev == before, "a pack knows its neighbour: seq=%u, place %ld of %ld", p.seq, n, packs.n)
        dp_assert(p.state == state, "a pack's state names its list: seq=%u is %s in the list of packs that are %s",
                  p.seq, pack_state_name(p.state), pack_state_name(state))
        dp_assert(link < 0 or p.link == link, "a pack names its connection: seq=%u, link=%d, not %d",
                  p.seq, p.link, link)
        sum += <int64_t>p.frame_n
        n += 1
        before = p
        p = p.next
    if p != NULL:
        return                          # the rest is looked at when the list is shorter
    dp_assert(n == packs.n and packs.tail == before, "a list holds what it counts: %ld packs, n=%ld", n, packs.n)
    dp_assert(link < 0 or sum == bytes, "a list's bytes are those of its frames: %ld bytes, sum=%ld", bytes, sum)


cdef void _check(const LinkPool* pool) noexcept nogil:
    """Compare lists, states and counters of a pool with each other.  Locality: executor."""
    cdef const Link* link
    cdef int64_t flight_bytes = 0
    cdef int i
    _check_list(&pool.waiting, PK_WAITING, -1, 0)
    _check_list(&pool.backoff, PK_BACKOFF, -1, 0)
    _check_list(&pool.settled, PK_SETTLED, -1, 0)
    for i in range(pool.n_links):
        link = pool.links[i]
        dp_assert(link.state == LS_ACTIVE or (link.queue.n == 0 and link.flight.n == 0 and link.active_slot < 0),
                  "frames are on an active connection: state=%s, queue.n=%ld, flight.n=%ld, active_slot=%d",
                  link_state_name(link.state), link.queue.n, link.flight.n, link.active_slot)
        dp_assert(link.active_slot < 0 or pool.active[link.active_slot] == link,
                  "active_slot names the connection: active_slot=%d, link=%d", link.active_slot, link.index)
        dp_assert(link.queue.head == NULL or link.head_sent < link.queue.head.frame_n,
                  "head_sent < frame_n: head_sent=%zu, frame_n=%zu", link.head_sent, link.queue.head.frame_n)
        dp_assert(relaxed_load(&link.counters.waiting) == link.queue.n, "waiting = queue.n: waiting=%ld, queue.n=%ld",
                  link.counters.waiting, link.queue.n)
        dp_assert(relaxed_load(&link.counters.in_flight) == link.flight.n,
                  "in_flight = flight.n: in_flight=%ld, flight.n=%ld", link.counters.in_flight, link.flight.n)
        _check_list(&link.queue, PK_QUEUED, link.index, link.queue_bytes)
        _check_list(&link.flight, PK_IN_FLIGHT, link.index, link.flight_bytes)
        flight_bytes += link.flight_bytes
    dp_assert(relaxed_load(&pool.flight_bytes) == flight_bytes,
              "flight_bytes is the sum of all connections: flight_bytes=%ld, sum=%ld", pool.flight_bytes, flight_bytes)


cdef void _link_timer(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil:
    dp_assert(link.state != LS_IDLE and link.state != LS_CLOSED, "a connection without a proxy has no timer: state=%s",
              link_state_name(link.state))
    if link.state == LS_CONNECTING:
        link_silent(pool, link, LE_CONNECT_FAILED)
    elif link.state == LS_BACKOFF and not link.retired:
        _start_connect(pool, link, _pick_endpoint(pool, link), now_us)
    elif link.state == LS_ACTIVE:
        if link.retired and link.queue.head == NULL and link.flight.head == NULL:
            mark_dirty(pool, link, LF_CLOSE)
            return
        mark_dirty(pool, link, LF_LOOK)


cdef void links_looked(LinkPool* pool, Link* link, int64_t held, int64_t now_us) noexcept nogil:
    """Check the progress of an active link whose socket still holds ``held`` bytes.  Locality: executor."""
    progress_look(pool, link, held, now_us)
    _ack_timeouts(pool, link, now_us)
    if not (link.flags & LF_CLOSE):
        heartbeat_due(pool, link, now_us)
    _arm(pool, link, now_us)


cdef void links_expire(LinkPool* pool, int64_t now_us) noexcept nogil:
    """Act on every timer that is due.  Locality: executor."""
    cdef Timer* timer = timers_pop(&pool.timers, now_us)
    while timer != NULL:
        if timer.kind == TK_LINK:
            _link_timer(pool, <Link*>timer.owner, now_us)
        else:
            retry_due(pool, <Pack*>timer.owner, now_us)
        timer = timers_pop(&pool.timers, now_us)
    if DP_CHECKED:
        _check(pool)


cdef void links_abort(LinkPool* pool, int code) noexcept nogil:
    """Fail everything that has no result yet, and close all links.  Locality: executor."""
    cdef int i
    cdef Link* link
    pool.closing = True
    while pool.waiting.head != NULL:
        settle_failed(pool, pool.waiting.head, OUT_FAILED, code)
    while pool.backoff.head != NULL:
        settle_failed(pool, pool.backoff.head, OUT_FAILED, code)
    for i in range(pool.n_links):
        link = pool.links[i]
        while link.flight.head != NULL:
            settle_failed(pool, link.flight.head, OUT_FAILED, code)
        while link.queue.head != NULL:
            if link.queue.head.answered:
                settle_delivered(pool, link.queue.head)
            else:
                settle_failed(pool, link.queue.head, OUT_FAILED, code)
        mark_dirty(pool, link, LF_CLOSE)
    key_queues_abort(pool, code)
    if DP_CHECKED:
        _check(pool)


cdef Link* links_take_dirty(LinkPool* pool) noexcept nogil:
    """Return a link that needs socket work, or NULL; the executor clears its flags.

    Locality: executor.
    """
    cdef Link* link = pool.dirty
    if link != NULL:
        pool.dirty = link.next_dirty
        link.dirty = False
    return link
