"""TLS as a transport, over OpenSSL: records are made and opened here, by the loop that owns the connection.

OpenSSL reads and writes the socket through functions of this module, which never ask it to write again: what does not
fit into the socket waits in ``TlsStream.out``, at most one record.  So ``SSL_write`` takes what it is given, as a
whole, and counts as written from then on: a frame of which a byte is encrypted is never withdrawn.
``Transport.unsent`` says that such bytes wait, ``send`` without parts writes them, and ``held`` counts them with those
in the socket.  They are counted with the bytes that encryption adds, so a look at the progress says too little by them,
never too much.

Records are as large as TLS allows.  Small parts are put together on the stack, large ones are encrypted where they lie.
No record is read ahead: what a peer has sent stays in the socket, where epoll sees it.

Locality: the loop that owns the transport, except where a function says otherwise.  Locks: those of ``tlsholder``.
"""

from libc.errno cimport EAGAIN, EINTR, ENOMEM, errno
from libc.limits cimport INT_MAX
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, strlen

from dataproxy._core.base.address cimport Address, address_parse
from dataproxy._core.base.buf cimport buf_free, buf_put
from dataproxy._core.base.status cimport ST_EOF, ST_NO_MEMORY, ST_OK, ST_SYSTEM, ST_WANT_READ, ST_WANT_WRITE
from dataproxy._core.net.tlsholder cimport holder_join, holder_keep, holder_leave, holder_stream, tls_library
from dataproxy._core.net.transport cimport transport_adopt, transport_tcp
from dataproxy._core.plat.socket cimport MSG_MORE, MSG_NOSIGNAL, iovec, recv, send
from dataproxy._core.plat.tls cimport (
    BIO_CTRL_FLUSH, BIO_FLAGS_READ, BIO_FLAGS_SHOULD_RETRY, BIO_FLAGS_WRITE, BIO_TYPE_SOURCE_SINK, ERR_REASON,
    SSL_CTRL_SET_TLSEXT_HOSTNAME, SSL_ERROR_SSL, SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE, SSL_ERROR_ZERO_RETURN,
    SSL_SHUTDOWN_BOTH, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, dp_tls,
)

cdef enum:
    RECORD = 16384              # most bytes of one record
    ALERT = 1000                # OpenSSL's reason for an alert of the peer is this plus the alert's number

cdef enum:                      # reasons of OpenSSL's SSL functions
    REASON_VERIFY_FAILED = 134
    REASON_HTTPS_PROXY_REQUEST = 155
    REASON_HTTP_REQUEST = 156
    REASON_NO_PROTOCOLS = 191
    REASON_NO_SHARED_CIPHER = 193
    REASON_NO_CLIENT_CERTIFICATE = 199
    REASON_UNSUPPORTED_PROTOCOL = 258
    REASON_WRONG_VERSION_NUMBER = 267

cdef enum:                      # alerts
    ALERT_HANDSHAKE_FAILURE = 40
    ALERT_BAD_CERTIFICATE = 42
    ALERT_CERTIFICATE_UNKNOWN = 46
    ALERT_UNKNOWN_CA = 48
    ALERT_ACCESS_DENIED = 49
    ALERT_PROTOCOL_VERSION = 70
    ALERT_CERTIFICATE_REQUIRED = 116

cdef enum:                      # results of a verification
    VERIFY_EARLY = 9
    VERIFY_EXPIRED = 10
    VERIFY_NO_ISSUER = 2
    VERIFY_SELF_SIGNED = 18
    VERIFY_NO_FIRST = 21
    VERIFY_WRONG_HOST = 62
    VERIFY_WRONG_ADDRESS = 64

cdef const dp_tls* api = NULL
cdef void* method = NULL
cdef uint8_t[7] NOT_PLAIN = [0x15, 3, 1, 0, 2, 2, ALERT_PROTOCOL_VERSION]

cdef TransportOps TLS
TLS.name = "tls"
TLS.open = tls_open
TLS.start = tls_start
TLS.finish = tls_finish
TLS.recv = tls_recv
TLS.send = tls_send
TLS.held = tls_held
TLS.end = tls_end
TLS.close = tls_close


