"""The hub as TubeMQ: what its master decides.

What lives here.  `calls`: one call from bytes to bytes.  `master`: the calls of all clients, and time.  `producers`:
those of producers.  `consumers`: those of members of groups that are divided here; `group`: one such group,
its members and the events for them; `balance`: who shall hold what; `wishes`: what a member asks for.  `choosers`:
groups whose members choose.  `layout`: brokers and topics.  `access`: proofs, rights; `rules`: flow rules and tokens.
`room`: the memory that clients may take; `limits`: times and bounds.  `answers`: answers of success and failure.

Threads.  There are none here, no sockets and no clocks: time is an argument, and one thread at a time calls a master.

What it may use.  `dataproxy.hub.clients`, the registry that all protocols of the hub share, and
`dataproxy.wire.tubemq`, which needs the package `protobuf`.
"""

__all__: list[str] = []
