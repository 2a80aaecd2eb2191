"""Sockets: addresses, options, non-blocking stream input and output."""

from libc.stdint cimport uint16_t, uint32_t


cdef extern from "sys/uio.h" nogil:
    cdef struct iovec:
        void* iov_base
        size_t iov_len


cdef extern from "sys/socket.h" nogil:
    ctypedef unsigned int socklen_t
    ctypedef unsigned short sa_family_t

    cdef struct sockaddr:
        sa_family_t sa_family

    cdef struct sockaddr_storage:
        sa_family_t ss_family

    cdef struct msghdr:
        void* msg_name
        socklen_t msg_namelen
        iovec* msg_iov
        size_t msg_iovlen
        void* msg_control
        size_t msg_controllen
        int msg_flags

    cdef struct linger:
        int l_onoff
        int l_linger

    int AF_INET
    int AF_INET6
    int AF_UNIX
    int SOCK_STREAM
    int SOCK_NONBLOCK
    int SOCK_CLOEXEC
    int SOL_SOCKET
    int SO_ERROR
    int SO_KEEPALIVE
    int SO_LINGER
    int SO_REUSEADDR
    int SO_RCVBUF
    int SO_SNDBUF
    int MSG_NOSIGNAL
    int MSG_DONTWAIT
    int MSG_MORE
    int SHUT_WR
    int SHUT_RDWR

    int socket(int domain, int kind, int protocol) noexcept
    int bind(int fd, const sockaddr* address, socklen_t n) noexcept
    int listen(int fd, int backlog) noexcept
    int accept4(int fd, sockaddr* address, socklen_t* n, int flags) noexcept
    int connect(int fd, const sockaddr* address, socklen_t n) noexcept
    int shutdown(int fd, int how) noexcept
    int setsockopt(int fd, int level, int name, const void* value, socklen_t n) noexcept
    int getsockopt(int fd, int level, int name, void* value, socklen_t* n) noexcept
    int getsockname(int fd, sockaddr* address, socklen_t* n) noexcept
    int getpeername(int fd, sockaddr* address, socklen_t* n) noexcept
    ssize_t recv(int fd, void* p, size_t n, int flags) noexcept
    ssize_t send(int fd, const void* p, size_t n, int flags) noexcept
    ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept


cdef extern from "netinet/in.h" nogil:
    int IPPROTO_TCP
    int IPPROTO_IPV6
    int IPV6_V6ONLY

    cdef struct in_addr:
        uint32_t s_addr

    cdef struct in6_addr:
        pass

    cdef struct sockaddr_in:
        sa_family_t sin_family
        uint16_t sin_port
        in_addr sin_addr

    cdef struct sockaddr_in6:
        sa_family_t sin6_family
        uint16_t sin6_port
        in6_addr sin6_addr

    uint16_t htons(uint16_t v) noexcept
    uint16_t ntohs(uint16_t v) noexcept


cdef extern from "netinet/tcp.h" nogil:
    int TCP_NODELAY


cdef extern from "sys/ioctl.h" nogil:
    int ioctl(int fd, unsigned long request, ...) noexcept


cdef extern from "linux/sockios.h" nogil:
    unsigned long SIOCOUTQ      # bytes that the peer has not acknowledged


cdef extern from "arpa/inet.h" nogil:
    int inet_pton(int family, const char* text, void* out) noexcept
    const char* inet_ntop(int family, const void* address, char* out, socklen_t n) noexcept


cdef extern from "unistd.h" nogil:
    int close(int fd) noexcept


cdef extern from "fcntl.h" nogil:
    int F_GETFL
    int F_SETFL
    int O_NONBLOCK
    int fcntl(int fd, int command, ...) noexcept
