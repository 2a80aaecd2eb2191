"""Record batches as runs: neighbouring rows with the same stream, span of time, attributes and key bucket share a run.

All rows are checked before the first is accepted.  Names are compared with those of the row before.  So in the
usual case, long runs of one stream, a row costs a few nanoseconds.  The streams of other rows are looked up in
groups, because a cache cannot hold many streams.

Locality: any thread, without the GIL.  Locks: none, except where a docstring names batcher.lock.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memset

from dataproxy._core.base.text cimport is_line
from dataproxy._core.base.buf cimport Buf, buf_free, buf_put, buf_put_decimal, buf_put_text, buf_put_u8
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.accumulate.batcher cimport batcher_span_ms
from dataproxy._core.producer.accumulate.state cimport NO_KEY, NO_TIME, Batcher
from dataproxy._core.producer.ingest.ids cimport OWN_ID_KEY, item_text_size, own_id_valid
from dataproxy._core.producer.accumulate.keys cimport row_bucket
from dataproxy._core.producer.accumulate.newstreams cimport (
    NAMES_AS_BEFORE, NAMES_MOST, NAMES_NEW, NAMES_NULL, StreamNames, newstreams_again, newstreams_find, newstreams_free,
)
from dataproxy._core.producer.ingest.rows cimport (
    ROW_EMPTY, ROW_GOOD, ROW_HAS_LF, ROW_NULL, ROW_TOO_LARGE, ROWS_STRIDED, Rows, body_limit, rows_get,
)
from dataproxy._core.producer.accumulate.streams cimport Stream
from dataproxy._core.plat.atomic cimport relaxed_load

cdef enum:
    KEYS_KNOWN = 64         # the size of KnownKeys.names

cdef int64_t TIME_LIMIT_MS = <int64_t>4294967296 * 1000     # type 7 counts seconds in 32 bits


cdef bint time_of(const TimeColumn* column, int64_t i, int64_t* ms) noexcept nogil:
    """Set ``ms`` to row ``i``'s data time in milliseconds, NO_TIME for a null; False if it is out of range.

    Locality: any thread.
    """
    cdef int64_t at = column.offset + i, value
    if column.validity != NULL and not (column.validity[at >> 3] >> (at & 7)) & 1:
        ms[0] = NO_TIME
        return True
    value = column.values[at]
    if column.multiplier > 1:
        if value < 0 or value > TIME_LIMIT_MS // column.multiplier:
            return False
        value *= column.multiplier
    elif column.divisor > 1 and value >= 0:
        value //= column.divisor
    ms[0] = value
    return 0 <= value < TIME_LIMIT_MS


cdef bint _plain(const uint8_t* p, size_t n) noexcept nogil:
    """Tell whether attribute text can be sent: ASCII without & = and NUL."""
    cdef size_t i
    for i in range(n):
        if p[i] >= 128 or p[i] == 38 or p[i] == 61 or p[i] == 0:
            return False
    return True


cdef int _attr_text(const AttrColumn* column, int64_t i, Buf* out, size_t* n) noexcept nogil:
    """Append row ``i``'s attributes as text.  ST_OK, ST_INVALID or ST_NO_MEMORY.

    Reserved names are refused by the callers, once for each new key.
    """
    cdef int64_t at = column.offset + i, k
    cdef const uint8_t* p = NULL
    cdef size_t size = 0, before = out.n
    cdef int failed = 0
    n[0] = 0
    if column.texts:
        if rows_get(&column.values, i, &p, n) and n[0]:
            failed = buf_put(out, p, n[0])
        return ST_NO_MEMORY if failed else ST_OK
    if column.validity != NULL and not (column.validity[at >> 3] >> (at & 7)) & 1:
        return ST_OK
    for k in range(column.offsets[at], column.offsets[at + 1]):
        if out.n > before:
            failed |= buf_put_u8(out, 38)
        if not rows_get(&column.keys, k, &p, &size) or size == 0 or not _plain(p, size):
            return ST_INVALID
        failed |= buf_put(out, p, size)
        failed |= buf_put_u8(out, 61)
        if not rows_get(&column.values, k, &p, &size) or not _plain(p, size) or size and p[size - 1] <= 32:
            return ST_INVALID               # servers remove blanks and control characters at the end of a value
        failed |= buf_put(out, p, size)
    n[0] = out.n - before
    return ST_NO_MEMORY if failed else ST_OK


cdef inline bint _key_bucket(const Columns* c, int64_t i, int* bucket) noexcept nogil:
    """Set ``bucket`` to that of row ``i``'s key, NO_KEY for a null; False for a value that cannot be a key."""
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    if not rows_get(&c.key, i, &p, &n):
        return True                         # like a message that is sent without a key: it is not ordered
    bucket[0] = row_bucket(p, n, c.key_buckets)
    return bucket[0] >= 0


