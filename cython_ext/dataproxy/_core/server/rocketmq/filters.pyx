"""Filters by tags: the store's index of streams finds what is wanted.

Tags that no stream is called by are in the stream without a name, and looked for in the properties of its messages.
The server compares whole tags, where a broker compares their hashes: clients compare tags again, and find the same.

Locality: server loop.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t

from dataproxy._core.base.buf cimport Buf, buf_put, buf_put_be16, buf_put_slice
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_is, slice_of, slice_text
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.plat.endian cimport load_be16
from dataproxy._core.wire.rocketmq.const cimport (
    ANSWER_SUBSCRIPTION_PARSE_FAILED, ANSWER_SUCCESS, ANSWER_SYSTEM_ERROR,
)
from dataproxy._core.wire.rocketmq.entry cimport is_stream
from dataproxy._core.wire.rocketmq.properties cimport property_value

cdef enum:
    BAR = 124
    TAG_MOST = 32767


cdef Slice _trimmed(Slice text) noexcept nogil:
    """Return a text without the blanks around it, as Java trims."""
    while text.n and text.p[0] <= 32:
        text = slice_of(text.p + 1, text.n - 1)
    while text.n and text.p[text.n - 1] <= 32:
        text.n -= 1
    return text


cdef Slice _alternative(Slice* rest) noexcept nogil:
    """Take what stands before the next ``||``, and the bars."""
    cdef Slice all_ = rest[0]
    cdef size_t at = 0
    while at + 1 < all_.n and not (all_.p[at] == BAR and all_.p[at + 1] == BAR):
        at += 1
    if at + 1 >= all_.n:
        rest[0] = slice_of(NULL, 0)
        return all_
    rest[0] = slice_of(all_.p + at + 2, all_.n - at - 2)
    return slice_of(all_.p, at)


cdef int32_t filter_expression(Pulls* f, Slice expression) noexcept nogil:
    """Take an expression apart; no tag in it means all messages."""
    cdef Slice rest = _trimmed(expression)
    cdef Slice tag
    cdef int n = 0
    f.tags.n = 0
    if slice_is(rest, b"*"):
        return filter_tags(f)
    while rest.n:
        tag = _trimmed(_alternative(&rest))
        if tag.n == 0:
            continue
        n += 1
        if n > TAGS_MOST or tag.n > TAG_MOST:
            return ANSWER_SUBSCRIPTION_PARSE_FAILED
        if buf_put_be16(&f.tags, <unsigned short>tag.n) != ST_OK or buf_put_slice(&f.tags, tag) != ST_OK:
            return ANSWER_SYSTEM_ERROR
    return filter_tags(f)


cdef bint _has(const Buf* slices, Slice one) noexcept nogil:
    cdef const Slice* known = <const Slice*>slices.p
    cdef size_t i
    for i in range(slices.n // sizeof(Slice)):
        if slice_equals(known[i], one):
            return True
    return False


cdef int32_t filter_tags(Pulls* f) noexcept nogil:
    """Set the streams to look into; no tag means all of them."""
    cdef Slice one
    cdef Slice nameless = slice_of(NULL, 0)
    cdef size_t at = 0
    cdef int n = 0
    cdef Buf* list_
    f.streams.n = f.odd.n = 0
    while at + 2 <= f.tags.n:
        n += 1
        if n > TAGS_MOST:       # each is compared with all before it
            return ANSWER_SUBSCRIPTION_PARSE_FAILED
        one = slice_of(f.tags.p + at + 2, load_be16(f.tags.p + at))
        at += 2 + one.n
        list_ = &f.streams if is_stream(one) else &f.odd
        if not _has(list_, one) and buf_put(list_, &one, sizeof(Slice)) != ST_OK:
            return ANSWER_SYSTEM_ERROR
    if f.odd.n and buf_put(&f.streams, &nameless, sizeof(Slice)) != ST_OK:
        return ANSWER_SYSTEM_ERROR
    return ANSWER_SUCCESS


cdef bint filter_takes(const Pulls* f, Slice stream, Slice properties) noexcept nogil:
    """Tell whether a message that was found is wanted."""
    cdef Slice tag
    if f.odd.n == 0 or stream.n:
        return True
    return property_value(properties, slice_text(b"TAGS"), &tag) and _has(&f.odd, tag)
