"""Results of the parts of one pack: a list in the order of the messages, in which equal neighbours are joined.

Locks: none.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport strcmp, strlen

from dataproxy._core.base.buf cimport buf_free, buf_put, buf_put_u8, buf_reserve
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_add

cdef enum:
    FIRST_CAP = 8
    TEXT_ROOM = 512             # most bytes of a node's name and a refusal's text
    COMPARED = 8                # stored texts that a new one is compared with: proxies mostly repeat the same text


cdef Parts* parts_new() noexcept nogil:
    """Return parts without a result and with one reference, or NULL.  Locality: any thread."""
    cdef Parts* x = <Parts*>calloc(1, sizeof(Parts))
    if x == NULL:
        return NULL
    x.refs = 1
    if buf_put_u8(&x.texts, 0) != ST_OK:
        free(x)
        return NULL
    return x


cdef Parts* parts_keep(Parts* x) noexcept nogil:
    """Take one more reference.  Locality: any thread."""
    atomic_add(&x.refs, 1)
    return x


cdef void parts_idle(Parts* x) noexcept nogil:
    """Release the memory that only sending needs.  Locality: executor."""
    free(x.ends)
    free(x.saved)
    x.ends = NULL
    x.saved = NULL


cdef void parts_release(Parts* x) noexcept nogil:
    """Drop one reference.  Locality: any thread."""
    if atomic_add(&x.refs, -1) == 0:
        parts_idle(x)
        free(x.done)
        buf_free(&x.texts)
        free(x)


cdef bint parts_room(Parts* x) noexcept nogil:
    """Make room for two more results; False without memory.  Locality: executor."""
    cdef uint32_t cap = x.cap * 2 if x.cap else FIRST_CAP
    cdef Part* grown
    if x.n_done + 2 <= x.cap:
        return True
    grown = <Part*>realloc(x.done, cap * sizeof(Part))
    if grown == NULL:
        return False
    x.done = grown
    x.cap = cap
    return True


cdef uint32_t _text(Parts* x, const char* text) noexcept nogil:
    """Return the offset of ``text`` in ``texts``; 0, an empty text, if there is no memory."""
    cdef size_t at = 0, n = strlen(text)
    cdef int left = COMPARED
    while at < x.texts.n and left > 0:
        if strcmp(<const char*>x.texts.p + at, text) == 0:
            return <uint32_t>at
        at += strlen(<const char*>x.texts.p + at) + 1
        left -= 1
    at = x.texts.n
    if n > TEXT_ROOM or buf_reserve(&x.texts, n + 1) != ST_OK:
        return 0
    buf_put(&x.texts, text, n)
    buf_put_u8(&x.texts, 0)
    return <uint32_t>at


cdef void parts_enter(Parts* x, const Part* part, const char* node, const char* text) noexcept nogil:
    """Store the result of the next messages, which follow those of the last call; ``text`` may be NULL.

    Locality: executor.
    """
    cdef Part one = part[0]
    cdef Part* last = &x.done[x.n_done - 1] if x.n_done else NULL
    dp_assert(one.n > 0, "a part holds a message: n=%u, first=%u", one.n, one.first)
    dp_assert(one.first == (last.first + last.n if last != NULL else 0),
              "a part follows the last one: first=%u, n=%u, n_done=%u", one.first, one.n, x.n_done)
    one.node = _text(x, node)
    one.text = _text(x, text) if text != NULL else 0
    if (last != NULL and last.outcome == one.outcome and last.code == one.code and last.attempts == one.attempts
            and last.refused == one.refused and last.maybe_delivered == one.maybe_delivered
            and last.node == one.node and last.text == one.text):
        last.n += one.n
        last.bytes += one.bytes
        return
    dp_assert(x.n_done < x.cap, "n_done < cap: n_done=%u, cap=%u", x.n_done, x.cap)
    x.done[x.n_done] = one
    x.n_done += 1


cdef const Part* parts_find(const Parts* x, uint32_t place) noexcept nogil:
    """Return the part of a settled pack that the message at ``place`` is in.  Locality: any thread."""
    cdef uint32_t low = 0, high = x.n_done - 1, middle
    dp_assert(x.n_done > 0, "a pack in parts has results: place=%u", place)
    while low < high:
        middle = (low + high + 1) // 2
        if x.done[middle].first <= place:
            low = middle
        else:
            high = middle - 1
    return &x.done[low]


cdef int64_t parts_messages(const Parts* x, int outcome) noexcept nogil:
    """Return how many messages of a settled pack have this outcome.  Locality: any thread."""
    cdef int64_t n = 0
    cdef uint32_t i
    for i in range(x.n_done):
        if x.done[i].outcome == outcome:
            n += x.done[i].n
    return n