cdef inline bint _name(const Rows* column, int64_t i, Slice* out) noexcept nogil:
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    if not rows_get(column, i, &p, &n):
        return False
    out[0] = slice_of(p, n)
    return True


cdef int _body(const Rows* rows, int64_t i, size_t limit, int lines, size_t* size) noexcept nogil:
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    size[0] = 0
    if not rows_get(rows, i, &p, &n):
        return ROW_NULL
    size[0] = n
    if n == 0:
        return ROW_EMPTY
    if n > limit:
        return ROW_TOO_LARGE
    if lines and not is_line(lines, p, n):
        return ROW_HAS_LF
    return ROW_GOOD


cdef bint known_key(KnownKeys* known, const AttrColumn* column, int64_t k) noexcept nogil:
    """Tell whether the name of entry ``k`` was noted; in the next place first, as rows mostly have the same names."""
    cdef Slice name
    cdef int i, at
    if not _name(&column.keys, k, &name):
        return False
    for i in range(known.n):
        at = known.last + 1 + i
        if at >= known.n:
            at -= known.n
        if slice_equals(known.names[at], name):
            known.last = at
            return True
    return False


cdef void note_key(KnownKeys* known, const AttrColumn* column, int64_t k) noexcept nogil:
    """Note the name of entry ``k`` as checked, if there is room for it."""
    if known.n < KEYS_KNOWN and _name(&column.keys, k, &known.names[known.n]):
        known.last = known.n
        known.n += 1


cdef Run* _add_run(RunTable* t) noexcept nogil:
    cdef Run* grown
    cdef int64_t cap
    if t.n == t.cap:
        cap = t.cap * 2 if t.cap else 64
        grown = <Run*>realloc(t.runs, <size_t>cap * sizeof(Run))
        if grown == NULL:
            return NULL
        t.runs = grown
        t.cap = cap
    t.n += 1
    memset(&t.runs[t.n - 1], 0, sizeof(Run))
    return &t.runs[t.n - 1]


cdef Run* _begin_run(
    RunTable* t, int64_t i, Stream* stream, int64_t when, size_t text_at, size_t text_n, int key_bucket,
) noexcept nogil:
    """Begin a run with row ``i``; NULL without memory."""
    cdef Run* run = _add_run(t)
    if run == NULL:
        return NULL
    run.stream = stream
    run.when = when
    run.start = i
    run.text_at = text_at
    run.text_n = text_n
    run.key_bucket = key_bucket
    t.apart = False
    return run


cdef bint _names(const Columns* c, int64_t i, Slice* group, Slice* stream) noexcept nogil:
    """Set row ``i``'s names; False when one is null and has no default."""
    group[0] = c.default_group
    stream[0] = c.default_stream
    if c.has_group and not _name(&c.group, i, group) and group.n == 0:
        return False
    return not c.has_stream or _name(&c.stream, i, stream) or stream.n != 0


