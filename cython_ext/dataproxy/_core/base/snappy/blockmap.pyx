"""Walk the tags of a snappy block, six parts of it at once.

Where a tag ends depends only on the tag, so the walk is a chain of dependent loads, and a processor can run several
such chains at once.  A window of the block is cut into lanes.  It is not known which byte of a lane is a tag.  But a
walk that starts at a wrong byte meets a true tag after a few steps, almost surely; there the lane begins.  A lane is
used only if the lane before it ended exactly where it began.  So a wrong guess costs time, but never a wrong result.

Locks: none.
"""

from libc.string cimport memcpy

from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.bits cimport unlikely

cdef enum:
    LANES = 6
    GROUPS = 128                # of MAP_STRIDE tags, in one window
    LANE_BYTES = 2048
    LANE_LEAST = 256            # shorter ones do not pay
    SHORT_LITERAL = 60          # a literal whose size is in its tag
    GUESSES = 24                # steps after which a lane is at a true tag, almost surely
    GUESS_BACK = 90             # about the number of bytes of these steps
    GUESS_REACH = 1536          # at least the largest number of bytes of these steps, 61 each
    GROUP_REACH = 512           # the same for a group, with the bytes that are read together with its last tag
    NEAR = 2048                 # copies of the short form do not reach further back
    FAR = 65536                 # only copies of the longest form reach further back; those are left to libsnappy

cdef uint64_t _step[256]        # by tag: what it adds to a place; any value for tags that need tag_behind
cdef uint32_t _some[256]        # by tag: the bits of which one must be set for _step to hold
cdef uint32_t _far[256]         # by tag: the bits that are the distance of a long copy, times 256


cdef void _fill() noexcept nogil:
    cdef uint64_t tag, size
    for tag in range(256):
        size = (tag >> 2) + 1
        _step[tag] = 1
        _some[tag] = 0
        _far[tag] = 0
        if tag & 3 == 0 and size <= SHORT_LITERAL:
            _step[tag] = size << 32 | (size + 1)
            _some[tag] = 0xFFFFFFFF
        elif tag & 3 == 1:
            _step[tag] = (((tag >> 2) & 7) + 4) << 32 | 2
            _some[tag] = 0xFFE0
        elif tag & 3 == 2:
            _step[tag] = size << 32 | 3
            _some[tag] = 0xFFFF00
            _far[tag] = 0xFFFF00


_fill()


ctypedef struct Lanes:
    const uint8_t* p
    size_t safe                 # a place up to here can make a group of steps inside the block
    size_t start[LANES]
    size_t stop[LANES]
    int64_t need[LANES]         # as that of tag_behind, from the lane's start on
    bint bad                    # a lane met a tag that cannot be stepped over, and stopped there
    size_t groups
    uint64_t marks[(GROUPS + 1) * LANES]    # the places before the first group and behind each, content from the start


ctypedef struct Walk:
    const uint8_t* p
    size_t n
    uint64_t place
    Buf* marks


cdef uint64_t _literal(const uint8_t* p, size_t n, uint64_t place) noexcept nogil:
    """Return the place behind a literal of any size, or ``place``.  Locality: any thread."""
    cdef size_t at = <uint32_t>place
    cdef size_t size = p[at] >> 2
    cdef size_t extra, i
    if p[at] & 3 or at >= n:
        return place
    at += 1
    if size >= SHORT_LITERAL:
        extra = size - SHORT_LITERAL + 1
        if extra > 3 or n - at < extra:
            return place
        size = 0
        for i in range(extra):
            size |= <size_t>p[at + i] << (8 * i)
        at += extra
    size += 1
    if size > n - at:
        return place
    return (place >> 32) + size << 32 | (at + size)


