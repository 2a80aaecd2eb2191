"""Checks of the structs of Arrow's C data interface, made before anything is read through them.

Checked are the counts, the pointers, the lengths of children, and the offsets of text and lists.  The interface does
not say how large a buffer is.  So a length or a last offset that lies beyond its buffer cannot be noticed.

Locality: GIL, except for ``index_kind``.  Locks: none.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.string cimport strchr, strcmp, strncmp

from dataproxy._core.encode.nodes cimport NODE_DEPTH, NODE_INT8, integer_at
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema

from dataproxy.errors import InvalidMessageError

cdef enum:
    NO_OFFSETS = 0
    OFFSETS32 = 32
    OFFSETS64 = 64
    INLINE = 12         # bytes of a value that a view holds itself


cdef str field_name(const ArrowSchema* schema):
    """Return a field's name, empty for none."""
    return schema.name.decode("utf-8", "replace") if schema.name != NULL else ""


cdef object _broken(const ArrowSchema* schema, str why):
    """Return the error for a column whose structs contradict each other."""
    form = schema.format.decode("utf-8", "replace") if schema.format != NULL else ""
    return InvalidMessageError(
        f"column {field_name(schema)!r} of the Arrow type {form!r} is damaged: {why}",
        hint="the exporter breaks the rules of Arrow's C data interface", code="BAD_COLUMN")


cdef int check_schema(const ArrowSchema* schema) except -1:
    """Check the struct of a type, but not those of its children.  Raises InvalidMessageError."""
    cdef int64_t i
    if schema.format == NULL:
        raise _broken(schema, "it has no type")
    if schema.n_children < 0 or (schema.n_children > 0 and schema.children == NULL):
        raise _broken(schema, f"{schema.n_children} children, but no list of them")
    for i in range(schema.n_children):
        if schema.children[i] == NULL:
            raise _broken(schema, f"child {i} is missing")
    return 0


cdef int check_struct(const ArrowSchema* schema, const ArrowArray* array) except -1:
    """Check one pair of structs, but not those of the children.  Raises InvalidMessageError."""
    cdef int64_t i
    check_schema(schema)
    if array.length < 0 or array.offset < 0 or array.length >= INT64_MAX - array.offset:
        raise _broken(schema, f"length {array.length}, offset {array.offset}")
    if array.n_buffers < 0 or (array.n_buffers > 0 and array.buffers == NULL):
        raise _broken(schema, f"{array.n_buffers} buffers, but no list of them")
    if array.null_count > 0 and (array.n_buffers == 0 or array.buffers[0] == NULL) and strcmp(schema.format, b"n") != 0:
        raise _broken(schema, f"{array.null_count} nulls, but no validity bitmap")
    if schema.n_children != array.n_children or (schema.n_children > 0 and array.children == NULL):
        raise _broken(schema, f"{schema.n_children} children in the schema, {array.n_children} in the data")
    for i in range(schema.n_children):
        if array.children[i] == NULL:
            raise _broken(schema, f"the data of child {i} is missing")
    return 0


cdef int _offsets_of(const char* form) noexcept nogil:
    """Return the width in bytes of a type's offsets, NO_OFFSETS for a type without offsets."""
    if strcmp(form, b"u") == 0 or strcmp(form, b"z") == 0 or strcmp(form, b"+l") == 0 or strcmp(form, b"+m") == 0:
        return OFFSETS32
    if strcmp(form, b"U") == 0 or strcmp(form, b"Z") == 0 or strcmp(form, b"+L") == 0:
        return OFFSETS64
    return NO_OFFSETS


cdef int _n_buffers(const char* form) noexcept nogil:
    """Return the least number of buffers of a type; 0 for types that are not read."""
    if strcmp(form, b"+s") == 0 or strncmp(form, b"+w:", 3) == 0:
        return 1
    if strcmp(form, b"+vl") == 0 or strcmp(form, b"+vL") == 0:
        return 3
    if strcmp(form, b"vz") == 0 or strcmp(form, b"vu") == 0:
        return 3
    if _offsets_of(form) != NO_OFFSETS:
        return 2 if form[0] == b"+" else 3
    return 0 if form[0] == 0 or form[0] == b"n" or form[0] == b"+" or form[0] == b"v" else 2


