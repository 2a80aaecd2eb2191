"""Brokers of a cluster: those that register at this master, and this hub as a broker at another one.

What lives here.  `registry`: the master's side, methods 7 to 9.  `joining`: the broker's side, sans-io.  `enrolment`:
the thread that carries its calls.

Threads.  `registry` and `joining` have none, no sockets and no clocks.  ``dataproxy-hub-broker`` calls masters.

What it may use.  `dataproxy.hub.clients`, `dataproxy.hub.tubemq.cluster`, `dataproxy.masters` and
`dataproxy.wire.tubemq`.
"""

__all__: list[str] = []
