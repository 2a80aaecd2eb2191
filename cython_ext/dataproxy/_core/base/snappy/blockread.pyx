"""Reading of single words: copies are followed back to their literals, or to words that were read before.

Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from dataproxy._core.base.snappy.blockmap cimport tag_behind

cdef enum:
    WORD = 4
    LEAST_EFFORT = 64
    EFFORT = 24                 # bytes of the block that are unpacked in the time of a look for one tag


ctypedef struct Found:          # a tag
    const uint8_t* p            # of a literal: its bytes
    size_t first                # in the content
    size_t size
    size_t back                 # of a copy: how far; else 0


cdef void block_reader(BlockReader* r, const BlockMap* map) noexcept nogil:
    """Make a reader at the start of a map.  Locality: owner."""
    r.map = map
    r.mark = 0
    r.effort = LEAST_EFFORT + map.n // EFFORT
    memset(r.kept, 0, sizeof(r.kept))


cdef size_t _mark_before(const BlockMap* map, size_t at, size_t high) noexcept nogil:
    """Return the last mark that is not behind ``at``, below ``high``.  Locality: any thread."""
    cdef size_t low = 0
    cdef size_t middle
    while high - low > 1:
        middle = (low + high) >> 1
        if map.marks[middle] >> 32 <= at:
            low = middle
        else:
            high = middle
    return low


cdef Found _tag_at(const BlockMap* map, size_t mark, size_t at) noexcept nogil:
    """Find the tag that gives the byte ``at``, from a mark before it on.  Locality: any thread."""
    cdef uint64_t place = map.marks[mark]
    cdef uint64_t behind = place
    cdef int64_t need = 0
    cdef const uint8_t* p
    cdef Found found
    while behind >> 32 <= at:
        place = behind
        behind = tag_behind(map.p, map.n, place, &need)
    p = map.p + <uint32_t>place
    found.first = place >> 32
    found.size = (behind >> 32) - found.first
    found.p = map.p + <uint32_t>behind - found.size
    found.back = 0
    if p[0] & 3 == 1:
        found.back = <size_t>(p[0] >> 5) << 8 | p[1]
    elif p[0] & 3 == 2:
        found.back = <size_t>p[2] << 8 | p[1]
    return found


cdef inline size_t _slot(uint32_t at) noexcept nogil:
    return (at * <uint32_t>2654435761) >> 22


cdef const Word* _known(const BlockReader* r, size_t at) noexcept nogil:
    """Return a kept word that has the byte ``at``, or NULL.  Locality: owner."""
    cdef const Word* word
    cdef uint32_t first = <uint32_t>at + 1
    cdef uint32_t i
    for i in range(WORD):
        word = &r.kept[_slot(first - i)]
        if word.at == first - i and word.at:
            return word
    return NULL


cdef size_t _bytes(BlockReader* r, size_t mark, size_t at, size_t n, uint8_t* out) noexcept nogil:
    """Read up to ``n`` bytes at ``at``, whose tag is behind ``mark``; returns their number, 0 if it takes too long.

    Locality: owner.
    """
    cdef Found tag
    cdef const Word* word
    while r.effort:
        r.effort -= 1
        tag = _tag_at(r.map, mark, at)
        n = min(n, tag.first + tag.size - at)
        if tag.back == 0:
            memcpy(out, tag.p + (at - tag.first), n)
            return n
        at -= tag.back * ((at - tag.first) // tag.back + 1)      # a copy may repeat what it has just written
        word = _known(r, at)
        if word != NULL:
            n = min(n, word.at - 1 + WORD - at)
            memcpy(out, <const uint8_t*>&word.value + (at + 1 - word.at), n)
            return n
        mark = _mark_before(r.map, at, mark + 1)
    return 0


cdef bint block_word(BlockReader* r, size_t at, uint32_t* word) noexcept nogil:
    """Read one word.  Locality: owner."""
    cdef const BlockMap* map = r.map
    cdef Word* kept = &r.kept[_slot(<uint32_t>at + 1)]
    cdef uint8_t raw[WORD]
    cdef size_t filled = 0
    cdef size_t n
    while filled < WORD:
        while r.mark + 1 < map.count and map.marks[r.mark + 1] >> 32 <= at + filled:
            r.mark += 1
        n = _bytes(r, r.mark, at + filled, WORD - filled, raw + filled)
        if n == 0:
            return False
        filled += n
    memcpy(word, raw, WORD)
    kept.at = <uint32_t>at + 1
    kept.value = word[0]
    return True
