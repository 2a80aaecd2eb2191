"""The hub as TubeMQ: what its master decides, and what its broker decides about registrations.

What lives here.  `calls`: one call from bytes to bytes.  `master`: the calls of all clients of a master, and time.
`producers`: those of producers; `groups` has those of consumers, `brokers` those of brokers in other processes.
`broker`: registrations of partitions.  `topics`: what the store has, and what clients name.  `leading`: the master of
several hubs, one of which leads.  `idle`: the alarm for members that hold partitions and ask for nothing.  `cluster` is
what master and broker share.  `service` is the thread that owns all of them, `admin` what may be seen and changed there
by hand.  Folders import one way: `admin`, then `groups` and `brokers`, then `cluster`.

Threads.  One, `dataproxy-hub-tubemq`, runs `Service.serve`; others call `Service.run`, `stop` and `stats`.  Below
`service` there are no threads, no sockets and no clocks: time is an argument, and one thread at a time calls.

What it may use.  `dataproxy.hub.clients`, the registry that all protocols of the hub share, `dataproxy.hub.idling`,
`dataproxy.hub.leader`, the compiled registrations, calls and stores, and `dataproxy.wire.tubemq`, which needs the
package `protobuf`.
"""

__all__: list[str] = []
