"""Write the sequence number of another request into a reply, in place.

Locality: any thread.  Locks: none.
"""

from libc.string cimport memcmp

from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.inlong.const cimport (
    ACK_FIXED, ACK_UNIQ, LENGTH_SIZE, TEXT_BODY_LEN, TEXT_FIXED, TEXT_TYPE, TYPE_BINARY, TYPE_MASK,
)

cdef enum:
    DIGIT_0 = 48
    DIGIT_9 = 57


cdef void misaddress_reply(uint8_t* reply, size_t n, uint32_t seq) noexcept nogil:
    """Make the reply answer ``seq``: in ``uniq``, or in the digits of ``mid`` or ``messageId``.

    The length stays the same: if the number has more digits than the old one, only its last digits are written.
    """
    cdef uint32_t body
    if n <= LENGTH_SIZE:
        return
    if (reply[TEXT_TYPE] & TYPE_MASK) == TYPE_BINARY:
        if n >= ACK_FIXED:
            store_be32(reply + ACK_UNIQ, seq)
        return
    if n < TEXT_FIXED:
        return
    body = load_be32(reply + TEXT_BODY_LEN)
    if body > n - TEXT_FIXED:
        return
    _change_number(reply + TEXT_FIXED + body, n - TEXT_FIXED - body, seq)


cdef void _change_number(uint8_t* text, size_t n, uint32_t seq) noexcept nogil:
    """Change the sequence number in attribute text."""
    cdef size_t at = 0
    cdef size_t end
    cdef size_t key = 0
    cdef uint32_t rest
    while at < n:
        key = 0
        if n - at > 4 and memcmp(text + at, <const char*>b"mid=", 4) == 0:
            key = 4
        elif n - at > 10 and memcmp(text + at, <const char*>b"messageId=", 10) == 0:
            key = 10
        end = at
        while end < n and text[end] != 38:
            end += 1
        rest = seq
        at = end
        while key > 0 and at > 0 and DIGIT_0 <= text[at - 1] <= DIGIT_9:
            text[at - 1] = <uint8_t>(DIGIT_0 + rest % 10)
            rest //= 10
            at -= 1
        at = end + 1
