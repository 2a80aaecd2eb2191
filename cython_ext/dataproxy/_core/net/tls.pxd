"""TLS as a transport, over OpenSSL."""

from libc.stdint cimport int64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.net.tlsholder cimport TlsHolder
from dataproxy._core.net.transport cimport Transport, TransportOptions, TransportOps


cdef enum TlsFault:     # `Transport.error` of a failure that is not the kernel's: one of these plus a detail below 4096
    TLS_FIRST = 0x100000            # above every errno
    TLS_EXPIRED = 0x101000           # the peer's certificate has expired
    TLS_EARLY = 0x102000             # it is not valid yet
    TLS_WRONG_HOST = 0x103000        # it is for another host
    TLS_UNKNOWN_CA = 0x104000        # no known authority has signed it; detail: OpenSSL's number of the reason
    TLS_UNTRUSTED = 0x105000           # it was refused for another reason
    TLS_VERSION = 0x106000           # no common version or cipher; detail: OpenSSL's number
    TLS_CLIENT_NEEDED = 0x107000     # the peer wants a client certificate, and there is none; detail: its alert
    TLS_CLIENT_REFUSED = 0x108000    # the peer refused the client certificate; detail: its alert
    TLS_PLAIN = 0x109000             # the peer speaks no TLS
    TLS_CLOSED = 0x10a000            # the peer ended the stream before the handshake was over
    TLS_UNANSWERED = 0x10b000        # the peer has sent nothing since the handshake began
    TLS_ALERT = 0x10c000             # another alert of the peer; detail: its number
    TLS_FAILED = 0x10d000            # anything else; detail: OpenSSL's number
    TLS_UNFINISHED = 0x10e000        # the peer has sent something, but not enough to end the handshake


ctypedef struct TlsStream:          # owned by its transport
    Transport* transport
    TlsHolder* holder               # one of its users
    void* ssl
    Buf out                         # what is encrypted and did not fit into the socket
    size_t out_start
    int64_t loads                   # of the settings it was made from
    int ended                       # the status that every later `recv` gives, 0: none
    bint server
    bint connected                  # the connect is over, and the handshake has begun
    bint ready                      # the handshake is over
    bint more_follows               # the record that is being made is not the last one
    bint heard                      # the peer has sent something
    bint asked                      # the peer wanted a certificate, and there is none
    bint eof
    int error                       # errno of the socket


cdef const TransportOps* transport_tls() noexcept nogil
# Take over an accepted connection with the settings of `holder`: ST_OK, ST_SYSTEM or ST_NO_MEMORY.
cdef int tls_adopt(Transport* t, int fd, TlsHolder* holder) noexcept nogil
cdef int tls_set_up() noexcept nogil            # once, before all others; 0, or -1 without memory
cdef int tls_new_session(void* ssl, void* session) noexcept nogil
cdef int tls_asked(void* ssl, void** certificate, void** key) noexcept nogil