cdef const TransportOps* transport_tls() noexcept nogil:
    """Return the table of TLS.  Locality: any thread."""
    return &TLS


cdef int tls_set_up() noexcept nogil:
    """Tell OpenSSL how sockets are read and written here; 0, or -1 without memory.

    Locality: one thread, after OpenSSL was found and before any stream is made.
    """
    global api, method
    api = tls_library()
    method = api.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "dataproxy")
    if method == NULL:
        return -1
    api.BIO_meth_set_write(method, _bio_write)
    api.BIO_meth_set_read(method, _bio_read)
    api.BIO_meth_set_ctrl(method, _bio_control)
    return 0


cdef int _bio_write(void* bio, const char* p, int n) noexcept nogil:
    """Take ``n`` bytes of records: into the socket, else into ``out``; -1 if the socket is broken."""
    cdef TlsStream* s = <TlsStream*>api.BIO_get_data(bio)
    cdef int flags = MSG_NOSIGNAL | (MSG_MORE if s.more_follows else 0)
    cdef ssize_t r = 0
    if s.transport.unsent == 0:
        r = send(s.transport.fd, p, <size_t>n, flags)
        while r < 0 and errno == EINTR:
            r = send(s.transport.fd, p, <size_t>n, flags)
        if r < 0 and errno != EAGAIN:
            s.error = errno
            return -1
        r = r if r > 0 else 0
    if r < n:
        if buf_put(&s.out, p + r, <size_t>(n - r)) != ST_OK:
            s.error = ENOMEM
            return -1
        s.transport.unsent += <size_t>(n - r)
    return n


cdef int _bio_read(void* bio, char* p, int n) noexcept nogil:
    """Read up to ``n`` bytes of records; -1 with a wish to be called again if there are none."""
    cdef TlsStream* s = <TlsStream*>api.BIO_get_data(bio)
    cdef ssize_t r = recv(s.transport.fd, p, <size_t>n, 0)
    while r < 0 and errno == EINTR:
        r = recv(s.transport.fd, p, <size_t>n, 0)
    api.BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
    if r > 0:
        s.heard = True
        return <int>r
    if r == 0:
        s.eof = True
        return 0
    if errno == EAGAIN:
        api.BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
    else:
        s.error = errno
    return -1


cdef long _bio_control(void* bio, int command, long n, void* p) noexcept nogil:
    """Answer OpenSSL's questions about the socket: a flush is done, everything else does not exist."""
    return 1 if command == BIO_CTRL_FLUSH else 0


cdef int tls_new_session(void* ssl, void* session) noexcept nogil:
    """Remember a session; 1 if its reference was taken over.  Locks: takes that of the holder."""
    cdef TlsStream* s = <TlsStream*>api.SSL_get_ex_data(ssl, 0)
    if s == NULL or s.transport.label == NULL:
        return 0
    return 1 if holder_keep(s.holder, s.transport.label, s.loads, session) else 0


cdef int tls_asked(void* ssl, void** certificate, void** key) noexcept nogil:
    """Note that the peer wants a certificate; 0: there is none."""
    cdef TlsStream* s = <TlsStream*>api.SSL_get_ex_data(ssl, 0)
    if s != NULL:
        s.asked = True
    return 0


cdef int _begin(Transport* t, TlsHolder* holder, bint server) noexcept nogil:
    """Give a transport with a socket its stream; ST_OK or ST_NO_MEMORY."""
    cdef TlsStream* s = <TlsStream*>calloc(1, sizeof(TlsStream))
    cdef bint check_host = False
    cdef const char* label = NULL
    cdef void* bio = NULL
    if s == NULL:
        return ST_NO_MEMORY
    t.state = s
    s.transport = t
    s.server = server
    s.holder = holder_join(holder)
    if not server:
        label = t.label
    s.ssl = holder_stream(holder, label, &check_host, &s.loads)
    if s.ssl != NULL:
        bio = api.BIO_new(method)
    if bio == NULL:
        return ST_NO_MEMORY
    api.BIO_set_data(bio, s)
    api.BIO_set_init(bio, 1)
    api.SSL_set_bio(s.ssl, bio, bio)
    api.SSL_set_ex_data(s.ssl, 0, s)
    if server:
        api.SSL_set_accept_state(s.ssl)
        return ST_OK
    api.SSL_set_connect_state(s.ssl)
    return _expect(s, t.name, check_host)


