"""Facts of a result as Python values, for dataproxy.outcomes to put into words."""

from dataproxy._core.base.pack cimport Verdict


cdef tuple verdict_facts(Verdict* v)
