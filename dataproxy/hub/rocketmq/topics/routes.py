"""Routes: where the queues of a topic are, which at a hub is always the hub."""

from __future__ import annotations

from typing import Final

from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.topics.kept import Kept
from dataproxy.hub.rocketmq.topics.remoting import Answer, Call, Request
from dataproxy.hub.rocketmq.topics.table import CLUSTER, Topic, Topics
from dataproxy.wire.rocketmq.bodies import BrokerData, ClusterInfo, QueueData, Route
from dataproxy.wire.rocketmq.codes import Answer as Code
from dataproxy.wire.rocketmq.headers import CreateTopic, RouteOf

__all__ = ["BROKER", "Routes", "answer_when_kept"]

BROKER: Final = "dataproxy"
_MASTER: Final = 0


class Routes:
    """The calls of a name server, and those that make topics.  One thread.

    ``address``: host:port that clients are told; empty: the one that they have reached the hub at.
    """

    def __init__(self, topics: Topics, kept: Kept, address: str) -> None:
        self._topics, self._kept, self._address = topics, kept, address

    def route(self, request: Request, header: RouteOf) -> Answer:
        """105: answer where a topic is."""
        topic = self._topics.find(header.topic)
        if topic is None:
            raise RefusedError(
                Code.TOPIC_NOT_EXIST, f"No topic route info in name server for the topic: {header.topic[:127]}"
            )
        queues = QueueData(BROKER, topic.reads, topic.writes, topic.perm, topic.sys_flag)
        return Answer(body=Route((queues,), (self._broker(request),)).write())

    def cluster(self, request: Request, _: None) -> Answer:
        """106: answer which brokers there are."""
        return Answer(body=ClusterInfo({BROKER: self._broker(request)}, {CLUSTER: [BROKER]}).write())

    def create(self, request: Request, header: CreateTopic) -> None:
        """17: make a topic, or change it."""
        topic = Topic(header.read_queue_nums, header.write_queue_nums, header.perm, header.order, header.topic_sys_flag)
        self._topics.configure(header.topic, topic, request.now)
        answer_when_kept(self._kept, request.call)

    def _broker(self, request: Request) -> BrokerData:
        return BrokerData(CLUSTER, BROKER, {_MASTER: self._address or request.call.local})


def answer_when_kept(kept: Kept, call: Call) -> None:
    """Answer a change of the configuration once the store has it."""

    def done(whole: bool) -> None:
        text = "the store could not keep the change; it counts until the hub ends"
        call.answer(Code.SUCCESS if whole else Code.SYSTEM_ERROR, {}, "" if whole else text)

    kept.after(done)
