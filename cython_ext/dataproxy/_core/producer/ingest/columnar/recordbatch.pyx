"""Record batches whose columns say where each row goes; the Spark sink sends its rows through this module.

Locality: GIL, any thread; released while rows are copied and while a call waits.  Locks: batcher.lock.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_FULL, ST_INVALID, ST_LIMIT, ST_OK
from dataproxy._core.producer.ingest.columnar.arrow cimport ArrowChunks, column_rows, open_arrow
from dataproxy._core.producer.accumulate.batcher cimport batcher_fits, batcher_max_frame
from dataproxy._core.producer.accumulate.state cimport EX_NOTHING, EX_RESULTS
from dataproxy._core.producer.results.accounting cimport accounting_lost, accounting_turns
from dataproxy._core.producer.ingest.columnar.bodies cimport BodyEncoder
from dataproxy._core.producer.ingest.columnar.columns cimport (
    RUN_BAD_ATTRS, RUN_BAD_BODY, RUN_BAD_ID, RUN_BAD_KEY, RUN_BAD_TIME, RUN_DONE, RUN_MARKED, RUN_NEW_STREAM,
    RUN_NULL_NAME, AttrColumn, Columns, KnownKeys, RunTable, build_runs, known_key, note_key, runs_free,
)
from dataproxy._core.producer.engine cimport Engine
from dataproxy._core.producer.ingest.ids cimport OWN_ID_MAX, own_id_valid
from dataproxy._core.producer.ingest.idsource cimport bad_id
from dataproxy._core.producer.accumulate.keys cimport KEY_MAX, no_ordering
from dataproxy._core.producer.producer cimport ProducerCore
from dataproxy._core.producer.ingest.columnar.rowids cimport (
    ROW_BLOCK_BITS, ROW_HASH_TEXT, ROW_NUMBER_TEXT, RowIds, row_ids_begin,
)
from dataproxy._core.producer.accumulate.newstreams cimport newstreams_leave
from dataproxy._core.producer.ingest.columnar.routes cimport attr_column, attrs_at, bytes_at, text_at, time_column
from dataproxy._core.producer.ingest.columnar.rowkeys cimport RowKeys
from dataproxy._core.producer.accumulate.rowpacks cimport rowpacks_append_runs
from dataproxy._core.producer.ingest.rows cimport ROWS_OFFSETS64, Rows, rows_get
from dataproxy._core.producer.ingest.stream cimport outgrown, raise_full
from dataproxy._core.producer.accumulate.streamlife cimport streams_walk, streams_walked
from dataproxy._core.encode.lines cimport REFUSED_LIKE_NULL, Lines, lines_free
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema
from dataproxy._core.plat.atomic cimport relaxed_load
from dataproxy._core.plat.clock cimport now_us

from dataproxy.errors import InvalidMessageError
from dataproxy.escapes import ESCAPED_KEYS
from dataproxy.problems import key_problem, row_problem

__all__ = ["send_record_batch"]


cdef str _name(bint has_column, const Rows* column, int64_t i, str other):
    """Return row ``i``'s name; ``other`` without a column, and for a null unless it is empty."""
    name = text_at(column, i) if has_column else other
    return other or None if name is None else name


cdef class Findings:
    """Collect the rows of a batch that are left out; if ``refused`` is None, the first such row ends the call."""
    cdef list refused           # (row, code, reason)
    cdef dict before            # row -> the error that was found before the runs were built
    cdef bytearray marks
    cdef object marked          # rows that came with the attribute _escaped; None where attributes were not escaped

    def __cinit__(self, list refused, object marked):
        self.refused = refused
        self.marked = marked
        self.before = {}
        self.marks = None

    cdef bint is_added(self, int64_t row):
        """Tell whether a row's attribute _escaped, if it has one, was added when its attributes were escaped."""
        return self.marked is not None and row not in self.marked

    cdef int mark(self, Columns* c, int64_t row, object error) except -1:
        """Note that a row cannot be sent; raises ``error`` if no row may be left out."""
        if self.refused is None:
            raise error
        if self.marks is None:
            self.marks = bytearray(c.value.n)
            c.marked = <const uint8_t*>PyByteArray_AS_STRING(self.marks)
        self.marks[row] = 1
        self.before[row] = error
        return 0


cdef object _of_row(object error, int64_t i):
    """Return an error about a name or an attribute, with row ``i`` added to it."""
    if "item" in error.details:
        return error
    return InvalidMessageError(
        f"{error.message} (item {i})", code=error.code, hint=error.hint, details={**error.details, "item": i})


