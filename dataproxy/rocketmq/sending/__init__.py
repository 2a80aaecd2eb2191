"""What a producer of RocketMQ sends, and what becomes of it.

What lives here.  `messages`: messages checked and written as they travel.  `deliveries`: one message under way, and its
result.  `counts`: how many messages had which result.  `dispatch`: which queue a message goes to, when it is written,
and whether it is tried again.

Threads.  The application's, and the two of `dataproxy.rocketmq.network`.

What it may use.  `dataproxy.rocketmq.network`, `dataproxy._core.remoting` and `dataproxy.wire.rocketmq`.
"""

__all__: list[str] = []
