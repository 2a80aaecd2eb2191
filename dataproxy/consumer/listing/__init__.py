"""Topics of a TubeMQ cluster, as its masters describe them to producers.

What lives here.  `topics`: what is asked of a master, and what it says.  `connection`: one connection to a master, on
which one call is made after the other.

Threads.  The caller's; every wait has a limit.

What it may use.  `dataproxy.wire.tubemq`, which needs the package `protobuf`, and `dataproxy.trust`.  Nothing of a
consumer but its targets: no group is joined.
"""

__all__: list[str] = []