cdef uint64_t tag_behind(const uint8_t* p, size_t n, uint64_t place, int64_t* need) noexcept nogil:
    """Step over any tag, everything checked.  Locality: any thread."""
    cdef size_t at = <uint32_t>place
    cdef uint8_t tag = p[at]
    cdef int64_t far
    if tag & 3 == 0:
        return _literal(p, n, place)
    if tag & 3 == 3 or n - at <= <size_t>(tag & 3):
        return place
    far = <int64_t>p[at + 1] | (<int64_t>(tag >> 5) << 8 if tag & 3 == 1 else <int64_t>p[at + 2] << 8)
    if far == 0:
        return place
    far = (far << 8) - <int64_t>(place >> 24)
    if far > need[0]:
        need[0] = far
    return place + _step[tag]


cdef inline void _pass(const uint8_t* p, size_t safe, uint32_t word, uint64_t* place, bint* bad) noexcept nogil:
    # `word` holds the bytes at the place.
    cdef uint64_t here = place[0]
    place[0] = here + _step[<uint8_t>word]
    if unlikely(word & _some[<uint8_t>word] == 0):
        place[0] = _literal(p, safe, here)
        bad[0] |= place[0] == here


cdef inline void _far_step(const uint8_t* p, size_t safe, uint64_t* place, bint* bad) noexcept nogil:
    # For places where every copy has enough content before it.
    cdef uint32_t word = 0
    memcpy(&word, p + <uint32_t>place[0], 4)
    _pass(p, safe, word, place, bad)


cdef inline void _near_step(const uint8_t* p, size_t safe, uint64_t* place, int64_t* need, bint* bad) noexcept nogil:
    # Blocks are below 16 MiB: the upper half of a place, times 256, is place >> 24.
    cdef uint32_t word = 0
    cdef int64_t far
    memcpy(&word, p + <uint32_t>place[0], 4)
    far = <int64_t>(word & _far[<uint8_t>word]) - <int64_t>(place[0] >> 24)
    need[0] = far if far > need[0] else need[0]
    _pass(p, safe, word, place, bad)


cdef void _far_group(Lanes* l) noexcept nogil:
    """Move every lane on by MAP_STRIDE tags.  Locality: any thread."""
    cdef const uint8_t* p = l.p
    cdef size_t safe = l.safe
    cdef bint bad = False
    cdef uint64_t* row = l.marks + l.groups * LANES
    cdef uint64_t p0 = row[0], p1 = row[1], p2 = row[2], p3 = row[3], p4 = row[4], p5 = row[5]
    cdef int _i
    for _i in range(MAP_STRIDE):
        _far_step(p, safe, &p0, &bad)
        _far_step(p, safe, &p1, &bad)
        _far_step(p, safe, &p2, &bad)
        _far_step(p, safe, &p3, &bad)
        _far_step(p, safe, &p4, &bad)
        _far_step(p, safe, &p5, &bad)
    row[6], row[7], row[8], row[9], row[10], row[11] = p0, p1, p2, p3, p4, p5
    l.groups += 1
    l.bad = bad


cdef void _near_group(Lanes* l) noexcept nogil:
    """Do the same where copies may reach back before the start of the content.  Locality: any thread."""
    cdef const uint8_t* p = l.p
    cdef size_t safe = l.safe
    cdef bint bad = False
    cdef uint64_t* row = l.marks + l.groups * LANES
    cdef uint64_t p0 = row[0], p1 = row[1], p2 = row[2], p3 = row[3], p4 = row[4], p5 = row[5]
    cdef int64_t n0 = l.need[0], n1 = l.need[1], n2 = l.need[2], n3 = l.need[3], n4 = l.need[4], n5 = l.need[5]
    cdef int _i
    for _i in range(MAP_STRIDE):
        _near_step(p, safe, &p0, &n0, &bad)
        _near_step(p, safe, &p1, &n1, &bad)
        _near_step(p, safe, &p2, &n2, &bad)
        _near_step(p, safe, &p3, &n3, &bad)
        _near_step(p, safe, &p4, &n4, &bad)
        _near_step(p, safe, &p5, &n5, &bad)
    row[6], row[7], row[8], row[9], row[10], row[11] = p0, p1, p2, p3, p4, p5
    l.need[0], l.need[1], l.need[2], l.need[3], l.need[4], l.need[5] = n0, n1, n2, n3, n4, n5
    l.groups += 1
    l.bad = bad


