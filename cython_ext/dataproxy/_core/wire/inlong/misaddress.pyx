"""Turning the sequence number of a reply into a foreign one, in place."""

from libc.stdint cimport uint32_t
from libc.string cimport memcmp

from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.inlong.const cimport (
    ACK_FIXED, ACK_UNIQ, LENGTH_SIZE, TEXT_BODY_LEN, TEXT_FIXED, TEXT_TYPE, TYPE_BINARY, TYPE_MASK,
)

cdef enum:
    FAR_AWAY = 0x40000000       # no client has so many requests open
    DIGIT_0 = 48
    DIGIT_9 = 57


cdef void misaddress_reply(uint8_t* reply, size_t n) noexcept nogil:
    """Change ``uniq``, or the first digit of ``mid`` or ``messageId``; length and all else stay.

    Locality: any thread.
    Locks: none.
    """
    cdef uint32_t body
    if n <= LENGTH_SIZE:
        return
    if (reply[TEXT_TYPE] & TYPE_MASK) == TYPE_BINARY:
        if n >= ACK_FIXED:
            store_be32(reply + ACK_UNIQ, load_be32(reply + ACK_UNIQ) ^ <uint32_t>FAR_AWAY)
        return
    if n < TEXT_FIXED:
        return
    body = load_be32(reply + TEXT_BODY_LEN)
    if body > n - TEXT_FIXED:
        return
    _change_number(reply + TEXT_FIXED + body, n - TEXT_FIXED - body)


cdef void _change_number(uint8_t* text, size_t n) noexcept nogil:
    """Change the first digit of the sequence number in attribute text.  Locality: any thread.  Locks: none."""
    cdef size_t at = 0
    cdef size_t key = 0
    while at < n:
        key = 0
        if n - at > 4 and memcmp(text + at, <const char*>b"mid=", 4) == 0:
            key = 4
        elif n - at > 10 and memcmp(text + at, <const char*>b"messageId=", 10) == 0:
            key = 10
        if key > 0 and DIGIT_0 <= text[at + key] <= DIGIT_9:
            # Another first digit, never 0: the value is far from that of any neighbour in a client's sequence.
            text[at + key] = DIGIT_9 if text[at + key] != DIGIT_9 else DIGIT_0 + 8
        while at < n and text[at] != 38:
            at += 1
        at += 1
