"""Topics of a TubeMQ cluster, as its masters describe them to producers.

What lives here.  `topics`: what is asked of a master, and what it says.

Threads.  The caller's; every wait has a limit.

What it may use.  `dataproxy.masters`, `dataproxy.wire.tubemq`, which needs the package `protobuf`, and
`dataproxy.trust`.  Nothing of a consumer: no group is joined.
"""

__all__: list[str] = []