cdef void _guess(Lanes* l, size_t start, size_t lane) noexcept nogil:
    """Find where each lane of a window begins.  Locality: any thread."""
    cdef const uint8_t* p = l.p
    cdef uint64_t back = start - GUESS_BACK
    cdef uint64_t p1 = back + lane, p2 = back + 2 * lane, p3 = back + 3 * lane, p4 = back + 4 * lane
    cdef uint64_t p5 = back + 5 * lane
    cdef int i, _i
    for _i in range(GUESSES):
        p1 += <uint32_t>_step[p[p1]]
        p2 += <uint32_t>_step[p[p2]]
        p3 += <uint32_t>_step[p[p3]]
        p4 += <uint32_t>_step[p[p4]]
        p5 += <uint32_t>_step[p[p5]]
    l.start[0], l.start[1], l.start[2], l.start[3], l.start[4], l.start[5] = start, p1, p2, p3, p4, p5
    l.stop[0], l.stop[1], l.stop[2], l.stop[3], l.stop[4], l.stop[5] = p1, p2, p3, p4, p5, start + 6 * lane
    for i in range(LANES):
        l.marks[i] = l.start[i]
        l.need[i] = 0
    l.groups = 0
    l.bad = False


cdef bint _goes_on(const Lanes* l) noexcept nogil:
    """Tell whether some lane is not at its end, and all lanes can make one more group.

    Locality: any thread.
    """
    cdef const uint64_t* row = l.marks + l.groups * LANES
    cdef size_t at
    cdef bint behind = False
    cdef bint inside = not l.bad and l.groups < GROUPS
    cdef int i
    for i in range(LANES):
        at = <uint32_t>row[i]
        inside &= at <= l.safe
        behind |= at < l.stop[i]
    return behind and inside


cdef inline void _mark(Walk* w, uint64_t place) noexcept nogil:
    (<uint64_t*>(w.marks.p + w.marks.n))[0] = place     # there is room
    w.marks.n += sizeof(uint64_t)


cdef int _join(Walk* w, Lanes* l) noexcept nogil:
    """Join the lanes as far as each begins where the one before it ended; the place moves to the end of the last one.

    Returns the number of joined lanes, or ST_PROTOCOL.
    Locality: owner of the marks.
    """
    cdef uint64_t base, place, before
    cdef int64_t need
    cdef size_t g, walked
    cdef int i
    for i in range(LANES):
        if <uint32_t>w.place != l.start[i]:
            return i
        base = w.place >> 32
        place = l.start[i]
        need = l.need[i]
        for g in range(l.groups + 1):
            if <uint32_t>l.marks[g * LANES + i] > l.stop[i]:
                break
            place = l.marks[g * LANES + i]
            _mark(w, place + (base << 32))
        walked = 0
        while <uint32_t>place < l.stop[i]:
            before = place
            place = tag_behind(w.p, w.n, place, &need)
            if place == before:
                return ST_PROTOCOL
            walked += 1
            if walked % MAP_STRIDE == 0:
                _mark(w, place + (base << 32))
        if need > <int64_t>(base << 8):
            return ST_PROTOCOL
        w.place = place + (base << 32)
    return LANES


cdef int _window(Walk* w, Lanes* l, size_t lane) noexcept nogil:
    """Walk six lanes from the place on.  Returns the same as ``_join``.  Locality: owner of the marks."""
    cdef bint far = w.place >> 32 >= FAR
    _guess(l, <uint32_t>w.place, lane)
    while _goes_on(l):
        if far:
            _far_group(l)
        else:
            _near_group(l)
    return _join(w, l)


