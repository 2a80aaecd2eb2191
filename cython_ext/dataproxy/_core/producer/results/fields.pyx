"""The fields of a result as Python values.

All messages of a pack share its fields.  Only in a pack that was split (``OUT_MIXED``) each part has its own.

Locality: GIL; ``same_result`` any thread.  Locks: none.
"""

from dataproxy._core.pack.parts cimport Part, Parts

__all__: list = []


cdef uint32_t same_result(const PackResult* v, uint32_t place, uint32_t most) noexcept:
    """Return how many messages from ``place`` on, of ``most``, share a result.  Locality: any thread."""
    cdef const Part* part
    if v.parts == NULL:
        return most
    part = parts_find(v.parts, place)
    return min(most, part.first + part.n - place)


cdef tuple _of_part(const Parts* parts, const Part* part, double latency, object number, object pack_id):
    cdef const char* text = <const char*>parts.texts.p + part.text
    cdef const char* node = <const char*>parts.texts.p + part.node
    return (
        part.outcome, part.code, text.decode("utf-8", "replace"), part.attempts, bool(part.maybe_delivered),
        node.decode("utf-8", "replace"), latency, number, pack_id, part.refused,
    )


cdef tuple pack_result_fields(PackResult* v):
    """Return (outcome, code, text, attempts, maybe_delivered, node, latency in s, seq, pack id, last refusal).

    Locality: GIL; v is done.
    """
    return (
        v.outcome, v.code, v.text.decode("utf-8", "replace"), v.attempts, bool(v.maybe_delivered),
        v.node.decode("utf-8", "replace"), v.latency_us / 1e6, v.seq,
        v.id.decode(), v.refused,
    )


cdef tuple fields_at(PackResult* v, uint32_t place):
    """Return the fields of the message at ``place``.  Locality: GIL; v is done."""
    if v.parts == NULL:
        return pack_result_fields(v)
    return _of_part(v.parts, parts_find(v.parts, place), v.latency_us / 1e6, v.seq, v.id.decode())


cdef list fields_of(PackResult* v, object watch):
    """Return (watch, fields) for a callback, or for each run of its messages that share them."""
    cdef uint32_t first, left, n
    if v.parts == NULL or watch.delivery is not None:
        return [(watch, pack_result_fields(v))]
    out = []
    first = watch.first
    left = watch.messages
    own_ids = watch.own_ids
    while left:
        n = same_result(v, first, left)
        ids = None if own_ids is None else own_ids[first - <uint32_t>watch.first:first - <uint32_t>watch.first + n]
        out.append((watch._replace(first=first, messages=n, own_ids=ids), fields_at(v, first)))
        first += n
        left -= n
    return out


cdef list with_size(list found, int64_t size):
    """Return the list of ``fields_of`` or ``reports_of`` with bytes for ``let_go``: all of them in the last entry."""
    cdef Py_ssize_t i, last = len(found) - 1
    return [(*found[i], size if i == last else 0) for i in range(last + 1)]


cdef list reports_of(Pack* p, object group, object stream, object own_ids):
    """Return (group id, stream id, place of the first, messages, fields, the caller's ids or None) of each run.

    Locality: GIL, owner of the settled pack.
    """
    cdef uint32_t i
    cdef const Part* part
    if p.parts == NULL:
        text = p.error_text.decode("utf-8", "replace") if p.error_text != NULL else ""
        fields = (
            p.outcome, p.code, text, p.attempts, p.outcome != OUT_DELIVERED and p.open_attempts > 0,
            p.node.decode("utf-8", "replace"), p.latency_us / 1e6, p.seq,
            p.id.decode(), p.refused,
        )
        return [(group, stream, 0, p.count, fields, own_ids)]
    out = []
    for i in range(p.parts.n_done):
        part = &p.parts.done[i]
        ids = None if own_ids is None else own_ids[part.first:part.first + part.n]
        fields = _of_part(p.parts, part, p.latency_us / 1e6, p.seq, p.id.decode())
        out.append((group, stream, part.first, part.n, fields, ids))
    return out
