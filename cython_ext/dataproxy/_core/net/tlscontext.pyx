"""The settings of connections with TLS, as an object that Python loads: files in, an SSL_CTX for new connections out.

Locality: GIL, any thread; loading is done by one at a time.  Locks: none, except those of ``tlsholder``.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset, strlen

from dataproxy._core.net.tls cimport tls_asked, tls_new_session, tls_set_up
from dataproxy._core.net.tlsholder cimport (
    TlsHolder, holder_join, holder_leave, holder_loads, holder_new, holder_replace, tls_library, tls_library_find,
)
from dataproxy._core.plat.tls cimport (
    SSL_CTRL_MODE, SSL_CTRL_SET_MIN_PROTO_VERSION, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_FILETYPE_PEM,
    SSL_MODE_RELEASE_BUFFERS, SSL_OP_NO_COMPRESSION, SSL_OP_NO_RENEGOTIATION, SSL_SESS_CACHE_CLIENT,
    SSL_SESS_CACHE_NO_INTERNAL_STORE, SSL_SESS_CACHE_SERVER, SSL_VERIFY_FAIL_IF_NO_PEER_CERT, SSL_VERIFY_NONE,
    SSL_VERIFY_PEER, dp_tls,
)

__all__ = ["TlsContexts", "find_library"]

cdef const dp_tls* api = NULL
cdef bint _found = False

cdef enum:
    TLS_1_2 = 0x0303
    TLS_1_3 = 0x0304


cdef struct Password:
    int n
    char text[1024]


def find_library():
    """Find OpenSSL in what the module ``_ssl`` uses; a second call does nothing.  Locality: GIL, any thread.

    Raises OSError that says why TLS is not possible in this interpreter.
    """
    global _found, api
    cdef const char* missing
    cdef const char* file = NULL
    cdef bytes path = b""
    if _found:
        return
    try:
        import _ssl
    except ImportError as error:
        raise OSError(f"this Python has no module ssl ({error}); TLS needs one that was built with OpenSSL") from None
    version = _ssl.OPENSSL_VERSION
    path = getattr(_ssl, "__file__", "").encode()
    if path:
        file = path
    missing = tls_library_find(file)
    if missing != NULL:
        where = "is part of the program" if not path else f"of {path.decode()}"
        raise OSError(
            f"OpenSSL ({version}), which {where}, does not show its functions to other modules"
            f" ({(<bytes>missing).decode()} was not found); TLS needs a Python that loads libssl as a library")
    api = tls_library()
    if (<bytes>api.OpenSSL_version(0)).decode() != version or not version.startswith("OpenSSL "):
        raise OSError(f"TLS needs OpenSSL 1.1.1 or newer, and the one of Python's ssl; this Python has {version}")
    if tls_set_up() != 0:
        raise MemoryError("no memory for TLS")
    _found = True


cdef int _password(char* room, int n, int writing, void* data) noexcept nogil:
    """Hand the password of a key to OpenSSL; 0, which is none, if there is no room for it."""
    cdef Password* password = <Password*>data
    if password == NULL or password.n > n:
        return 0
    memcpy(room, password.text, <size_t>password.n)
    return password.n


cdef class TlsContexts:
    """Hold the settings for new connections with TLS, as a client or (``server``) as a server.

    Any thread; loading happens one at a time.
    """

    def __cinit__(self, *, bint server=False):
        """Make a holder without settings.  Raises OSError where this Python has no OpenSSL that can be used."""
        find_library()
        self.holder = holder_new(server)
        if self.holder == NULL:
            raise MemoryError("no memory for TLS")

    def __dealloc__(self):
        """Leave the holder to the connections that use it."""
        holder_leave(self.holder)

    cdef TlsHolder* join(self) noexcept:
        """Return the holder, with one user more.  Locality: GIL."""
        return holder_join(self.holder)

    def load(self, *, str certificate not None="", str key not None="", bytes password not None=b"",
             str authorities not None="", bint folder=False, bint verify=True, bint check_host=True, bint newest=False):
        """Read files and use them for connections from now on; after an error, the settings before stay.

        ``certificate``, ``key``: PEM files, empty without.  ``authorities``: a PEM file or (``folder``) a directory;
        empty: those of the system, at a server no one.  ``newest``: TLS 1.3 alone, else 1.2 too.  ``verify``: a server
        asks clients for certificates.  Raises OSError with what OpenSSL says, and MemoryError.
        """
        cdef Password secret
        cdef bytes certificate_name = certificate.encode()
        cdef bytes key_name = (key or certificate).encode()
        cdef bytes authorities_name = authorities.encode()
        cdef void* ctx
        cdef int mode = SSL_VERIFY_NONE
        if len(password) > sizeof(secret.text):
            raise OSError(f"the password of a key has more than {sizeof(secret.text)} bytes")
        api.ERR_clear_error()
        ctx = api.SSL_CTX_new(api.TLS_server_method() if self.holder.server else api.TLS_client_method())
        if ctx == NULL:
            raise MemoryError("no memory for TLS")
        try:
            _adjust(ctx, self.holder.server, newest)
            secret.n = <int>len(password)
            memcpy(secret.text, <const char*>password, <size_t>len(password))
            if verify:
                mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
                _trust(ctx, self.holder.server, authorities_name, folder)
            api.SSL_CTX_set_verify(ctx, mode, NULL)
            if certificate:
                api.SSL_CTX_set_default_passwd_cb(ctx, _password)
                api.SSL_CTX_set_default_passwd_cb_userdata(ctx, &secret)
                _identify(ctx, certificate_name, key_name)
                api.SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL)
            elif not self.holder.server:
                api.SSL_CTX_set_client_cert_cb(ctx, tls_asked)
        except BaseException:
            api.SSL_CTX_free(ctx)
            raise
        finally:
            memset(&secret, 0, sizeof(secret))
        with nogil:
            holder_replace(self.holder, ctx, verify and check_host)

    @property
    def loads(self):
        """Return how many times settings were loaded."""
        cdef int64_t n
        with nogil:
            n = holder_loads(self.holder)
        return n


cdef int _adjust(void* ctx, bint server, bint newest) except -1:
    """Set versions, options, and where sessions are kept."""
    api.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS_1_3 if newest else TLS_1_2, NULL)
    api.SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION)
    api.SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS if server else 0, NULL)
    if server:
        api.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_SERVER, NULL)
        api.SSL_CTX_set_session_id_context(ctx, <const unsigned char*>b"dataproxy", 9)
    else:
        api.SSL_CTX_ctrl(
            ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE, NULL)
        api.SSL_CTX_sess_set_new_cb(ctx, tls_new_session)
    return 0


cdef int _trust(void* ctx, bint server, bytes name, bint folder) except -1:
    """Load the authorities whose certificates are accepted; a server also names them to its clients."""
    cdef void* names
    cdef const char* file = NULL
    cdef const char* path = NULL
    if not name:
        if api.SSL_CTX_set_default_verify_paths(ctx) != 1:
            _refuse("the system's certificates")
        return 0
    if folder:
        path = name
    else:
        file = name
    if api.SSL_CTX_load_verify_locations(ctx, file, path) != 1:
        _refuse(name.decode())
    if server and not folder:
        names = api.SSL_load_client_CA_file(name)
        if names == NULL:
            _refuse(name.decode())
        api.SSL_CTX_set_client_CA_list(ctx, names)
    return 0


cdef int _identify(void* ctx, bytes certificate, bytes key) except -1:
    """Load the own certificate with its chain, and its key."""
    if api.SSL_CTX_use_certificate_chain_file(ctx, certificate) != 1:
        _refuse(certificate.decode())
    if api.SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1:
        _refuse(key.decode())
    if api.SSL_CTX_check_private_key(ctx) != 1:
        _refuse(key.decode())
    return 0


cdef int _refuse(str what) except -1:
    """Raise OSError with the reason of the last failure."""
    cdef const char* said = api.ERR_reason_error_string(api.ERR_get_error())
    reason = "unknown reason" if said == NULL else said[:strlen(said)].decode("utf-8", "replace")
    api.ERR_clear_error()
    raise OSError(f"{what}: {reason}")
