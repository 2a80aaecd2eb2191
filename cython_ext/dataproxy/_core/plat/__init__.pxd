"""Declarations of the operating system and of C libraries, and nothing else.

What lives here.  All ``cdef extern`` declarations of the compiled core: sockets, epoll, eventfd, timerfd, threads and
mutexes, clocks, random bytes, files, scheduling, snappy, LMDB, OpenSSL (found at run time), the Arrow C data interface,
and what Python's C API does not export to Cython.  The headers ``dp_*.h`` hold the inline C that Cython cannot spell:
atomic operations, byte order, checksums by processor instructions, 128-bit numbers, prefetching.

Threads.  Any thread.  A declaration has no state; what a call may block on is said where it is called.

What it may use.  Only the C library, the libraries named above, and other files of this folder.  No other folder of
the core declares anything ``extern``, and ``tests/arch`` checks that.  So a port to another system begins here, and
``wire`` may use ``plat/endian`` alone: it has no sockets, clocks, threads or atomic operations.
"""
