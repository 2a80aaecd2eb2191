"""Facts of a result as Python values."""

from dataproxy._core.base.pack cimport Verdict


cdef tuple verdict_facts(Verdict* v):
    """Return (outcome, code, text, attempts, maybe_delivered, node, latency in s, seq, pack id, last refusal).

    Locality: GIL; v is done.
    """
    return (
        v.outcome, v.code, v.text.decode("utf-8", "replace"), v.attempts, bool(v.maybe_delivered),
        v.node.decode("utf-8", "replace"), v.latency_us / 1e6, v.seq,
        v.id.decode(), v.refused,
    )