cdef int _solve(ProducerCore core, Columns* c, RunTable* t, str group, str stream, Findings findings) except -1:
    """Handle the row at which the run builder stopped: make a stream, or raise the error of that row."""
    cdef int64_t i = t.next_row
    row_group = _name(c.has_group, &c.group, i, group)
    row_stream = _name(c.has_stream, &c.stream, i, stream)
    if t.problem == RUN_MARKED:
        raise findings.before[i]
    if t.problem == RUN_NEW_STREAM:
        core.name_rows(row_stream, row_group)
        return 0
    if t.problem == RUN_NULL_NAME:
        raise InvalidMessageError(
            f"the {'group_id' if row_group is None else 'stream_id'} of row {i} is null",
            hint="fill it, or set one name for all rows as an option", details={"item": i}, code="BAD_NAME")
    if t.problem == RUN_BAD_BODY:
        raise row_problem(i, ("", "null", "empty", "large", "line")[t.check.problem], t.check.bad_size,
                          batcher_max_frame(&core.engine.batcher))
    if t.problem == RUN_BAD_ID:
        raise bad_id(c.value.ids, i, i, 0)
    if t.problem == RUN_BAD_TIME:
        value = int(c.time.values[c.time.offset + i]) * c.time.multiplier // c.time.divisor
        raise InvalidMessageError(
            f"the data time of row {i}, {value:,} ms after 1970, is outside of 1970 to 2106",
            hint="a bigint counts milliseconds; a null means the time of sending",
            details={"item": i}, code="BAD_TIME")
    if t.problem == RUN_BAD_KEY:
        wrong = bytes_at(&c.key, i)
        raise key_problem(wrong, len(wrong), KEY_MAX)
    if t.problem == RUN_BAD_ATTRS:
        attrs = attrs_at(&c.attrs, i)
        if findings.is_added(i):
            attrs.pop(ESCAPED_KEYS, None)       # it was added when they were escaped
        core.policy.item_text(attrs, None, ())
        raise InvalidMessageError(
            f"the attributes of row {i} are not allowed", details={"item": i}, code="BAD_ATTRIBUTE")
    raise MemoryError("no memory for a record batch")


cdef int _check_keys(ProducerCore core, Columns* c, Findings findings) except -1:
    """Refuse reserved attribute names; the Python rules check each distinct valid key once."""
    cdef const AttrColumn* a = &c.attrs
    cdef KnownKeys known
    cdef int64_t i, k
    good = set()
    known.n = 0
    for i in range(c.value.n):
        for k in range(a.offsets[a.offset + i], a.offsets[a.offset + i + 1]):
            if known_key(&known, a, k):
                continue
            key = text_at(&a.keys, k)
            if key in good or (key == ESCAPED_KEYS and findings.is_added(i)):
                continue
            try:
                core.policy.item_text({key: "x"}, None, ())
                good.add(key)
                note_key(&known, a, k)
            except InvalidMessageError as error:
                findings.mark(c, i, _of_row(_key_problem(core, key, text_at(&a.values, k), error), i))
    return 0


cdef object _key_problem(ProducerCore core, str key, str value, object other):
    """Return the error of a bad key together with its value; ``other`` if the value is null."""
    if value is None:
        return other
    try:
        core.policy.item_text({key: value}, None, ())
    except InvalidMessageError as error:
        return error
    return other


cdef int _check_lines(Columns* c, const Lines* lines, Findings findings) except -1:
    """Refuse rows with a value that the text format cannot represent."""
    cdef int64_t i
    if lines.n_refused == 0:
        return 0
    for i in range(lines.n):
        if lines.refused[i] == REFUSED_LIKE_NULL:
            findings.mark(c, i, InvalidMessageError(
                f"a value equals nullText, so readers would take it for a null (item {i})", code="BAD_BODY",
                hint="set nullText to a text that no value has, or to an empty text if readers need not tell them "
                     "apart",
                details={"item": i}))
        elif lines.refused[i]:
            findings.mark(c, i, InvalidMessageError(
                f"a value contains a separator and cannot be escaped (item {i})", code="BAD_BODY",
                hint="set the option escape, or use another separator", details={"item": i}))
    return 0