cdef int _expect(TlsStream* s, const char* name, bint check_host) noexcept nogil:
    """Tell the peer the name that is wanted, and let its certificate be compared with it; ST_OK or ST_NO_MEMORY."""
    cdef Address address
    cdef void* param = api.SSL_get0_param(s.ssl)
    cdef int done = 1
    if name == NULL or name[0] == 0:
        return ST_OK
    if address_parse(name, 0, &address) == ST_OK:
        if check_host:
            done = api.X509_VERIFY_PARAM_set1_ip_asc(param, name)
        return ST_OK if done == 1 else ST_NO_MEMORY
    if api.SSL_ctrl(s.ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, 0, <void*>name) != 1:
        return ST_NO_MEMORY
    if check_host:
        api.X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
        done = api.X509_VERIFY_PARAM_set1_host(param, name, strlen(name))
    return ST_OK if done == 1 else ST_NO_MEMORY


cdef int tls_open(Transport* t, int family, const TransportOptions* options) noexcept nogil:
    """Make the socket and the stream; ST_OK or ST_SYSTEM."""
    cdef int status = transport_tcp().open(t, family, options)
    if status == ST_OK and _begin(t, <TlsHolder*>t.context, False) != ST_OK:
        tls_close(t)
        t.error = ENOMEM
        return ST_SYSTEM
    return status


cdef int tls_adopt(Transport* t, int fd, TlsHolder* holder) noexcept nogil:
    """Take over an accepted connection; the handshake is done by the first ``recv`` calls."""
    cdef int status
    t.ops = &TLS
    status = transport_adopt(t, fd, NULL)
    return _begin(t, holder, True) if status == ST_OK else status


cdef int tls_start(Transport* t, const Address* peer) noexcept nogil:
    """Begin to connect; the handshake follows in ``finish``."""
    cdef int status = transport_tcp().start(t, peer)
    return ST_WANT_WRITE if status == ST_OK else status


cdef int tls_finish(Transport* t) noexcept nogil:
    """Go on with the connect, then with the handshake; until its end, ``error`` says whether something has come."""
    cdef TlsStream* s = <TlsStream*>t.state
    cdef int status, r
    if not s.connected:
        status = transport_tcp().finish(t)
        if status != ST_OK:
            return status
        s.connected = True
        t.error = TLS_UNANSWERED
    status = _push(t, s)
    if status != ST_OK:
        return status
    api.ERR_clear_error()
    r = api.SSL_do_handshake(s.ssl)
    if r == 1:
        s.ready = True
        t.error = 0
        return ST_OK
    status = _problem(t, s, r)
    if status == ST_EOF:
        t.error = TLS_CLOSED
        return ST_SYSTEM
    if s.heard and (status == ST_WANT_READ or status == ST_WANT_WRITE):
        t.error = TLS_UNFINISHED
    return ST_WANT_WRITE if status == ST_WANT_READ and t.unsent > 0 else status


cdef int tls_recv(Transport* t, void* p, size_t n, size_t* got) noexcept nogil:
    """Read up to ``n`` bytes; of a large ``n`` no record is left over."""
    cdef TlsStream* s = <TlsStream*>t.state
    cdef size_t room
    cdef int r, status
    got[0] = 0
    t.more = False
    if s.ended:
        return s.ended
    while True:
        room = n - got[0]
        api.ERR_clear_error()
        r = api.SSL_read(s.ssl, <char*>p + got[0], INT_MAX if room > INT_MAX else <int>room)
        if r <= 0:
            break
        s.ready = True
        got[0] += <size_t>r
        if n - got[0] < RECORD:
            t.more = api.SSL_pending(s.ssl) > 0
            return ST_OK
    status = _problem(t, s, r)
    if status != ST_WANT_READ and status != ST_WANT_WRITE:
        s.ended = status
        t.more = True
    elif s.server and not s.ready:
        s.ready = api.SSL_is_init_finished(s.ssl) == 1
    return ST_OK if got[0] > 0 else status


