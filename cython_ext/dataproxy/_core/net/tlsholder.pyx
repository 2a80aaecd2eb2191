"""What connections with TLS share: OpenSSL, the settings for new connections, and the sessions to resume.

OpenSSL is the library that Python's ``ssl`` has loaded already.  Settings are replaced as a whole: open connections
keep theirs, new ones get the newest.  A session belongs to the settings under which it was made.

Locality: any thread.  Locks: ``TlsHolder.lock`` is a leaf, and is held for a few instructions, without the GIL.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset, strcmp, strncpy

from dataproxy._core.plat.atomic cimport atomic_add
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from dataproxy._core.plat.tls cimport dp_tls, tls_find

cdef dp_tls LIBRARY


cdef const dp_tls* tls_library() noexcept nogil:
    """Return the functions of OpenSSL, once ``tls_library_find`` has found them."""
    return &LIBRARY


cdef const char* tls_library_find(const char* path) noexcept nogil:
    """Find the functions of OpenSSL.  Locality: one thread."""
    return tls_find(&LIBRARY, path)


cdef TlsHolder* holder_new(bint server) noexcept nogil:
    """Make a holder without settings."""
    cdef TlsHolder* h = <TlsHolder*>calloc(1, sizeof(TlsHolder))
    if h != NULL:
        h.users = 1
        h.server = server
        pthread_mutex_init(&h.lock, NULL)
    return h


cdef void holder_replace(TlsHolder* h, void* ctx, bint check_host) noexcept nogil:
    """Replace the settings, and forget the sessions.  Locks: takes lock."""
    cdef void* old
    pthread_mutex_lock(&h.lock)
    old = h.ctx
    h.ctx = ctx
    h.check_host = check_host
    h.loads += 1
    _forget(h)
    pthread_mutex_unlock(&h.lock)
    if old != NULL:
        LIBRARY.SSL_CTX_free(old)


cdef int64_t holder_loads(TlsHolder* h) noexcept nogil:
    """Return how many times settings were loaded.  Locks: takes lock."""
    cdef int64_t n
    pthread_mutex_lock(&h.lock)
    n = h.loads
    pthread_mutex_unlock(&h.lock)
    return n


cdef TlsHolder* holder_join(TlsHolder* h) noexcept nogil:
    """Count another user.  Locks: none."""
    if h != NULL:
        atomic_add(&h.users, 1)
    return h


cdef void holder_leave(TlsHolder* h) noexcept nogil:
    """Count a user less; the last one frees the holder.  Locks: none."""
    if h == NULL or atomic_add(&h.users, -1) > 0:
        return
    _forget(h)
    if h.ctx != NULL:
        LIBRARY.SSL_CTX_free(h.ctx)
    pthread_mutex_destroy(&h.lock)
    free(h)


cdef void _forget(TlsHolder* h) noexcept nogil:
    """Drop all sessions.  Locks: needs lock, or a holder without users."""
    cdef int i
    for i in range(<int>TLS_SESSIONS):
        if h.sessions[i].session != NULL:
            LIBRARY.SSL_SESSION_free(h.sessions[i].session)
            h.sessions[i].session = NULL


cdef void* holder_stream(TlsHolder* h, const char* label, bint* check_host, int64_t* loads) noexcept nogil:
    """Make an SSL for a new connection.  Locks: takes lock."""
    cdef void* ssl = NULL
    cdef int i
    pthread_mutex_lock(&h.lock)
    check_host[0] = h.check_host
    loads[0] = h.loads
    if h.ctx != NULL:
        ssl = LIBRARY.SSL_new(h.ctx)
    if ssl != NULL and label != NULL:
        for i in range(<int>TLS_SESSIONS):
            if h.sessions[i].session != NULL and strcmp(h.sessions[i].label, label) == 0:
                LIBRARY.SSL_set_session(ssl, h.sessions[i].session)
                break
    pthread_mutex_unlock(&h.lock)
    return ssl


cdef bint holder_keep(TlsHolder* h, const char* label, int64_t loads, void* session) noexcept nogil:
    """Remember the newest session of a peer, in the place of the oldest of all.

    Locks: takes lock.
    """
    cdef TlsSession* at = &h.sessions[0]
    cdef void* old = session
    cdef int i
    pthread_mutex_lock(&h.lock)
    if loads == h.loads:
        for i in range(<int>TLS_SESSIONS):
            if h.sessions[i].session == NULL or strcmp(h.sessions[i].label, label) == 0:
                at = &h.sessions[i]
                break
            if h.sessions[i].used < at.used:
                at = &h.sessions[i]
        old = at.session
        h.counter += 1
        at.used = h.counter
        at.session = session
        memset(at.label, 0, TLS_LABEL)
        strncpy(at.label, label, TLS_LABEL - 1)
    pthread_mutex_unlock(&h.lock)
    if old == session:
        return False
    if old != NULL:
        LIBRARY.SSL_SESSION_free(old)
    return True
