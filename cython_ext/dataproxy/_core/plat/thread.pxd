"""POSIX mutexes and condition variables (a thread that holds one never takes the GIL)."""

from libc.stdint cimport int64_t
from posix.time cimport timespec


cdef extern from "pthread.h" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    ctypedef struct pthread_condattr_t:
        pass
    ctypedef struct pthread_mutexattr_t:
        pass
    int pthread_atfork(
        void (*prepare)() noexcept nogil, void (*parent)() noexcept nogil, void (*child)() noexcept nogil) noexcept
    int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attr) noexcept
    int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept
    int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept
    int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept
    int pthread_condattr_init(pthread_condattr_t* attr) noexcept
    int pthread_condattr_destroy(pthread_condattr_t* attr) noexcept
    int pthread_condattr_setclock(pthread_condattr_t* attr, int clock) noexcept
    int pthread_cond_init(pthread_cond_t* cond, const pthread_condattr_t* attr) noexcept
    int pthread_cond_destroy(pthread_cond_t* cond) noexcept
    int pthread_cond_signal(pthread_cond_t* cond) noexcept
    int pthread_cond_broadcast(pthread_cond_t* cond) noexcept
    int pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) noexcept
    int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex, const timespec* deadline) noexcept