cdef int tls_send(Transport* t, const iovec* parts, int n, size_t* sent) noexcept nogil:
    """Encrypt and write until the socket is full; without parts, only what was encrypted before is written."""
    cdef TlsStream* s = <TlsStream*>t.state
    cdef uint8_t staged[RECORD]
    cdef const uint8_t* p
    cdef size_t at = 0, size = 0, part
    cdef int i = 0, r
    cdef int status
    sent[0] = 0
    status = _push(t, s)
    if status != ST_OK:
        return status
    while i < n:
        p = <const uint8_t*>parts[i].iov_base + at
        size = parts[i].iov_len - at
        if size >= RECORD or i + 1 == n:
            size = size if size < RECORD else RECORD
            at += size
        else:                       # the rest of this part and the next ones share a record
            size = 0
            while size < RECORD and i < n:
                part = parts[i].iov_len - at
                part = part if part < RECORD - size else RECORD - size
                memcpy(staged + size, <const uint8_t*>parts[i].iov_base + at, part)
                size += part
                at += part
                if at == parts[i].iov_len and size < RECORD:
                    i += 1
                    at = 0
            p = staged
        if i < n and at == parts[i].iov_len:
            i += 1
            at = 0
        if size == 0:
            continue
        s.more_follows = i < n
        api.ERR_clear_error()
        r = api.SSL_write(s.ssl, p, <int>size)
        s.more_follows = False
        if r != <int>size:
            return _broken(t, s, r)
        sent[0] += size
        if t.unsent > 0:
            break
    return ST_OK


cdef int64_t tls_held(Transport* t) noexcept nogil:
    """Return the encrypted bytes that wait here and in the socket."""
    return <int64_t>t.unsent + transport_tcp().held(t)


cdef int tls_end(Transport* t) noexcept nogil:
    """Say that nothing more will be sent, and end this side of the stream."""
    cdef TlsStream* s = <TlsStream*>t.state
    _say_end(t, s)
    return transport_tcp().end(t)


cdef void tls_close(Transport* t) noexcept nogil:
    """Release the stream and the descriptor."""
    cdef TlsStream* s = <TlsStream*>t.state
    t.state = NULL
    if s != NULL:
        if t.fd >= 0:
            _say_end(t, s)
        if s.ssl != NULL:
            if s.ready and t.error < TLS_FIRST:     # a session survives its connection, also one that was cut
                api.SSL_set_shutdown(s.ssl, SSL_SHUTDOWN_BOTH)
            api.SSL_free(s.ssl)     # and its BIO
        holder_leave(s.holder)
        buf_free(&s.out)
        free(s)
    t.unsent = 0
    t.more = False
    transport_tcp().close(t)


cdef void _say_end(Transport* t, TlsStream* s) noexcept nogil:
    """Tell a peer that works that the stream ends here, so that it can know a cut one."""
    if s.ssl != NULL and s.ready and s.error == 0 and not s.ended and t.unsent == 0:
        api.ERR_clear_error()
        api.SSL_shutdown(s.ssl)
        api.ERR_clear_error()


cdef int _push(Transport* t, TlsStream* s) noexcept nogil:
    """Write what is left of earlier records; ST_OK if nothing is left, ST_WANT_WRITE or ST_SYSTEM."""
    cdef ssize_t r
    while t.unsent > 0:
        r = send(t.fd, s.out.p + s.out_start, t.unsent, MSG_NOSIGNAL)
        if r < 0 and errno == EAGAIN:
            return ST_WANT_WRITE
        if r < 0 and errno == EINTR:
            continue
        if r < 0:
            s.error = errno
            return _broken(t, s, -1)
        s.out_start += <size_t>r
        t.unsent -= <size_t>r
    if s.out.n > 0:
        s.out.n = 0
        s.out_start = 0
    return ST_OK


