"""Results as Python values.  Many are made at once, so they are made without calling a Python class.

The objects made here are equal to those that ``dataproxy.outcomes`` makes.  Only that module makes errors.

Locality: GIL.  Locks: none.
"""

from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp, memcpy

from dataproxy._core.pack.pack cimport OUT_DELIVERED, OUT_SENT, PackResult
from dataproxy._core.producer.results.fields cimport fields_at, pack_result_fields
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.plat.pytype cimport (
    ascii_bytes, is_ascii, new_ascii, new_instance, untrack,
)

from dataproxy.outcomes import Delivered, DeliveryResult, Sent, delivery_result, message_id

__all__ = ["results"]


cdef tuple fields_once(CoreHandle core, PackResult* v, uint32_t place):
    """Return the fields of a message of a settled pack; those of the last pack asked for are kept."""
    if v.parts != NULL:
        return fields_at(v, place)
    if core.told is None or memcmp(core.told_id, v.id, sizeof(v.id)) != 0:
        core.told = pack_result_fields(v)
        memcpy(core.told_id, v.id, sizeof(v.id))
    return core.told


cdef object _name(object pack_id, uint32_t position):
    """Return ``outcomes.message_id``'s text."""
    cdef uint8_t digits[10]
    cdef int n = 10
    cdef uint32_t rest = position
    cdef Py_ssize_t size
    cdef object out
    cdef uint8_t* to
    if not is_ascii(pack_id):
        return message_id(pack_id, position)
    while True:
        n -= 1
        digits[n] = 48 + rest % 10
        rest //= 10
        if rest == 0:
            break
    size = len(<str>pack_id)
    out = new_ascii(size + 1 + 10 - n, 127)
    to = <uint8_t*>ascii_bytes(out)
    memcpy(to, ascii_bytes(pack_id), size)
    to[size] = 46
    memcpy(to + size + 1, digits + n, 10 - n)
    return out


cdef inline void _put(object out, Py_ssize_t at, object value) noexcept:
    Py_INCREF(value)
    PyTuple_SET_ITEM(out, at, value)


cdef object new_success(tuple fields, uint32_t position, object own_id):
    """Return the Delivered of a message of a delivered pack, or its Sent, which has the same fields."""
    cdef object out = new_instance(<PyTypeObject*>(Sent if fields[0] == OUT_SENT else Delivered), 6)
    _put(out, 0, fields[5])
    _put(out, 1, fields[3])
    _put(out, 2, fields[6])
    _put(out, 3, fields[7])
    _put(out, 4, position)
    _put(out, 5, own_id if own_id is not None else _name(fields[8], position))
    untrack(out)        # it holds text and numbers alone
    return out


cdef object _result(object group, object stream, tuple fields, uint32_t position, object own_id):
    """Return the DeliveryResult of a message of a delivered pack."""
    cdef object out = new_instance(<PyTypeObject*>DeliveryResult, 5)
    _put(out, 0, group)
    _put(out, 1, stream)
    _put(out, 2, new_success(fields, position, own_id))
    _put(out, 3, None)
    _put(out, 4, None)
    untrack(out)
    return out


def results(watch, tuple fields, uint32_t first, uint32_t count):
    """Return a list with the DeliveryResult of ``count`` messages of a watch from number ``first`` on.  Any thread."""
    cdef object group = watch.group_id, stream = watch.stream_id, own_ids = watch.own_ids, own_id
    cdef uint32_t offset = watch.first, i
    cdef list made = []
    cdef bint delivered = fields[0] == OUT_DELIVERED
    for i in range(first, first + count):
        if not delivered:
            made.append(delivery_result(watch, i, fields))
            continue
        own_id = None if own_ids is None else own_ids[i]
        made.append(_result(group, stream, fields, offset + i, own_id))
    return made
