"""Members that do not pull."""

from libc.stdint cimport int64_t

from dataproxy._core.server.rocketmq.remoting cimport Remoting


# (connection, group, topic, us) of subscriptions by which nothing was pulled since a time; 0: never.
cdef list silent_rows(Remoting* r, int64_t before_us)
