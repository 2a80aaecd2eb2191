# cython: language_level=3
"""Generator of an open loop: messages are handed over when they are due, at little cost of its own.

In the interpreter the generator took as much of the core as the producer that it was there to measure.
"""

from array import array

from libc.time cimport timespec
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, nanosleep

cdef enum:
    PAUSE_NS = 50000        # slept while nothing is due


cdef double now() noexcept nogil:
    """Return the seconds of ``time.perf_counter()``, which is this clock on Linux.  Locality: any thread."""
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return t.tv_sec + t.tv_nsec * 1e-9


def send_due(list sends, object watch, list bodies, double rate, size_t chunk, size_t stride, double seconds):
    """Send ``rate`` messages a second for so long, in chunks between two looks at the clock.

    The calls ``sends`` take a message each in turn, ``send(body)``, but for the last of every ``stride``-th chunk:
    ``watch(number, body)`` takes it with its place among all messages.  Its call of ``sends`` is passed over.  Returns
    when it began, and when each chunk was handed over (``array("d")``).
    Other threads may have the interpreter's lock after each chunk, as they may in a loop of Python's.
    """
    cdef size_t total = <size_t>(seconds * rate) // chunk
    cdef size_t number, i, last, at = 0, turn = 0, n = <size_t>len(bodies), calls = <size_t>len(sends)
    cdef double began, due
    cdef timespec pause
    handed = array("d", bytes(8 * total))
    cdef double[::1] times = handed
    pause.tv_sec = 0
    pause.tv_nsec = PAUSE_NS
    began = now()
    for number in range(total):
        due = began + number * chunk / rate
        with nogil:
            while now() < due:
                nanosleep(&pause, NULL)
            times[number] = now()
        last = chunk - 1 if number % stride == 0 else chunk
        for i in range(last):
            sends[turn](bodies[at])
            at = at + 1 if at + 1 < n else 0
            turn = turn + 1 if turn + 1 < calls else 0
        if last < chunk:
            watch((number + 1) * chunk - 1, bodies[at])
            at = at + 1 if at + 1 < n else 0
            turn = turn + 1 if turn + 1 < calls else 0
    return began, handed