cdef int64_t _last_offset(const ArrowArray* array, int width) noexcept nogil:
    """Return the last offset, -1 when offsets are negative or go down."""
    cdef const int32_t* narrow = <const int32_t*>array.buffers[1] + array.offset
    cdef const int64_t* wide = <const int64_t*>array.buffers[1] + array.offset
    cdef int64_t i
    cdef bint down = False
    if width == OFFSETS32:
        for i in range(array.length):
            down |= narrow[i + 1] < narrow[i]
        return -1 if down or narrow[0] < 0 else narrow[array.length]
    for i in range(array.length):
        down |= wide[i + 1] < wide[i]
    return -1 if down or wide[0] < 0 else wide[array.length]


cdef int64_t _bad_view(const ArrowArray* array) noexcept nogil:
    """Return the first value that lies outside of the buffers of a view type, -1 for none."""
    cdef const uint8_t* validity = <const uint8_t*>array.buffers[0] if array.null_count != 0 else NULL
    cdef const int32_t* view
    cdef const int64_t* sizes = <const int64_t*>array.buffers[array.n_buffers - 1]
    cdef int64_t i
    for i in range(array.offset, array.offset + array.length):
        view = <const int32_t*>array.buffers[1] + 4 * i         # length, prefix, buffer, offset
        if (validity != NULL and not (validity[i >> 3] >> (i & 7)) & 1) or 0 <= view[0] <= INLINE:
            continue
        if view[0] < 0 or not 0 <= view[2] < array.n_buffers - 3 or view[3] < 0 or sizes == NULL:
            return i - array.offset
        if sizes[view[2]] - view[3] < view[0] or array.buffers[2 + view[2]] == NULL:
            return i - array.offset
    return -1


cdef bint _is_null(const ArrowArray* array, int64_t at) noexcept nogil:
    """Tell whether the value at ``at``, which counts from the beginning of the buffers, is null."""
    cdef const uint8_t* validity = <const uint8_t*>array.buffers[0] if array.null_count != 0 else NULL
    return validity != NULL and not (validity[at >> 3] >> (at & 7)) & 1


cdef int64_t _bad_list_view(const ArrowArray* array, bint wide, int64_t n) noexcept nogil:
    """Return the first list that lies outside of the ``n`` values of a list view's child, -1 for none."""
    cdef int64_t i, start, size
    for i in range(array.offset, array.offset + array.length):
        if _is_null(array, i):
            continue
        if wide:
            start, size = (<const int64_t*>array.buffers[1])[i], (<const int64_t*>array.buffers[2])[i]
        else:
            start, size = (<const int32_t*>array.buffers[1])[i], (<const int32_t*>array.buffers[2])[i]
        if start < 0 or size < 0 or start > n - size:
            return i - array.offset
    return -1


cdef int64_t _fixed_size(const char* digits) noexcept nogil:
    """Return the number written in ``digits``, at most the largest of 32 bits; 0 for text that is no number."""
    cdef int64_t n = 0
    cdef int i = 0
    while 48 <= digits[i] <= 57 and i < 10:
        n = n * 10 + digits[i] - 48
        i += 1
    return n


cdef int index_kind(const char* form) noexcept nogil:
    """Return the kind of a dictionary's indices, -1 for other types.  Locality: any thread."""
    cdef const char* letters = b"csilCSIL"
    cdef const char* at = strchr(<char*>letters, form[0]) if form[0] != 0 and form[1] == 0 else NULL
    return NODE_INT8 + <int>(at - letters) if at != NULL else -1


cdef int64_t _bad_index(const ArrowArray* array, int kind, int64_t n) noexcept nogil:
    """Return the first value whose index is outside of a dictionary of ``n`` values, -1 for none."""
    cdef int64_t i
    for i in range(array.offset, array.offset + array.length):
        if not _is_null(array, i) and not 0 <= integer_at(kind, <const uint8_t*>array.buffers[1], i) < n:
            return i - array.offset
    return -1


