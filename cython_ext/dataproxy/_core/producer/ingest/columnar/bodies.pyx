"""Making bodies from the columns of a record batch: JSON, delimited text, key-value text.

Locality: GIL, one thread at a time for each encoder; rows are encoded without the GIL.  Locks: none.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.ingest.columnar.arrow cimport ArrowChunks, open_arrow
from dataproxy._core.producer.ingest.columnar.arrowshape cimport check_part, check_struct, field_name
from dataproxy._core.encode.lines cimport LINE_CSV, LINE_JSON, LINE_KV, Lines, LineStyle, lines_free, lines_make
from dataproxy._core.encode.nodes cimport NodeTree, tree_close, tree_open
from dataproxy._core.encode.texts cimport MARKS
from dataproxy._core.encode.times cimport (
    KNOWN_DAYS, TIME_ISO, TIME_ISO_MICROS, TIME_MILLIS, TIME_SQL, TIME_SQL_MICROS, DayText, Zone, days_forget,
)
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema

from dataproxy.errors import ConfigError, InvalidMessageError

__all__ = ["BodyEncoder"]

_FORMS = {"json": LINE_JSON, "csv": LINE_CSV, "kv": LINE_KV}
_TIMES = {
    "iso": TIME_ISO, "iso_micros": TIME_ISO_MICROS, "sql": TIME_SQL, "sql_micros": TIME_SQL_MICROS,
    "millis": TIME_MILLIS,
}
_ZONED = (b"tss:", b"tsm:", b"tsu:", b"tsn:")
_PLAIN = frozenset(b"0123456789+-.:TZEabcdefghijklmnopqrstuvwxyzNI ")     # bytes in values that are not text


cdef int _code(str text) except? -1:
    """Return the byte of one ASCII character, -1 for an empty text.  Raises ConfigError for any other text."""
    if not text:
        return -1
    if len(text) != 1 or ord(text) > 127:
        raise ConfigError(f"{text!r} is not one ASCII character")
    return ord(text)


cdef class BodyEncoder:
    """Make one body for each row of a record batch, without the GIL.

    ``form`` is json, csv or kv; ``columns`` are the indices of the body's columns in their order.  ``zone_table`` is
    called with the name of a time zone and returns ``(starts, offsets, period_from)``: UTC seconds (int64 as bytes),
    the offset in seconds that begins at each (int32 as bytes), and the UTC second from which on the last 400 years of
    the table repeat.  Raises ConfigError for texts that are not one ASCII character, and MemoryError.  Thread rule: one
    thread at a time.
    """

    def __cinit__(
        self, str form, columns, *, zone_table, str times="iso", bint leave_nulls_out=True, str null_text="",
        bint tells_nulls=False,
        str separator=",", str joint="=", str escape="\\", str quote="", str line_separator="",
    ):
        cdef bytes null = null_text.encode()
        cdef int i
        wanted = list(columns)
        self.zone_table = zone_table
        self.keep = [null]
        memset(&self.style, 0, sizeof(LineStyle))
        self.style.form = _FORMS[form]
        self.style.values.times = _TIMES[times]
        self.style.values.leave_nulls_out = leave_nulls_out
        self.style.null_text = slice_of(PyBytes_AS_STRING(null), <size_t>PyBytes_GET_SIZE(null))
        self.style.tells_nulls = tells_nulls
        self.n_columns = len(wanted)
        self.columns = <int*>calloc(len(wanted) + 1, sizeof(int))
        self.style.values.days = <DayText*>calloc(KNOWN_DAYS, sizeof(DayText))
        if self.columns == NULL or self.style.values.days == NULL:
            raise MemoryError("no memory for an encoder")
        days_forget(self.style.values.days)
        for i in range(self.n_columns):
            self.columns[i] = wanted[i]
        if self.style.form != LINE_JSON:
            _mark(&self.style, separator, joint, escape, quote, line_separator)

    def __dealloc__(self):
        free(self.columns)
        free(self.style.values.days)
        free(self.zones)
        free(self.zone_names)

    cdef bint _knows(self, bytes name):
        """Tell whether a time zone is known already."""
        cdef int i
        for i in range(self.n_zones):
            if self.zone_names[i] == name:
                return True
        return False

    cdef int _learn_zone(self, bytes name) except -1:
        """Add a time zone.  Raises MemoryError, and what ``zone_table`` raises."""
        cdef bytes starts, offsets
        cdef Zone* zones
        cdef const char** names
        cdef Zone* zone
        starts, offsets, period_from = self.zone_table(name.decode("utf-8", "replace"))
        zones = <Zone*>realloc(self.zones, (self.n_zones + 1) * sizeof(Zone))
        if zones == NULL:
            raise MemoryError("no memory for a time zone")
        self.zones = zones
        names = <const char**>realloc(self.zone_names, (self.n_zones + 1) * sizeof(char*))
        if names == NULL:
            raise MemoryError("no memory for a time zone")
        self.zone_names = names
        self.keep.append((name, starts, offsets))
        zone = &self.zones[self.n_zones]
        zone.starts = <const int64_t*>PyBytes_AS_STRING(starts)
        zone.offsets = <const int32_t*>PyBytes_AS_STRING(offsets)
        zone.n = len(offsets) // 4
        zone.period_from = period_from
        self.zone_names[self.n_zones] = PyBytes_AS_STRING(name)
        self.n_zones += 1
        return 0

    cdef int _open(self, NodeTree* tree, ArrowSchema* schema, ArrowArray* array) except -1:
        """Read a batch's columns into ``tree``, which is closed when this raises.

        Raises InvalidMessageError for a column that has no text form, and MemoryError.
        """
        cdef ArrowSchema* culprit = NULL
        cdef int status, known
        cdef bytes form
        check_struct(schema, array)
        for known in range(self.n_columns):
            if self.columns[known] < 0:
                raise InvalidMessageError(
                    f"there is no column {self.columns[known]} among {schema.n_children}", code="BAD_COLUMN")
            check_part(schema, array, self.columns[known])
        while True:
            with nogil:
                status = tree_open(
                    tree, schema, array, self.columns, self.n_columns, self.zones, self.zone_names, self.n_zones,
                    &culprit)
            if status == ST_OK:
                return 0
            tree_close(tree)
            if status == ST_NO_MEMORY:
                raise MemoryError("no memory for the columns of a record batch")
            form = culprit.format
            known = self.n_zones
            if form[:4] in _ZONED and form[4:] and culprit.dictionary == NULL and not self._knows(form[4:]):
                self._learn_zone(form[4:])
            if known == self.n_zones:
                raise InvalidMessageError(
                    f"column {field_name(culprit)!r} has the Arrow type {form.decode('utf-8', 'replace')!r}, "
                    "which has no form as text",
                    hint="cast it to string", code="BAD_COLUMN")

    cdef int make(self, ArrowSchema* schema, ArrowArray* array, Lines* lines) except -1:
        """Encode all rows of a struct array.  The caller calls `lines_free`, also after an error.

        Raises InvalidMessageError for a column that has no text form, and MemoryError.
        """
        cdef NodeTree tree
        cdef int status
        memset(lines, 0, sizeof(Lines))
        self._open(&tree, schema, array)
        with nogil:
            status = lines_make(lines, &tree, self.columns, self.n_columns, &self.style, array.length, self.usual)
            tree_close(&tree)
        if status != ST_OK:
            raise MemoryError(f"no memory for the bodies of {array.length} rows")
        self.usual = lines.text.n
        return 0

    def measure(self, batch):
        """Encode a record batch and throw the bodies away; return their size in bytes.  For benchmarks."""
        cdef ArrowChunks chunks = open_arrow(batch)
        cdef ArrowArray* array = chunks.next_chunk()
        cdef Lines lines
        memset(&lines, 0, sizeof(Lines))
        if array == NULL:
            return 0
        try:
            self.make(chunks.schema, array, &lines)
            return lines.text.n
        finally:
            lines_free(&lines)

    def texts(self, batch):
        """Return the body of each row of a record batch, None for rows that cannot be written.

        Raises InvalidMessageError for a column that has no text form, and MemoryError.
        """
        cdef ArrowChunks chunks = open_arrow(batch)
        cdef ArrowArray* array = chunks.next_chunk()
        cdef Lines lines
        cdef int64_t i
        memset(&lines, 0, sizeof(Lines))
        found = []
        if array == NULL:               # a stream without rows gives no chunk
            return found
        try:
            self.make(chunks.schema, array, &lines)
            for i in range(lines.n):
                if lines.refused[i]:
                    found.append(None)
                elif lines.offsets[i + 1] > lines.offsets[i]:
                    found.append(
                        (<const char*>lines.text.p)[lines.offsets[i]:lines.offsets[i + 1]])
                else:
                    found.append(b"")
            return found
        finally:
            lines_free(&lines)


cdef int _mark(
    LineStyle* style, str separator, str joint, str escape, str quote, str line_separator,
) except -1:
    """Set the characters of delimited text by the rules of InLong's Sort.  Raises ConfigError.

    In text, the escape character is put in front of each special character; without an escape character, quote
    characters are put around it.  A reader that splits lines undoes an escaped line separator in delimited text, but
    not in key-value text.  So a key-value text cannot contain a line separator.
    """
    cdef int between = _code(separator), at = _code(joint), line = _code(line_separator), c
    style.separator = between
    style.joint = at
    style.marks.escape = _code(escape)
    style.marks.quote = _code(quote)
    special = {between, style.marks.escape, style.marks.quote, line}
    if style.form == LINE_KV:
        special.add(at)
    special.discard(-1)
    for at, c in enumerate((sorted(special) * MARKS)[:MARKS]):      # filled up with any of them
        style.marks.eight[at] = <uint64_t>c * <uint64_t>0x0101010101010101
    for c in special:
        style.marks.special[c] = True
        style.marks.refused[c] = style.marks.escape < 0 and (style.marks.quote < 0 or c == style.marks.quote)
        if c in _PLAIN:
            style.marks.any_plain = True
    if line >= 0 and style.form == LINE_KV:
        style.marks.refused[line] = True
    return 0