cdef int _read_routes(
    ArrowSchema* schema, ArrowArray* array, Columns* c, int group_id, int stream_id, int dt, int attrs, int key,
    int key_buckets,
) except -1:
    """Describe the columns that say where each row goes.  Raises InvalidMessageError and ConfigError."""
    if group_id >= 0:
        column_rows(schema, array, group_id, &c.group)
        c.has_group = True
    if stream_id >= 0:
        column_rows(schema, array, stream_id, &c.stream)
        c.has_stream = True
    if dt >= 0:
        time_column(schema, array, dt, &c.time)
    if attrs >= 0:
        attr_column(schema, array, attrs, &c.attrs)
    if key >= 0:
        if key_buckets == 0:
            raise no_ordering()
        column_rows(schema, array, key, &c.key)
        c.key_buckets = key_buckets
    return 0


def send_record_batch(
    ProducerCore core, batch, *, int value=-1, BodyEncoder encoder=None, int group_id=-1, int stream_id=-1, int dt=-1,
    int attrs=-1, frozenset marked=None, int message_id=-1, int key=-1, object row_ids=None, int64_t first_row=0,
    str group="", str stream="", bint exact_time=False, list refused=None, int64_t lost_before=-1,
):
    """Accept the rows of one Arrow record batch (a struct array) and return (accepted, nulls, empties, body bytes).

    ``value`` and the other numbers are column indices, -1 for none; with ``encoder`` the bodies are made from other
    columns.  ``marked``: attributes were escaped; these rows, which had the mark before, are refused.  ``group`` and
    ``stream`` are the names of rows for which there is no column, or a null in it.  ``message_id`` is a column of ids
    without nulls.  Instead of it, ``row_ids`` is a RowKeys, or a prefix: then ids are made from the prefix, from each
    row's number, counted from ``first_row``, and from the content of the 256 rows of its block.  Batches then begin at
    a multiple of 256, and only the last batch may end elsewhere.  ``key`` is a column of keys and needs
    ``ordering="key"``: rows of one key keep their order; a null means no key.  Null and empty bodies follow
    ``null_value`` and ``empty_value``.  All rows are checked before the first is accepted.  With ``refused`` rows that
    cannot be sent are left out and added to that list as (row, code, reason).  With ``lost_before`` a full buffer ends
    the call if more messages than that were lost: the rest of the batch is not accepted, see ``report().accepted``.
    Raises InvalidMessageError naming the row, BufferFullError, ClosedError, ForkedError, ValueError.  Any thread.
    """
    cdef ArrowChunks chunks = open_arrow(batch)
    cdef ArrowArray* array = chunks.next_chunk()
    cdef Columns c
    cdef RunTable t
    cdef RowIds made
    cdef Lines lines
    cdef bytes default_group = group.encode(), default_stream = stream.encode()
    cdef Findings findings
    core.check_usable()
    if array == NULL:               # a stream without rows gives no chunk
        return 0, 0, 0, 0
    memset(&c, 0, sizeof(Columns))
    memset(&t, 0, sizeof(RunTable))
    memset(&made, 0, sizeof(RowIds))
    memset(&lines, 0, sizeof(Lines))
    _read_routes(chunks.schema, array, &c, group_id, stream_id, dt, attrs, key, core.key_buckets)
    if message_id >= 0:
        core.policy.check_ids()
        column_rows(chunks.schema, array, message_id, &c.ids)
    c.default_group = slice_of(<const char*>default_group, len(default_group))
    c.default_stream = slice_of(<const char*>default_stream, len(default_stream))
    c.exact_time, c.least = exact_time, core.policy.least
    findings = Findings(refused, marked)
    try:
        if encoder is None:
            column_rows(chunks.schema, array, value, &c.value)
        else:
            encoder.make(chunks.schema, array, &lines)
            _rows_of(&lines, &c.value)
            _check_lines(&c, &lines, findings)
        if message_id >= 0:
            c.value.ids = &c.ids
        if attrs >= 0:
            _check_keys(core, &c, findings)
        if row_ids is not None:
            _make_ids(core, chunks.schema, array, &c, &made, row_ids, first_row)
        _accept(core, &c, &t, group, stream, findings, &made if made.columns != NULL else NULL, lost_before)
        return t.messages, t.check.nulls, t.check.empties, t.body_bytes
    finally:
        runs_free(&t)
        lines_free(&lines)


cdef void _rows_of(const Lines* lines, Rows* rows) noexcept:
    """Describe encoded lines as rows of bodies."""
    memset(rows, 0, sizeof(Rows))
    rows.kind = ROWS_OFFSETS64
    rows.offsets64 = lines.offsets
    rows.base = lines.text.p
    rows.validity = lines.validity
    rows.n = lines.n


