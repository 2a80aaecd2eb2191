"""What connections with TLS share: OpenSSL, the settings for new connections, and the sessions to resume."""

from libc.stdint cimport int64_t

from dataproxy._core.plat.thread cimport pthread_mutex_t
from dataproxy._core.plat.tls cimport dp_tls


cdef enum:
    TLS_SESSIONS = 64       # peers of which a session is remembered
    TLS_LABEL = 64


ctypedef struct TlsSession:
    char label[64]          # TLS_LABEL
    void* session           # SSL_SESSION, owned; NULL: free
    int64_t used            # when it was put here, as a count


ctypedef struct TlsHolder:  # freed by the last of its users
    int64_t users           # atomic
    bint server             # constant
    pthread_mutex_t lock    # guards all below; the GIL is never taken while it is held
    void* ctx               # SSL_CTX of new connections; NULL until one was loaded
    bint check_host
    int64_t loads           # times that it was replaced
    int64_t counter
    TlsSession sessions[64]


cdef const dp_tls* tls_library() noexcept nogil
# Find OpenSSL in what the module `_ssl` at `path` needs, NULL: in the program.  NULL, or the name of what is missing.
cdef const char* tls_library_find(const char* path) noexcept nogil
# A holder without settings, and one user; NULL without memory.
cdef TlsHolder* holder_new(bint server) noexcept nogil
# Use a context, which is taken over, for connections from now on.
cdef void holder_replace(TlsHolder* h, void* ctx, bint check_host) noexcept nogil
cdef int64_t holder_loads(TlsHolder* h) noexcept nogil
cdef TlsHolder* holder_join(TlsHolder* h) noexcept nogil
cdef void holder_leave(TlsHolder* h) noexcept nogil
# An SSL of the newest settings, with the session of a peer; `loads`: of these settings.  NULL without memory.
cdef void* holder_stream(TlsHolder* h, const char* label, bint* check_host, int64_t* loads) noexcept nogil
# Remember a session, whose reference is taken over; False: it is not kept, and stays the caller's.
cdef bint holder_keep(TlsHolder* h, const char* label, int64_t loads, void* session) noexcept nogil