cdef void _look_ahead(Batcher* b, const Columns* c, RunTable* t, int64_t from_row) noexcept nogil:
    """Find or make the streams of the next rows.  Locks: takes batcher.lock."""
    cdef StreamNames names[NAMES_MOST]
    cdef int64_t k, last = -1, n = min(c.value.n - from_row, <int64_t>NAMES_MOST)
    t.ahead_from = from_row
    t.ahead_to = from_row + n
    for k in range(n):
        names[k].kind = NAMES_NEW
        if not _names(c, from_row + k, &names[k].group, &names[k].stream):
            names[k].kind = NAMES_NULL
        elif last >= 0 and slice_equals(names[last].stream, names[k].stream) \
                and slice_equals(names[last].group, names[k].group):
            names[k].kind = NAMES_AS_BEFORE
        else:
            last = k
    newstreams_find(b, &t.made, names, <int>n, t.ahead)


cdef Stream* _stream_of(
    Batcher* b, const Columns* c, RunTable* t, int64_t i, Stream* last, int* problem,
) noexcept nogil:
    """Return row ``i``'s stream; NULL with a problem when its names are null or not known yet.

    Locks: may take batcher.lock.
    """
    cdef Slice group, stream
    cdef Stream* found = NULL
    if last != NULL and not c.has_group and not c.has_stream:
        return last
    if not t.ahead_from <= i < t.ahead_to:
        _look_ahead(b, c, t, i)
    found = t.ahead[i - t.ahead_from]
    if found != NULL:
        return found
    if not _names(c, i, &group, &stream):
        problem[0] = RUN_NULL_NAME
        return NULL
    found = newstreams_again(b, group, stream)
    if found == NULL:
        problem[0] = RUN_NEW_STREAM
    return found


cdef int _item_text(const Columns* c, int64_t i, int64_t when, Buf* out, size_t* n) noexcept nogil:
    cdef int status = ST_OK
    cdef size_t before = out.n
    n[0] = 0
    if c.attrs.present:
        status = _attr_text(&c.attrs, i, out, n)
    if status == ST_OK and c.exact_time and when != NO_TIME:
        if n[0] and buf_put_u8(out, 38) != ST_OK:
            return ST_NO_MEMORY
        if buf_put_text(out, "dtMs=") != ST_OK or buf_put_decimal(out, when) != ST_OK:
            return ST_NO_MEMORY
        n[0] = out.n - before
    if status == ST_OK and n[0] == 0 and c.least.n:
        status = buf_put(out, c.least.p, c.least.n)
        n[0] = c.least.n
    return status


cdef bint _joins(
    const Run* run, const Stream* stream, int64_t when, int64_t span_ms, const uint8_t* text, size_t text_at,
    size_t text_n,
) noexcept nogil:
    if run == NULL or run.stream != stream or run.text_n != text_n:
        return False
    if text_n:                          # the same attributes, and the time that a pack of its own would have
        return when == run.when and memcmp(text + run.text_at, text + text_at, text_n) == 0
    if when == NO_TIME or run.when == NO_TIME:
        return when == run.when
    return when // span_ms == run.when // span_ms


