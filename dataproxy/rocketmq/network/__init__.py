"""What every client of RocketMQ has: connections, name servers, routes, heartbeats.

What lives here.  `target`: name servers as a text.  `seal`: TLS.  `attempts`: connections that are being made.
`connections`: the thread that reads and writes, and calls that wait.  `keeper`: the thread that does what may wait.
`routes`: which brokers have a topic.  `client`: all of these, and heartbeats.

Threads.  ``dataproxy-rocketmq-io`` reads connections and never waits for anything else; what it finds is told to
requests, on that thread.  ``dataproxy-rocketmq-keeper`` makes connections and calls, one after the other; for a member
to which hubs push, ``dataproxy-rocketmq-connect`` makes one connection each.

What it may use.  `dataproxy._core.remoting`, `dataproxy.wire.rocketmq`, and for TLS `dataproxy.trust`.
"""

__all__: list[str] = []
