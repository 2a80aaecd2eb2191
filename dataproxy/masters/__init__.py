"""TubeMQ's masters, as producers and consumers reach them.

What lives here.  `target`: the masters that a target names.  `connection`: one connection to a master, on which one
call is made after the other.

Threads.  The caller's; every wait has a limit.

What it may use.  `dataproxy.wire.tubemq`; `connection` needs the package `protobuf`.
"""

__all__: list[str] = []