cdef int _row(Batcher* b, const Columns* c, RunTable* t, int64_t i, int lines, int skips) noexcept nogil:
    """Put row ``i`` into a run; a RunProblem.  ``skips``: bit 0 nulls, bit 1 empty bodies."""
    cdef Run* run = &t.runs[t.n - 1] if t.n else NULL
    cdef int problem = RUN_DONE, kind, status, key_bucket = NO_KEY
    cdef int64_t when = NO_TIME
    cdef size_t size = 0, text_at = t.text.n, text_n = 0, full_n, limit
    cdef Slice own_id
    cdef Stream* stream = NULL
    if c.marked != NULL and c.marked[i]:
        return RUN_MARKED
    stream = _stream_of(b, c, t, i, run.stream if run != NULL else NULL, &problem)
    if stream == NULL:
        return problem
    limit = <size_t>relaxed_load(<int64_t*>&stream.max_body)
    kind = _body(&c.value, i, limit, lines, &size)
    if kind != ROW_GOOD and not (kind == ROW_NULL and skips & 1) and not (kind == ROW_EMPTY and skips & 2):
        t.check.problem = kind
        t.check.bad_size = <int64_t>size
        return RUN_BAD_BODY
    if c.time.present and not time_of(&c.time, i, &when):
        return RUN_BAD_TIME
    if c.key_buckets:
        if not _key_bucket(c, i, &key_bucket):
            return RUN_BAD_KEY
        if run != NULL and run.key_bucket != key_bucket:
            t.apart = True
    if c.attrs.present or c.exact_time or c.least.n:
        status = _item_text(c, i, when, &t.text, &text_n)
        if status != ST_OK:
            return RUN_BAD_ATTRS if status == ST_INVALID else RUN_NO_MEMORY
    full_n = text_n
    if kind == ROW_GOOD and c.value.ids != NULL:
        if not _name(c.value.ids, i, &own_id) or not (c.ids_made or own_id_valid(own_id.p, own_id.n)):
            return RUN_BAD_ID
        full_n = item_text_size(own_id, slice_of(t.text.p, text_n))
    if kind == ROW_GOOD and full_n and size + full_n + 4 > limit:
        t.check.problem = ROW_TOO_LARGE
        t.check.bad_size = <int64_t>size
        return RUN_BAD_BODY
    if t.apart or not _joins(run, stream, when, batcher_span_ms(b), t.text.p, text_at, text_n):
        run = _begin_run(t, i, stream, when, text_at, text_n, key_bucket)
        if run == NULL:
            return RUN_NO_MEMORY
    elif text_n:
        t.text.n = text_at              # the run has the same text already
    run.end = i + 1
    if kind == ROW_NULL:
        t.check.nulls += 1
    elif kind == ROW_EMPTY:
        t.check.empties += 1
    else:
        t.messages += 1
        t.body_bytes += <int64_t>size
        t.bytes += <int64_t>(size + (full_n + 8 if full_n else (1 if lines else 4)))
    return RUN_DONE


cdef bint _alike(const Columns* c, int lines) noexcept nogil:
    """Tell whether nothing but the body and an id of fixed width can differ from row to row."""
    if lines or c.least.n or c.marked != NULL or c.has_group or c.has_stream or c.exact_time or c.key_buckets:
        return False
    return not (c.time.present or c.attrs.present) and (
        c.value.ids == NULL or c.ids_made and c.value.ids.kind == ROWS_STRIDED)


cdef void _go_on(const Columns* c, RunTable* t) noexcept nogil:
    """Put rows that are alike into the newest run, up to the first row that needs a full check."""
    cdef Run* run = &t.runs[t.n - 1]
    cdef const uint8_t* p = NULL
    cdef size_t size = 0, text_n = 0, limit
    cdef int64_t i = t.next_row, count, bytes = 0
    if c.value.ids != NULL:
        text_n = OWN_ID_KEY + <size_t>c.value.ids.width
    limit = body_limit(<size_t>relaxed_load(<int64_t*>&run.stream.max_body), text_n)
    while i < c.value.n and rows_get(&c.value, i, &p, &size) and 0 < size <= limit:
        bytes += <int64_t>size
        i += 1
    count = i - t.next_row
    t.next_row = i
    t.messages += count
    t.body_bytes += bytes
    t.bytes += bytes + count * <int64_t>(text_n + 8 if text_n else 4)
    if count:
        run.end = i


cdef void build_runs(
    Batcher* b, const Columns* columns, RunTable* table, bint skip_null, bint skip_empty, int lines,
) noexcept nogil:
    """Build runs from ``table.next_row`` on; stops at a row with ``table.problem`` set, RUN_DONE at the end.

    Locality: any thread.  Locks: takes batcher.lock, again for each group of NAMES_MOST rows.
    """
    cdef int skips = (1 if skip_null else 0) | (2 if skip_empty else 0)
    cdef bint alike = _alike(columns, lines)
    table.problem = RUN_DONE
    while table.next_row < columns.value.n:
        table.problem = _row(b, columns, table, table.next_row, lines, skips)
        if table.problem != RUN_DONE:
            return
        table.next_row += 1
        if alike:
            _go_on(columns, table)


cdef void runs_free(RunTable* table) noexcept nogil:
    """Release the table; ``made`` refers to nothing any more.  Locality: owner."""
    newstreams_free(&table.made)
    free(table.runs)
    buf_free(&table.text)
