"""What a producer of RocketMQ sends, and what becomes of it.

What lives here.  `messages`: names, batches, ids.  `deliveries`: one message under way, and its result.  `dispatch`:
routes, connections and waits, and whether a message is tried again.  What is done for each message is compiled:
`dataproxy._core.remoting`.

Threads.  The application's, and the two of `dataproxy.rocketmq.network`.

What it may use.  `dataproxy.rocketmq.network`, `dataproxy._core.remoting` and `dataproxy.wire.rocketmq`.
"""

__all__: list[str] = []