cdef int _make_ids(
    ProducerCore core, ArrowSchema* schema, ArrowArray* array, Columns* c, RowIds* made, object row_ids,
    int64_t first_row,
) except -1:
    """Prepare the ids: those of a RowKeys are made now, those by row numbers when their rows are written.

    Raises ValueError and InvalidMessageError.
    """
    cdef bytes prefix
    cdef const uint8_t* p
    cdef size_t n
    core.policy.check_ids()
    c.ids_made = True
    if isinstance(row_ids, RowKeys):
        c.value.ids = (<RowKeys>row_ids).make(schema, array, c)
        return 0
    prefix = row_ids
    p = <const uint8_t*>PyBytes_AS_STRING(prefix)
    n = <size_t>PyBytes_GET_SIZE(prefix)
    if first_row & ((1 << ROW_BLOCK_BITS) - 1):
        raise ValueError(f"row {first_row} does not begin a block of {1 << ROW_BLOCK_BITS} rows")
    if not own_id_valid(p, n) or n + ROW_NUMBER_TEXT + ROW_HASH_TEXT > OWN_ID_MAX:
        raise InvalidMessageError(
            f"{prefix!r} cannot begin an id", hint="use printable ASCII without space, &, = and |")
    row_ids_begin(made, c, p, n, first_row)
    c.value.ids = &made.rows
    return 0


cdef int _accept(
    ProducerCore core, Columns* c, RunTable* t, str group, str stream, Findings findings, RowIds* made,
    int64_t lost_before,
) except -1:
    """Check all rows, then accept them.  Until then no stream is freed, because runs hold no references to them."""
    cdef Engine* g = core.engine
    streams_walk(&g.batcher)
    try:
        _build(core, c, t, group, stream, findings)
        core.keep_streams(&t.made)
        _append(core, c, t, made, lost_before)
    finally:
        if g.generation == this_generation:     # not in the child of a signal handler that forked
            newstreams_leave(&g.batcher, &t.made)       # of a call that ended with an error
            streams_walked(&g.batcher)
    return 0


cdef int _build(ProducerCore core, Columns* c, RunTable* t, str group, str stream, Findings findings) except -1:
    while True:
        with nogil:
            build_runs(&core.engine.batcher, c, t, core.policy.skip_null, core.policy.skip_empty, core.policy.lines)
        if t.problem == RUN_DONE:
            return 0
        try:
            _solve(core, c, t, group, stream, findings)
        except InvalidMessageError as found:
            error = _of_row(found, t.next_row)
            if findings.refused is None:
                raise error from None
            findings.refused.append((t.next_row, error.code, error.message))
            t.next_row += 1
            t.apart = True


cdef int64_t _sent_before(const Columns* c, int64_t row) noexcept:
    """Return how many of the rows before ``row`` are messages; the others were skipped."""
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    cdef int64_t i, count = 0
    for i in range(row):
        if rows_get(&c.value, i, &p, &n) and n > 0:
            count += 1
    return count


cdef int _append(ProducerCore core, Columns* c, RunTable* t, RowIds* made, int64_t lost_before) except -1:
    cdef int64_t run = 0, row = 0, seen, deadline = 0, limit
    cdef int status, exempt = EX_NOTHING
    g = core.engine
    if core.raises and not batcher_fits(&g.batcher, t.bytes, t.messages):
        raise_full(core, 0)
    while True:
        seen = accounting_turns(&g.accounting)
        with nogil:
            status = rowpacks_append_runs(&g.batcher, &c.value, t.runs, t.n, t.text.p, &run, &row, made, exempt, NULL)
        if status == ST_OK:
            return 0
        if status == ST_INVALID:
            limit = relaxed_load(<int64_t*>&t.runs[run].stream.max_body)
            raise row_problem(row, "line", 0, limit, _sent_before(c, row))
        if status == ST_LIMIT:
            raise outgrown(&c.value, row, 0, t.runs[run].stream, t.runs[run].text_n, _sent_before(c, row))
        if status != ST_FULL:
            core.check_usable()
            raise MemoryError(f"no memory for the rows from number {row} on")
        if core.blocks and exempt == EX_NOTHING and core.calls_back():
            exempt = EX_RESULTS
            continue
        if lost_before >= 0 and accounting_lost(&g.accounting) > lost_before:
            return 0
        if deadline == 0:
            deadline = now_us() + core.max_block_us
        if not core.blocks or not core.wait_room(seen, deadline):
            raise_full(core, _sent_before(c, row))