cdef int _alone(Walk* w, size_t until, size_t content) noexcept nogil:
    """Walk tag by tag until a place in the block, and one in its content.

    Locality: owner of the marks.
    """
    cdef size_t safe = w.n - GROUP_REACH if w.n > GROUP_REACH else 0
    cdef uint64_t place = w.place
    cdef uint64_t mark
    cdef int64_t need = 0
    cdef bint bad = False
    cdef int _i
    while <uint32_t>place < until or (<uint32_t>place < w.n and place >> 32 < content):
        if buf_reserve(w.marks, sizeof(uint64_t)) != ST_OK:
            return ST_NO_MEMORY
        mark = place
        _mark(w, mark)
        if <uint32_t>mark <= safe and mark >> 32 >= NEAR:
            for _i in range(MAP_STRIDE):
                _near_step(w.p, safe, &place, &need, &bad)
        if bad or place == mark:        # a large literal near the end, or not tried
            bad = False
            place = _stride(w, mark, &need)
        if need > 0 or place == mark:
            return ST_PROTOCOL
    w.place = place
    return ST_OK


cdef uint64_t _stride(Walk* w, uint64_t place, int64_t* need) noexcept nogil:
    """Return the place behind some tags, checked one by one.  Locality: any thread."""
    cdef uint64_t before
    cdef int _i
    for _i in range(MAP_STRIDE):
        before = place
        place = tag_behind(w.p, w.n, before, need)
        if place == before or <uint32_t>place >= w.n:
            break
    return place


cdef int _walk(Walk* w) noexcept nogil:
    """Walk the whole block.  Locality: owner of the marks."""
    cdef Lanes l
    cdef size_t at, lane, left
    cdef int joined
    cdef int status = _alone(w, 0, NEAR)
    l.p = w.p
    l.safe = w.n - GROUP_REACH if w.n > GROUP_REACH else 0
    while status == ST_OK and <uint32_t>w.place < w.n:
        at = <uint32_t>w.place
        left = w.n - at
        lane = (left - GUESS_REACH) // LANES if left > GUESS_REACH else 0
        lane = lane if lane < LANE_BYTES else LANE_BYTES
        if lane < LANE_LEAST:
            return _alone(w, w.n, 0)
        if buf_reserve(w.marks, 2 * sizeof(l.marks)) != ST_OK:      # one for each MAP_STRIDE tags of two bytes
            return ST_NO_MEMORY
        joined = _window(w, &l, lane)
        if joined < 0:
            return joined
        if joined < LANES // 2:     # large literals: too few tags for a lane to find a true one
            at = <uint32_t>w.place + LANES * lane
            status = _alone(w, at if at < w.n else w.n, 0)
    return status


cdef int block_map(const uint8_t* p, size_t n, size_t limit, Buf* room, BlockMap* out) noexcept nogil:
    """Walk a block and store its marks.  Locality: owner of ``room``."""
    cdef Walk w
    cdef uint64_t size = 0
    cdef size_t head = 0
    cdef size_t start = (room.n + 7) & ~<size_t>7       # where marks are aligned
    cdef int status
    if n > MAP_MAX_BLOCK:
        return ST_PROTOCOL
    while head < n and head < 4:
        size |= <uint64_t>(p[head] & 0x7F) << (7 * head)
        head += 1
        if p[head - 1] < 0x80:
            break
    if head == 0 or p[head - 1] >= 0x80 or size == 0 or size > limit or head == n:
        return ST_PROTOCOL
    w.p = p
    w.n = n
    w.place = head
    w.marks = room
    if buf_reserve(room, 8) != ST_OK:
        return ST_NO_MEMORY
    room.n = start
    status = _walk(&w)
    if status != ST_OK:
        return status
    if w.place != (size << 32 | n):
        return ST_PROTOCOL
    out.p = p
    out.n = n
    out.size = <size_t>size
    out.marks = <uint64_t*>(room.p + start)
    out.count = (room.n - start) // sizeof(uint64_t)
    return ST_OK
