"""What a cluster has and may: shared by the hub's master and its broker.

What lives here.  `layout`: brokers and topics.  `access`: proofs and rights; `rules`: flow rules and tokens.  `room`:
the memory that clients may take; `limits`: times and bounds of a master.  `answers`: answers of success and failure.
`metadata`: rules and rights as a part of what several hubs have in common.

Threads.  There are none here: time is an argument, and one thread at a time calls.

What it may use.  `dataproxy.wire.tubemq`, which needs the package `protobuf`.
"""

__all__: list[str] = []
