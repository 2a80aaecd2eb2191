"""Topics, subscriptions and commits of pulls, as server loops look at them and the hub's thread sets them.

Locality: any thread.  Locks: takes Remoting.mutex, but for init and free.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put_be32, buf_put_slice
from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from dataproxy._core.server.calls cimport calls_free, calls_init
from dataproxy._core.server.rocketmq.keyed cimport (
    keyed_drop, keyed_find, keyed_free, keyed_init, keyed_make, keyed_next,
)
from dataproxy._core.server.state cimport loop_answered
from dataproxy._core.wire.rocketmq.codec cimport rocketmq_ops
from dataproxy._core.wire.rocketmq.const cimport (
    ANSWER_NO_PERMISSION, ANSWER_SUBSCRIPTION_NOT_EXIST, ANSWER_SUBSCRIPTION_NOT_LATEST, ANSWER_SUCCESS,
    ANSWER_SYSTEM_ERROR, ANSWER_TOPIC_NOT_EXIST,
)

cdef enum:
    ROUTES_MOST = 262144
    CONNECTIONS_MOST = 1048576
    COMMITS_MOST = 65536
    GROUPS_MOST = 262144


cdef int remoting_init(Remoting* r, const HashKey* secret, size_t most_calls, size_t most_bytes) noexcept nogil:
    """Make everything empty; ST_OK or ST_NO_MEMORY.  Locality: owner."""
    cdef int status
    memset(r, 0, sizeof(Remoting))
    pthread_mutex_init(&r.mutex, NULL)
    r.wire = rocketmq_ops()
    status = calls_init(&r.queue, loop_answered, most_calls, most_bytes)
    status |= keyed_init(&r.routes, secret, sizeof(Route), ROUTES_MOST)
    status |= keyed_init(&r.subscriptions, secret, sizeof(Subscribed), CONNECTIONS_MOST)
    status |= keyed_init(&r.commits, secret, sizeof(CommitSeen), COMMITS_MOST)
    status |= keyed_init(&r.asked, secret, 8, GROUPS_MOST)
    return ST_OK if status == ST_OK else ST_NO_MEMORY


cdef void remoting_free(Remoting* r) noexcept nogil:
    """Release everything.  Locality: owner, when nobody else uses it."""
    cdef void* row
    if r.subscriptions.buckets != NULL:
        row = keyed_next(&r.subscriptions, NULL)
        while row != NULL:
            _release(<Subscribed*>row, NULL, NULL)
            row = keyed_next(&r.subscriptions, row)
    keyed_free(&r.routes)
    keyed_free(&r.subscriptions)
    keyed_free(&r.commits)
    keyed_free(&r.asked)
    calls_free(&r.queue)
    pthread_mutex_destroy(&r.mutex)


cdef int32_t remoting_route(Remoting* r, Slice topic, int32_t queue) noexcept nogil:
    """Choose the queue of a message; -1: the thread decides, or refuses it."""
    cdef Route* route
    pthread_mutex_lock(&r.mutex)
    route = <Route*>keyed_find(&r.routes, topic)
    if route == NULL or not route.permission & PERM_WRITE or queue >= max(route.read_queues, route.write_queues):
        queue = -1
    elif queue < 0 and route.write_queues > 0:
        queue = route.turn % route.write_queues
        route.turn = (queue + 1) % route.write_queues
    pthread_mutex_unlock(&r.mutex)
    return queue


cdef int32_t remoting_readable(Remoting* r, Slice topic, int32_t queue) noexcept nogil:
    """Return the code that refuses a pull of a queue, or ANSWER_SUCCESS."""
    cdef const Route* route
    cdef int32_t code = ANSWER_SUCCESS
    pthread_mutex_lock(&r.mutex)
    route = <const Route*>keyed_find(&r.routes, topic)
    if route == NULL:
        code = ANSWER_TOPIC_NOT_EXIST
    elif not route.permission & PERM_READ:
        code = ANSWER_NO_PERMISSION
    elif not 0 <= queue < route.read_queues:
        code = ANSWER_SYSTEM_ERROR
    pthread_mutex_unlock(&r.mutex)
    return code


cdef bint remoting_asked(Remoting* r, Slice group) noexcept nogil:
    """Tell whether the thread answers the pulls of a group."""
    cdef bint asked
    pthread_mutex_lock(&r.mutex)
    asked = r.asked.count > 0 and keyed_find(&r.asked, group) != NULL
    pthread_mutex_unlock(&r.mutex)
    return asked


cdef inline Slice _number(const uint64_t* connection) noexcept nogil:
    return slice_of(connection, sizeof(uint64_t))


cdef Subscription* _find(Remoting* r, uint64_t connection, Slice group, Slice topic) noexcept nogil:
    """Return a subscription; NULL: there is none.  Locks: the caller holds the mutex."""
    cdef Subscribed* all_ = <Subscribed*>keyed_find(&r.subscriptions, _number(&connection))
    cdef Subscription* s = NULL
    if all_ != NULL:
        s = all_.first
        while s != NULL and not (slice_equals(s.group, group) and slice_equals(s.topic, topic)):
            s = s.next
    return s


cdef void remoting_pulled(Remoting* r, uint64_t connection, Slice group, Slice topic, int64_t now_us) noexcept nogil:
    """Note when a member pulled from a topic last; of who is no member nothing is noted."""
    cdef Subscription* s
    pthread_mutex_lock(&r.mutex)
    s = _find(r, connection, group, topic)
    if s != NULL:
        s.pulled_us = now_us
    pthread_mutex_unlock(&r.mutex)


cdef int32_t remoting_wanted(
    Remoting* r, uint64_t connection, Slice group, Slice topic, int64_t version, int* filter, Buf* tags
) noexcept nogil:
    """Return what a member of a group wants of a topic; ``tags`` is emptied before."""
    cdef const Subscription* s
    cdef int32_t code = ANSWER_SUBSCRIPTION_NOT_EXIST
    tags.n = 0
    pthread_mutex_lock(&r.mutex)
    s = _find(r, connection, group, topic)
    if s != NULL:
        filter[0] = s.filter
        code = ANSWER_SUCCESS if s.version >= version else ANSWER_SUBSCRIPTION_NOT_LATEST
        if code == ANSWER_SUCCESS and buf_put_slice(tags, s.tags) != ST_OK:
            code = ANSWER_SYSTEM_ERROR
    pthread_mutex_unlock(&r.mutex)
    return code


cdef void _release(Subscribed* all_, const Slice* group, const Slice* topic) noexcept nogil:
    """Release what a connection has of a group and of a topic; NULL: of all.  Locks: the caller holds the mutex."""
    cdef Subscription** at = &all_.first
    cdef Subscription* s
    while at[0] != NULL:
        s = at[0]
        if (group == NULL or slice_equals(s.group, group[0])) and (topic == NULL or slice_equals(s.topic, topic[0])):
            at[0] = s.next
            free(s)
        else:
            at = &s.next


cdef int remoting_subscribe(Remoting* r, uint64_t connection, const Subscription* s) noexcept nogil:
    """Keep a copy of a subscription, in the place of an older one; ST_OK or ST_NO_MEMORY."""
    cdef Subscription* copy = <Subscription*>malloc(sizeof(Subscription) + s.group.n + s.topic.n + s.tags.n)
    cdef uint8_t* at = <uint8_t*>(copy + 1)
    cdef Subscribed* all_
    cdef const Subscription* before
    if copy == NULL:
        return ST_NO_MEMORY
    copy[0] = s[0]
    copy.group = _copied(&at, s.group)
    copy.topic = _copied(&at, s.topic)
    copy.tags = _copied(&at, s.tags)
    pthread_mutex_lock(&r.mutex)
    all_ = <Subscribed*>keyed_make(&r.subscriptions, _number(&connection))
    if all_ != NULL:
        before = _find(r, connection, s.group, s.topic)
        if before != NULL:
            copy.pulled_us = before.pulled_us
        _release(all_, &s.group, &s.topic)
        copy.next = all_.first
        all_.first = copy
    pthread_mutex_unlock(&r.mutex)
    if all_ == NULL:
        free(copy)
    return ST_OK if all_ != NULL else ST_NO_MEMORY


cdef Slice _copied(uint8_t** at, Slice text) noexcept nogil:
    """Copy bytes to a place, and move it behind them."""
    cdef uint8_t* to = at[0]
    if text.n:
        memcpy(to, text.p, text.n)
    at[0] = to + text.n
    return slice_of(to, text.n)


cdef void remoting_unsubscribe(
    Remoting* r, uint64_t connection, const Slice* group, const Slice* topic
) noexcept nogil:
    """Forget subscriptions of a connection, of one group or topic or (NULL) of all."""
    cdef Subscribed* all_
    pthread_mutex_lock(&r.mutex)
    all_ = <Subscribed*>keyed_find(&r.subscriptions, _number(&connection))
    if all_ != NULL:
        _release(all_, group, topic)
        if all_.first == NULL:
            keyed_drop(&r.subscriptions, _number(&connection))
    pthread_mutex_unlock(&r.mutex)


cdef void remoting_commit(
    Remoting* r, uint64_t connection, Slice group, Slice topic, int32_t queue, int64_t offset
) noexcept nogil:
    """Keep what a pull has confirmed until the thread takes it; of several the last one counts."""
    cdef CommitSeen* seen = NULL
    cdef Buf key
    cdef int status
    buf_init(&key)
    status = buf_put_slice(&key, group)
    status |= buf_put_slice(&key, topic)
    status |= buf_put_be32(&key, <unsigned int>queue)
    status |= buf_put_be32(&key, <unsigned int>group.n)
    pthread_mutex_lock(&r.mutex)
    if status == ST_OK:
        seen = <CommitSeen*>keyed_make(&r.commits, slice_of(key.p, key.n))
    if seen == NULL:
        r.commits_lost += 1         # the client commits by itself in seconds
    else:
        if seen.group_n == 0:
            seen.told = -1
            seen.group_n = group.n
            seen.queue = queue
        seen.connection = connection
        seen.offset = offset
        if seen.offset != seen.told and not seen.listed:
            seen.listed = True
            seen.next = r.changed
            r.changed = seen
    pthread_mutex_unlock(&r.mutex)
    buf_free(&key)
