"""Rows of a table into the producer: made and checked; a large piece is accepted when all of its rows are good.

A table is cut into parts of some thousand rows.  Parts are made and checked until their bodies come to `PIECE_BYTES`
or the table ends; then all of them are accepted.  So a table that is not larger is accepted as a whole or not at all.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memset

from dataproxy._core.base.made cimport BY_CORE
from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_FULL, ST_INVALID, ST_LIMIT, ST_OK
from dataproxy._core.producer.ingest.columnar.arrowtable cimport ArrowTable, TableChunk, next_table_chunk, shift_rows
from dataproxy._core.producer.accumulate.batcher cimport batcher_fits, batcher_max_frame
from dataproxy._core.producer.accumulate.state cimport EX_NOTHING, EX_RESULTS, NO_TIME
from dataproxy._core.producer.results.accounting cimport accounting_turns
from dataproxy._core.producer.ingest.columnar.bodies cimport BodyEncoder
from dataproxy._core.producer.ingest.columnar.columns cimport (
    RUN_BAD_ATTRS, RUN_BAD_BODY, RUN_BAD_ID, RUN_BAD_KEY, RUN_BAD_TIME, RUN_DONE, RUN_MARKED, RUN_NEW_STREAM,
    RUN_NULL_NAME, Columns, Run, TimeColumn, build_runs, time_of,
)
from dataproxy._core.producer.results.delivery cimport BatchDelivery, keep_ids
from dataproxy._core.producer.engine cimport Engine
from dataproxy._core.producer.accumulate.keys cimport no_ordering
from dataproxy._core.producer.producer cimport ProducerCore
from dataproxy._core.producer.ingest.columnar.routes cimport attr_column, attrs_at, bytes_at, text_at, time_column
from dataproxy._core.producer.accumulate.rowpacks cimport rowpacks_append_runs
from dataproxy._core.producer.ingest.rows cimport ROWS_OFFSETS64
from dataproxy._core.producer.results.segments cimport Segments
from dataproxy._core.producer.ingest.stream cimport partly, raise_full
from dataproxy._core.producer.accumulate.streamlife cimport streams_walk, streams_walked
from dataproxy._core.producer.ingest.columnar.tableattrs cimport AttrTexts, attrs_in_columns, attrs_in_map
from dataproxy._core.producer.ingest.columnar.tablepart cimport (
    TablePart, attribute_text, checked_attrs, messages_between, next_in_seconds, part_lines,
)
from dataproxy._core.producer.results.callbacks cimport check_callback, watch_segments
from dataproxy._core.encode.lines cimport REFUSED_LIKE_NULL, Lines, lines_free
from dataproxy._core.plat.clock cimport now_us

from dataproxy.errors import DataProxyError, InvalidMessageError
from dataproxy.outcomes import Refusal

__all__ = ["send_table"]

cdef enum:
    PART_ROWS = 8192            # rows made at once: their bodies mostly stay in the second-level cache
    PIECE_BYTES = 33554432      # of bodies that are checked before the first of them is accepted
    NAMED = 100                 # refused rows that a result names


@cython.final
cdef class TableSend:
    """Do one call of ``send_rows``.  Locality: GIL, one thread.  Locks: sends take batcher.lock."""
    cdef ProducerCore core
    cdef ArrowTable table
    cdef BodyEncoder encoder, shower, attr_encoder
    cdef int group_id, stream_id, dt, message_id, key, attr_map
    cdef list attr_keys
    cdef str group, stream
    cdef bytes group_bytes, stream_bytes
    cdef bint exact_time, escape
    cdef object explain         # (kind, row, column, shown row, facts) -> the error
    cdef object refuse          # (row, error, its columns as JSON); None: a bad row ends the call
    cdef set good_keys
    cdef int64_t rows           # read so far
    cdef BatchDelivery out
    cdef list owners            # (messages, group, stream) in order; None: nobody asks

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("made by send_table")

    # --- reading

    cdef TableChunk chunk(self):
        """Return the next chunk with its routes described, None at the end."""
        cdef TableChunk chunk = next_table_chunk(self.table)
        cdef Columns* c
        if chunk is None:
            return None
        c = &chunk.columns
        if self.group_id >= 0:
            chunk.read_text(self.group_id, &c.group)
            c.has_group = True
        if self.stream_id >= 0:
            chunk.read_text(self.stream_id, &c.stream)
            c.has_stream = True
        if self.dt >= 0:
            time_column(chunk.source.schema, chunk.array, self.dt, &c.time)
        if self.attr_map >= 0:
            attr_column(chunk.source.schema, chunk.array, self.attr_map, &c.attrs)
        if self.key >= 0:
            chunk.read_text(self.key, &c.key)
            c.key_buckets = self.core.key_buckets
        if self.message_id >= 0:
            chunk.read_text(self.message_id, &c.ids)
        c.default_group = slice_of(<const char*>self.group_bytes, len(self.group_bytes))
        c.default_stream = slice_of(<const char*>self.stream_bytes, len(self.stream_bytes))
        c.exact_time = self.exact_time
        c.least = self.core.policy.least
        self.encoder._open(&chunk.bodies, chunk.source.schema, chunk.array)
        if self.attr_encoder is not None:
            self.attr_encoder._open(&chunk.attrs, chunk.source.schema, chunk.array)
            chunk.has_attrs = True
        return chunk

    cdef TablePart part(self, TableChunk chunk, int64_t start, int64_t n):
        """Make the bodies of ``n`` rows and find those that cannot be sent."""
        cdef TablePart p = TablePart()
        cdef Columns* c = &p.c
        cdef int status
        p.chunk = chunk
        p.start = start
        p.first = self.rows
        c[0] = chunk.columns
        shift_rows(&c.group, start, n)
        shift_rows(&c.stream, start, n)
        shift_rows(&c.key, start, n)
        shift_rows(&c.ids, start, n)
        c.time.offset += start
        c.attrs.offset += start
        with nogil:
            status = part_lines(
                &p.lines, &chunk.bodies, self.encoder.columns, self.encoder.n_columns, &self.encoder.style, start, n,
                self.encoder.usual)
        if status != ST_OK:
            raise MemoryError(f"no memory for the bodies of {n} rows")
        self.encoder.usual = p.lines.text.n
        c.value.kind = ROWS_OFFSETS64
        c.value.offsets64 = p.lines.offsets
        c.value.base = p.lines.text.p
        c.value.validity = p.lines.validity
        c.value.n = n
        if self.message_id >= 0:
            c.value.ids = &c.ids
        self.rows += n
        if p.lines.n_refused:
            self.check_lines(p)
        if c.time.present and c.time.divisor == 1 and c.time.multiplier == 1:
            self.check_times(p)
        if self.core.policy.single:
            self.read_texts(p)
        elif self.attr_map >= 0 or chunk.has_attrs:
            self.read_attrs(p)
        self.build(p)
        return p

    # --- checking

    cdef object problem(self, str kind, TablePart p, int64_t i, int column, dict facts):
        """Return the error of row ``i`` of a part, about one column, or (-1) about the whole row."""
        name = self.table.names[column] if column >= 0 else None
        facts["accepted"] = self.out.segments.messages
        return self.explain(kind, p.first + i, name, self.shown(p, i, column), facts)

    cdef bytes shown(self, TablePart p, int64_t i, int column):
        """Return a row's columns, or one of them, as JSON; None if they cannot be encoded."""
        cdef Lines lines
        cdef int status
        cdef const int* columns = self.shower.columns
        cdef int n = self.shower.n_columns
        if column >= 0:
            columns, n = &column, 1
        try:
            p.chunk.open_shown(self.shower)
        except DataProxyError:
            return None
        memset(&lines, 0, sizeof(Lines))
        try:
            status = part_lines(&lines, &p.chunk.shown, columns, n, &self.shower.style, p.start + i, 1, 256)
            return (<const char*>lines.text.p)[:lines.text.n] if status == ST_OK and lines.text.n else None
        finally:
            lines_free(&lines)

    cdef int check_lines(self, TablePart p) except -1:
        """Note the rows with a value that their text format cannot represent."""
        cdef int64_t i
        for i in range(p.lines.n):
            if p.lines.refused[i]:
                kind = "like_null" if p.lines.refused[i] == REFUSED_LIKE_NULL else "mark"
                self.note(p, i, self.problem(kind, p, i, self.culprit(p, i), {}))
        return 0

    cdef int culprit(self, TablePart p, int64_t i) except -2:
        """Return the first column of a row's body that its text format cannot represent."""
        cdef Lines lines
        cdef int pair[2]
        cdef int k, status
        for k in range(self.encoder.n_columns):
            pair[0] = pair[1] = self.encoder.columns[k]         # a body of one value may be empty, of two it may not
            memset(&lines, 0, sizeof(Lines))
            status = part_lines(&lines, &p.chunk.bodies, pair, 2, &self.encoder.style, p.start + i, 1, 256)
            refused = status == ST_OK and lines.n_refused != 0
            lines_free(&lines)
            if refused:
                return pair[0]
        return -1

    cdef int check_times(self, TablePart p) except -1:
        """Note the rows whose data time seems to be in seconds, not milliseconds."""
        cdef int64_t i = 0
        while True:
            with nogil:
                i = next_in_seconds(&p.c.time, i, p.c.value.n)
            if i < 0:
                return 0
            self.note(p, i, self.time_problem(p, i))
            i += 1

    cdef object time_problem(self, TablePart p, int64_t i):
        """Return the error of a row's data time."""
        cdef const TimeColumn* t = &p.c.time
        value = int(t.values[t.offset + i]) * t.multiplier // t.divisor
        try:
            self.core.policy.item_text(None, value, ())
        except InvalidMessageError as error:
            return self.problem("other", p, i, self.dt, {"error": error})
        return self.problem("time", p, i, self.dt, {})

    cdef int read_attrs(self, TablePart p) except -1:
        """Describe the part's attributes, and note the rows with reserved ones."""
        cdef int64_t i, n = p.c.value.n
        cdef list rows
        if p.chunk.has_attrs:
            rows = attrs_in_columns(self.attr_encoder, &p.chunk.attrs, self.attr_keys, p.start, n)
        elif self.escape:
            rows = attrs_in_map(&p.c.attrs, n)
        else:
            return self.check_map_keys(p)
        for i in range(n):
            try:
                rows[i] = checked_attrs(self.core.policy, rows[i])
            except InvalidMessageError as error:
                self.note(p, i, self.problem("other", p, i, self.blamed_attrs(p), {"error": error}))
                rows[i] = []
        p.attrs = AttrTexts()
        p.attrs.describe(rows, &p.c.attrs)
        return 0

    cdef int read_texts(self, TablePart p) except -1:
        """Write each row's attributes and data time as the text that is sent, where a message is alone in its frame."""
        cdef int64_t i, when = NO_TIME, n = p.c.value.n
        cdef list rows, texts = []
        if p.chunk.has_attrs:
            rows = attrs_in_columns(self.attr_encoder, &p.chunk.attrs, self.attr_keys, p.start, n)
        elif self.attr_map >= 0:
            rows = attrs_in_map(&p.c.attrs, n)
        elif p.c.time.present:
            rows = [[]] * n
        else:
            return 0
        for i in range(n):
            text = b""
            if p.c.time.present and not time_of(&p.c.time, i, &when):
                when = NO_TIME              # the row is refused for it
            try:
                text = attribute_text(self.core.policy, rows[i], when)
            except InvalidMessageError as error:
                self.note(p, i, self.problem("other", p, i, self.blamed_attrs(p), {"error": error}))
            texts.append(text)
        p.attrs = AttrTexts()
        p.attrs.describe_texts(texts, &p.c.attrs)
        return 0

    cdef int blamed_attrs(self, TablePart p):
        """Return the column that an error of attributes names, -1 if there are several."""
        if self.attr_map >= 0:
            return self.attr_map
        if self.attr_encoder is None:
            return -1
        return self.attr_encoder.columns[0] if self.attr_encoder.n_columns == 1 else -1

    cdef int check_map_keys(self, TablePart p) except -1:
        """Note the rows with reserved attribute names; each distinct name is checked once."""
        cdef int64_t i, k, at
        for i in range(p.c.value.n):
            at = p.c.attrs.offset + i
            if p.c.attrs.validity != NULL and not (p.c.attrs.validity[at >> 3] >> (at & 7)) & 1:
                continue
            here = set()
            for k in range(p.c.attrs.offsets[at], p.c.attrs.offsets[at + 1]):
                key = text_at(&p.c.attrs.keys, k)
                if key in here:
                    self.note(p, i, self.problem("twice", p, i, self.attr_map, {}))
                here.add(key)
                if key in self.good_keys:
                    continue
                try:
                    self.core.policy.item_text({key: text_at(&p.c.attrs.values, k)}, None, ())
                    self.good_keys.add(key)
                except InvalidMessageError as error:
                    self.note(p, i, self.problem("other", p, i, self.attr_map, {"error": error}))
        return 0

    cdef int note(self, TablePart p, int64_t i, object error) except -1:
        """Leave a row out, or raise ``error`` if no row may be left out."""
        if self.refuse is None:
            raise error
        return p.mark(i, error)

    cdef int build(self, TablePart p) except -1:
        """Find the streams of a part's rows and check them one by one."""
        while True:
            with nogil:
                build_runs(
                    &self.core.engine.batcher, &p.c, &p.t, self.core.policy.skip_null, self.core.policy.skip_empty,
                    self.core.policy.lines)
            self.core.keep_streams(&p.t.made)
            if p.t.problem == RUN_DONE:
                return 0
            error = self.solve(p, p.t.next_row)
            if error is None:
                continue
            if self.refuse is None:
                raise error
            self.left_out(p, p.t.next_row, error)
            p.t.next_row += 1
            p.t.apart = True

    cdef int left_out(self, TablePart p, int64_t i, object error) except -1:
        """Count a row that is left out, and pass it to ``refuse``."""
        self.out.refused += 1
        if self.out.refused <= NAMED:
            self.out.refusals = (*self.out.refusals, Refusal(p.first + i, error.code, error.message))
        self.refuse(p.first + i, error, self.shown(p, i, -1))
        return 0

    cdef object solve(self, TablePart p, int64_t i):
        """Handle row ``i``, at which the run builder stopped: make a stream, or return the row's error."""
        cdef Columns* c = &p.c
        cdef int problem = p.t.problem
        if problem == RUN_NEW_STREAM:
            return self.make_stream(p, i)
        if problem == RUN_MARKED:
            return p.errors[i]
        if problem == RUN_NULL_NAME:
            of_group = c.has_group and not self.group and text_at(&c.group, i) is None
            return self.problem("no_name", p, i, self.group_id if of_group else self.stream_id, {})
        if problem == RUN_BAD_BODY:
            return self.problem(("", "null", "empty", "large", "line")[p.t.check.problem], p, i, -1, {
                "size": p.t.check.bad_size, "limit": batcher_max_frame(&self.core.engine.batcher)})
        if problem == RUN_BAD_ID:
            return self.problem("id", p, i, self.message_id, {"value": text_at(&c.ids, i)})
        if problem == RUN_BAD_TIME:
            return self.time_problem(p, i)
        if problem == RUN_BAD_KEY:
            return self.problem("key", p, i, self.key, {"size": len(bytes_at(&c.key, i))})
        if problem == RUN_BAD_ATTRS:
            try:
                self.core.policy.item_text(attrs_at(&c.attrs, i), None, ())
            except InvalidMessageError as error:
                return self.problem("other", p, i, self.blamed_attrs(p), {"error": error})
            return self.problem("attrs", p, i, self.blamed_attrs(p), {})
        raise MemoryError("no memory for the rows of a table")

    cdef object make_stream(self, TablePart p, int64_t i):
        """Make the stream of row ``i``; return the error of a name that cannot be sent."""
        group = text_at(&p.c.group, i) if p.c.has_group else None
        stream = text_at(&p.c.stream, i) if p.c.has_stream else None
        try:
            self.core.name_rows(self.stream if stream is None else stream, self.group if group is None else group)
        except InvalidMessageError as error:
            if not p.c.has_group and not p.c.has_stream:
                raise                       # an error of the call, not of a row
            column = self.group_id if group is not None and stream is None else self.stream_id
            return self.problem("other", p, i, column, {"error": error})
        return None

    # --- accepting

    cdef int run(self) except -1:
        """Send the whole table."""
        cdef TableChunk chunk = self.chunk()
        cdef int64_t start = 0, n, size
        cdef Engine* g = self.core.engine
        cdef list parts
        cdef TablePart p
        while chunk is not None:
            parts, size = [], 0
            streams_walk(&g.batcher)            # runs have no references to their streams
            try:
                while chunk is not None and size < PIECE_BYTES:
                    n = min(<int64_t>PART_ROWS, chunk.array.length - start)
                    if n > 0:
                        p = self.part(chunk, start, n)
                        parts.append(p)
                        size += <int64_t>p.lines.text.n
                        start += n
                    if start >= chunk.array.length:
                        chunk = self.chunk()
                        start = 0
                self.accept(parts)
            finally:
                if g.generation == this_generation:     # not in the child of a signal handler that forked
                    streams_walked(&g.batcher)
        return 0

    cdef int accept(self, list parts) except -1:
        """Accept all messages of some parts, whose rows were all checked."""
        cdef TablePart p
        cdef int64_t bytes = 0, messages = 0
        for p in parts:
            bytes += p.t.bytes
            messages += p.t.messages
        if (self.core.raises or self.core.suspended()) and not batcher_fits(
                &self.core.engine.batcher, bytes, messages):
            raise_full(self.core, self.out.segments.messages)
        while parts:
            p = parts[0]
            self.append(p)
            self.out.skipped += p.t.check.nulls + p.t.check.empties
            del parts[0]                        # its memory is not needed any more
        return 0

    cdef int append(self, TablePart p) except -1:
        """Accept one part's messages and wait for room as configured."""
        cdef ProducerCore core = self.core
        cdef Engine* g = core.engine
        cdef int64_t run = 0, row = 0, seen, deadline = 0, accepted
        cdef int status, exempt = EX_NOTHING
        try:
            while True:
                seen = accounting_turns(&g.accounting)
                with nogil:
                    status = rowpacks_append_runs(
                        &g.batcher, &p.c.value, p.t.runs, p.t.n, p.t.text.p, &run, &row, NULL, exempt,
                        &self.out.segments)
                if status == ST_OK:
                    return 0
                accepted = self.out.segments.messages
                if status == ST_LIMIT or status == ST_INVALID:
                    raise self.problem("large" if status == ST_LIMIT else "line", p, row, -1, {
                        "size": p.lines.offsets[row + 1] - p.lines.offsets[row],
                        "limit": p.t.runs[run].stream.max_body})
                if status != ST_FULL:
                    core.check_usable()
                    raise MemoryError(f"no memory for the rows from number {p.first + row} on")
                if core.blocks and exempt == EX_NOTHING and core.calls_back():
                    exempt = EX_RESULTS
                    continue
                if deadline == 0:
                    deadline = now_us() + core.max_block_us
                if not core.blocks or not core.wait_room(seen, deadline):
                    raise_full(core, accepted)
        finally:
            self.remember(p, run, row)

    cdef int remember(self, TablePart p, int64_t last, int64_t row) except -1:
        """Note ids and streams of the messages in the runs before ``last``, and in run ``last`` up to ``row``."""
        cdef const Run* r
        cdef int64_t i, end
        for i in range(min(last + 1, p.t.n)):
            r = &p.t.runs[i]
            end = r.end if i < last else row
            if end <= r.start:
                continue
            if p.c.value.ids != NULL and keep_ids(&p.c.value, r.start, end, &self.out.own_ids) != ST_OK:
                raise MemoryError("no memory for the ids of a batch; its messages were accepted")
            if self.owners is not None:
                self.owners.append((
                    messages_between(&p.c.value, r.start, end), _str(r.stream.group), _str(r.stream.stream)))
        return 0

    cdef int watch(self, object on_delivery) except -1:
        """Register ``on_delivery`` for the accepted messages, with the names of each message's stream."""
        cdef Segments some
        cdef int64_t i = 0, first, at = 0, end = 0, owner = -1, seen = 0
        ids = self.out.ids() if self.out.own_ids.n else None
        while i < self.out.segments.n:
            while end <= seen:                  # the owner of the segment's first message
                owner += 1
                end += self.owners[owner][0]
            names = self.owners[owner][1:]
            first, at = i, seen
            while i < self.out.segments.n and seen < end:       # a segment is in one stream
                seen += self.out.segments.items[i].count
                i += 1
            memset(&some, 0, sizeof(Segments))
            some.items = &self.out.segments.items[first]
            some.n = i - first
            watch_segments(
                self.core, names[0], names[1], &some, None if ids is None else ids[at:seen], on_delivery)
        return 0