cdef int _broken(Transport* t, TlsStream* s, int r) noexcept nogil:
    """Return ST_SYSTEM for a record that could not be made or written: there is no way to wait for that here.

    If the peer has closed the connection, what it said before is the reason.
    """
    cdef uint8_t scrap[RECORD]
    cdef int error = s.error
    cdef int status
    if error != 0 and s.ready:
        s.error = 0
        r = api.SSL_read(s.ssl, scrap, RECORD)
        if r > 0:
            t.error = error
            return ST_SYSTEM
    status = _problem(t, s, r)
    if status != ST_SYSTEM:
        t.error = error if error != 0 else TLS_FAILED
    return ST_SYSTEM


cdef int _problem(Transport* t, TlsStream* s, int r) noexcept nogil:
    """Return what OpenSSL waits for, or why it failed: ST_WANT_*, ST_EOF, ST_SYSTEM with ``error``."""
    cdef int kind = api.SSL_get_error(s.ssl, r)
    cdef unsigned long said
    if kind == SSL_ERROR_WANT_READ:
        return ST_WANT_READ
    if kind == SSL_ERROR_WANT_WRITE:
        return ST_WANT_WRITE
    if kind == SSL_ERROR_ZERO_RETURN:
        return ST_EOF
    if s.error != 0:
        t.error = s.error
        api.ERR_clear_error()
        return ST_SYSTEM
    said = api.ERR_get_error()
    if s.eof or kind != SSL_ERROR_SSL:      # the stream was cut: our frames have bounds of their own
        api.ERR_clear_error()
        if s.ready:
            return ST_EOF
        t.error = TLS_CLOSED
        return ST_SYSTEM
    t.error = _fault(s, <int>(said & ERR_REASON))
    api.ERR_clear_error()
    if t.error & ~4095 == TLS_PLAIN and s.server and t.unsent == 0:
        send(t.fd, NOT_PLAIN, sizeof(NOT_PLAIN), MSG_NOSIGNAL)      # a peer that speaks another protocol may know this
    return ST_SYSTEM


cdef int _fault(TlsStream* s, int reason) noexcept nogil:
    """Return the TlsFault with its detail for a reason of OpenSSL."""
    if reason >= ALERT:
        return _alerted(s, reason - ALERT)
    if reason == REASON_VERIFY_FAILED:
        return _unverified(<int>api.SSL_get_verify_result(s.ssl))
    if reason in (REASON_UNSUPPORTED_PROTOCOL, REASON_NO_SHARED_CIPHER, REASON_NO_PROTOCOLS):
        return TLS_VERSION + reason
    if reason in (REASON_WRONG_VERSION_NUMBER, REASON_HTTP_REQUEST, REASON_HTTPS_PROXY_REQUEST):
        return TLS_PLAIN + reason
    if reason == REASON_NO_CLIENT_CERTIFICATE:
        return TLS_CLIENT_NEEDED
    return TLS_FAILED + reason


cdef int _alerted(const TlsStream* s, int alert) noexcept nogil:
    """Return the TlsFault for an alert of the peer."""
    if alert == ALERT_CERTIFICATE_REQUIRED or (s.asked and alert == ALERT_HANDSHAKE_FAILURE):
        return TLS_CLIENT_NEEDED + alert
    if alert == ALERT_PROTOCOL_VERSION:
        return TLS_VERSION + alert
    if ALERT_BAD_CERTIFICATE <= alert <= ALERT_CERTIFICATE_UNKNOWN or alert in (ALERT_UNKNOWN_CA, ALERT_ACCESS_DENIED):
        return (TLS_CLIENT_NEEDED if s.asked else TLS_CLIENT_REFUSED) + alert
    return TLS_ALERT + alert


cdef int _unverified(int result) noexcept nogil:
    """Return the TlsFault for the result of a verification that failed."""
    if result == VERIFY_EXPIRED:
        return TLS_EXPIRED
    if result == VERIFY_EARLY:
        return TLS_EARLY
    if result == VERIFY_WRONG_HOST or result == VERIFY_WRONG_ADDRESS:
        return TLS_WRONG_HOST
    if result == VERIFY_NO_ISSUER or VERIFY_SELF_SIGNED <= result <= VERIFY_NO_FIRST:
        return TLS_UNKNOWN_CA + result
    return TLS_UNTRUSTED + (result & 4095)