cdef int _check_dictionary(const ArrowSchema* schema, const ArrowArray* array, int depth) except -1:
    """Check the indices and the values of a dictionary-encoded column.  Raises InvalidMessageError."""
    cdef int kind = index_kind(schema.format)
    cdef int64_t i = -1
    if array.dictionary == NULL:
        raise _broken(schema, "its dictionary is missing")
    if kind < 0:
        raise _broken(schema, "its indices into a dictionary are not integers")
    _check_tree(schema.dictionary, array.dictionary, depth + 1)
    if array.length:
        with nogil:
            i = _bad_index(array, kind, array.dictionary.length)
    if i >= 0:
        raise _broken(schema, f"value {i} is not in its dictionary")
    return 0


cdef int _check_values(const ArrowSchema* schema, const ArrowArray* array) except -1:
    """Check the buffers of a type that has buffers, and the lengths of the children.  Raises InvalidMessageError."""
    cdef int needed = _n_buffers(schema.format), width = _offsets_of(schema.format)
    cdef int64_t last = 0, i
    if array.n_buffers < needed:
        raise _broken(schema, f"{array.n_buffers} buffers instead of {needed}")
    if array.length == 0:
        return 0
    if needed > 1 and array.buffers[1] == NULL:
        raise _broken(schema, "its values are missing")
    if width != NO_OFFSETS:
        with nogil:
            last = _last_offset(array, width)
        if last < 0:
            raise _broken(schema, "its offsets decrease")
        if needed == 3 and last > 0 and array.buffers[2] == NULL:
            raise _broken(schema, "its text is missing")
    elif strcmp(schema.format, b"+s") == 0:
        last = array.offset + array.length
    elif strncmp(schema.format, b"+w:", 3) == 0:
        i = _fixed_size(schema.format + 3)
        if i and array.offset + array.length > INT64_MAX // i:
            raise _broken(schema, f"lists of {i} values")
        last = (array.offset + array.length) * i
    elif strncmp(schema.format, b"+v", 2) == 0:
        if schema.n_children != 1 or array.buffers[2] == NULL:
            raise _broken(schema, "it has no values or no sizes")
        with nogil:
            i = _bad_list_view(array, schema.format[2] == b"L", array.children[0].length)
        if i >= 0:
            raise _broken(schema, f"list {i} is outside of its values")
    elif schema.format[0] == b"v" and needed == 3:
        with nogil:
            i = _bad_view(array)
        if i >= 0:
            raise _broken(schema, f"value {i} is outside of its buffers")
    for i in range(schema.n_children):
        if array.children[i].length < last:
            raise _broken(schema, f"child {i} has {array.children[i].length} values where {last} are needed")
    return 0


cdef int _check_tree(const ArrowSchema* schema, const ArrowArray* array, int depth) except -1:
    cdef int64_t i
    if depth > NODE_DEPTH:
        raise InvalidMessageError(
            f"types are nested more than {NODE_DEPTH} levels deep", hint="cast the column to string", code="BAD_COLUMN")
    check_struct(schema, array)
    _check_values(schema, array)
    if schema.dictionary != NULL:
        _check_dictionary(schema, array, depth)
    for i in range(schema.n_children):
        _check_tree(schema.children[i], array.children[i], depth + 1)
    return 0


cdef int check_column(const ArrowSchema* schema, const ArrowArray* array) except -1:
    """Check a column and everything inside of it.  Locality: GIL.  Raises InvalidMessageError."""
    return _check_tree(schema, array, 1)


cdef int check_part(const ArrowSchema* schema, const ArrowArray* array, int at) except -1:
    """Check one column of a record batch, which is the array itself when ``at`` is -1.  Raises InvalidMessageError."""
    if at < 0:
        return check_column(schema, array)
    check_struct(schema, array)
    if at >= schema.n_children:
        raise InvalidMessageError(f"there is no column {at} among {schema.n_children}", code="BAD_COLUMN")
    check_column(schema.children[at], array.children[at])
    if array.children[at].length < array.offset + array.length:
        raise _broken(schema.children[at], f"{array.children[at].length} values of {array.offset + array.length}")
    return 0
