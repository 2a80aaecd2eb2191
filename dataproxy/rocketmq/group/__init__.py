"""What a consumer of RocketMQ is in its group: which queues it has, and how far it has read them.

What lives here.  `shares`: what is subscribed, and how queues are divided.  `backlog`: messages that are out, and the
offset behind those that are done.  `offsets`: where offsets are kept.  `reader`: one queue, which is pulled.  `pushed`:
one that a hub pushes.  `member`: membership, locks, the division of queues.  `served`: what brokers ask a member.
`again`: messages that come again.  `works`: which thread of a listener is woken for what came.

Threads.  The keeper divides queues, locks them and writes offsets; the thread that reads takes pulls and pushes;
listeners have threads of their own.

What it may use.  `dataproxy.rocketmq.network`, `dataproxy._core.remoting` and `dataproxy.wire.rocketmq`.
"""

__all__: list[str] = []
