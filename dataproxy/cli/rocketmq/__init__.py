"""What the command line shows of RocketMQ.

What lives here.  `commandtext`: frames as lines for people, and as JSON, for `dataproxy frames`.

Threads.  There are none here.

What it may use.  `dataproxy.wire.rocketmq` and `dataproxy.shown`.
"""

__all__: list[str] = []
