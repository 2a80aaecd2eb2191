"""Reasons of refusals.

A refusal may name no frame, if the server could not read the attributes.  If only one frame on the connection waits
for an answer, the refusal is for that frame.  If several wait, it is not known which one is meant, because refusals may
come before the answers to earlier frames.  Then the refusal is kept for the connection, and a frame that gets no answer
there reports it as its last reason.

Locality: executor.  Locks: none.
"""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport slice_text
from dataproxy._core.io.link cimport REASON_ROOM
from dataproxy._core.plat.atomic cimport relaxed_load

cdef enum:
    LONGEST = 400           # bytes of a text


cdef void reason_note(Pack* p, int code, Slice text) noexcept nogil:
    """Keep the newest refusal of ``p``: its code, and its text cut at 400 bytes."""
    cdef size_t n = text.n if text.n < LONGEST else LONGEST
    cdef char* copy = NULL
    if n > 0:
        copy = <char*>malloc(n + 1)     # without memory only the code is kept
    if copy != NULL:
        memcpy(copy, text.p, n)
        copy[n] = 0
    free(p.error_text)
    p.error_text = copy
    p.refused = code


cdef void reason_note_link(Link* link, int code, Slice text) noexcept nogil:
    """Keep a refusal that came over ``link`` and names no frame."""
    cdef size_t n = text.n if text.n < REASON_ROOM else REASON_ROOM - 1
    if n > 0:
        memcpy(link.reason, text.p, n)
    link.reason[n] = 0
    link.reason_code = code
    link.reason_end = relaxed_load(&link.counters.sent_bytes)


cdef void reason_inherit(LinkPool* pool, Pack* p) noexcept nogil:
    """Give ``p``, in flight and without an answer, the refusal that its connection got after ``p`` was written."""
    cdef const Link* link
    if p.link < 0 or p.refused != 0:
        return
    link = pool.links[p.link]
    if link.reason_code != 0 and p.sent_end <= link.reason_end:
        reason_note(p, link.reason_code, slice_text(link.reason))
