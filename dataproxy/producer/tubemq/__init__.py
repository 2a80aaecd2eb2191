"""Producers of TubeMQ: where their topics are, and what their messages carry.

What lives here.  `attributes`: attributes, filter item and time of a message as the text that travels.  `session`: what
a producer says to the masters, and learns from them.  `layout`: topics become clusters of brokers with partitions.
`addresses`: the names of brokers.  `source`: the thread that asks, for one producer.

Threads.  The thread that opens a producer, then the producer's discovery thread.

What it may use.  `dataproxy.masters`, `dataproxy.wire.tubemq` (`session` and `source` need the package `protobuf`) and
`dataproxy.producer.discovery`; no compiled module, and no producer.
"""

__all__: list[str] = []
