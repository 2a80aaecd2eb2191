"""Clients of RocketMQ 4.x: producers, transactions, and consumers whose listener is called or that poll.

What lives here.  `producer`, `transactions`, `push`, `pull`: the classes that programs use.  `arguments`: what these
check.  `sending`, `group`, `network`: what they are made of, from the top down.

Threads.  Each object has two threads of its own (`dataproxy.rocketmq.network`), a consumer with a listener also those
for its listener.

What it may use.  `dataproxy._core.remoting`, `dataproxy.wire.rocketmq`, for TLS `dataproxy.trust`, and the package's
errors.
"""

from dataproxy._core.remoting.messages import ReceivedMessage
from dataproxy.rocketmq.group.shares import Sql
from dataproxy.rocketmq.producer import Producer
from dataproxy.rocketmq.pull import PullConsumer
from dataproxy.rocketmq.push import ConsumerCounts, PushConsumer, RetryLater
from dataproxy.rocketmq.sending.deliveries import Delivered, Delivery
from dataproxy.rocketmq.sending.dispatch import Report
from dataproxy.rocketmq.sending.messages import DELAY_LEVELS, Message
from dataproxy.rocketmq.transactions import TransactionProducer, TransactionResult
from dataproxy.wire.rocketmq.queues import Queue

__all__ = [
    "DELAY_LEVELS",
    "ConsumerCounts",
    "Delivered",
    "Delivery",
    "Message",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "Queue",
    "ReceivedMessage",
    "Report",
    "RetryLater",
    "Sql",
    "TransactionProducer",
    "TransactionResult",
]
