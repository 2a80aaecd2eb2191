"""epoll: readiness of many descriptors in one call."""

from libc.stdint cimport uint32_t, uint64_t


cdef extern from "sys/epoll.h" nogil:
    int EPOLL_CLOEXEC
    int EPOLL_CTL_ADD
    int EPOLL_CTL_MOD
    int EPOLL_CTL_DEL
    uint32_t EPOLLIN
    uint32_t EPOLLOUT
    uint32_t EPOLLERR
    uint32_t EPOLLHUP
    uint32_t EPOLLRDHUP
    uint32_t EPOLLET

    ctypedef union epoll_data_t:
        void* ptr
        uint64_t u64

    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data

    int epoll_create1(int flags) noexcept
    int epoll_ctl(int epfd, int op, int fd, epoll_event* event) noexcept
    int epoll_wait(int epfd, epoll_event* events, int maxevents, int timeout_ms) noexcept
