"""Statistics of an engine as Python values."""

from dataproxy._core.client.engine cimport Engine


cdef dict counts_dict(Engine* g)
cdef dict latency_steps(Engine* g)
cdef list link_list(Engine* g)
