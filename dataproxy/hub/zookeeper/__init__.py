"""What a hub keeps at ZooKeeper: where groups of TubeMQ's consumers are, in the nodes in which TubeMQ keeps it.

What lives here.  `nodes`: names and texts of nodes, without sockets.  `servers`: calls to ZooKeeper, by the package
`kazoo`, which only this module imports, when it is used.  `offsets`: which positions are still to be written, and the
thread that writes them.

Threads.  ``dataproxy-hub-offsets`` writes; what it needs of the hub takes a mutex for some comparisons.  `kazoo` has
threads of its own.

What it may use.  The compiled registrations of the hub's broker, and `dataproxy.wire.tubemq`.
"""

__all__: list[str] = []