cdef str _str(Slice name):
    return (<const char*>name.p)[:name.n].decode("utf-8", "replace")


def send_table(
    ProducerCore core not None, ArrowTable table not None, BodyEncoder encoder not None, BodyEncoder shower not None, *,
    explain, refuse=None, int group_id=-1, int stream_id=-1, int dt=-1, int message_id=-1, int key=-1,
    int attr_map=-1, BodyEncoder attr_encoder=None, attr_keys=(), str group="", str stream="", bint exact_time=False,
    bint escape=False, on_delivery=None,
):
    """Accept the rows of a table and return their BatchDelivery.

    ``encoder`` makes the bodies, ``shower`` shows a row to people, and ``attr_encoder`` writes columns that are
    attributes, ``attr_keys`` by name.  The numbers are column indices, -1 for a column that is not there.  ``explain``
    is called with (kind, row, column, shown columns, facts) and returns the error of a row.  ``refuse`` is called with
    (row, error, shown columns) for each row that is left out; if it is None, the first bad row ends the call.
    Raises InvalidMessageError, BufferFullError, ClosedError, ForkedError.  Any thread.
    """
    cdef TableSend s = TableSend.__new__(TableSend, BY_CORE)
    core.check_usable()
    if on_delivery is not None:
        check_callback(on_delivery)
    if message_id >= 0:
        core.policy.check_ids()
    if key >= 0 and core.key_buckets == 0:
        raise no_ordering()
    if (attr_map >= 0 or attr_encoder is not None) and core.policy.lines:
        core.policy.item_text({"x": "x"}, None, ())         # raises: messages of that type have none
    s.core, s.table, s.encoder, s.shower, s.attr_encoder = core, table, encoder, shower, attr_encoder
    s.group_id, s.stream_id, s.dt, s.message_id, s.key, s.attr_map = group_id, stream_id, dt, message_id, key, attr_map
    s.attr_keys = list(attr_keys)
    s.group, s.stream, s.group_bytes, s.stream_bytes = group, stream, group.encode(), stream.encode()
    s.exact_time, s.escape, s.explain, s.refuse = exact_time, escape, explain, refuse
    s.good_keys = set()
    s.out = BatchDelivery.__new__(BatchDelivery, BY_CORE)
    s.out.core = core
    s.owners = [] if on_delivery is not None else None
    try:
        s.run()
    except DataProxyError as error:
        raise partly(error, s.out.segments.messages)
    finally:
        if on_delivery is not None:
            s.watch(on_delivery)
    return s.out
