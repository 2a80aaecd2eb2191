"""Messages that come again: a broker is asked for it, or gets a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataproxy.errors import DataProxyError, DiscoveryError, RemoteProtocolError
from dataproxy.rocketmq.network.connections import answer_fault
from dataproxy.rocketmq.sending.messages import retold
from dataproxy.wire.rocketmq.codes import Answer, Code, answer_name
from dataproxy.wire.rocketmq.headers import SendBack, header_fields
from dataproxy.wire.rocketmq.names import retry_topic

if TYPE_CHECKING:
    from dataproxy._core.remoting.answers import SendAnswer
    from dataproxy._core.remoting.link import Link, Request
    from dataproxy._core.remoting.messages import ReceivedMessage
    from dataproxy.rocketmq.network.client import Client

__all__ = ["send_again"]

_WAIT_S: Final = 5.0
_GROUP: Final = b"CLIENT_INNER_PRODUCER"
_FIRST_LEVEL: Final = 3  # of a message that comes again for the first time
_MOST_LEVEL: Final = 18


def send_again(client: Client, group: str, message: ReceivedMessage, delay_level: int, most: int) -> None:
    """Let a message come again to its group, after a delay that grows with its attempts unless ``delay_level`` says it.

    A message that was tried ``most`` times, or one with a negative level, becomes a dead letter.  Raises
    DataProxyError: neither the broker's own copy nor one of ours could be made.  Any thread that may wait.
    """
    address = client.routes.address(message.broker)
    if address is None:
        raise DiscoveryError(f"broker {message.broker} has no address")
    properties = message.properties
    header = SendBack(
        message.handle, group, delay_level, properties.get("ORIGIN_MESSAGE_ID") or message.offset_id, message.topic,
        max_reconsume_times=most,
    )  # fmt: skip
    answer = client.connections.call(address, Code.CONSUMER_SEND_MSG_BACK, header_fields(header), seconds=_WAIT_S)
    if answer.code != Answer.SUCCESS:  # the broker does not find it any more, or will not
        try:
            _copy(client, group, message, delay_level, most)
        except DataProxyError as error:
            raise answer_fault(address, "a message that shall come again", answer) from error


def _copy(client: Client, group: str, message: ReceivedMessage, delay_level: int, most: int) -> None:
    """Send a copy to the topic of messages that come again.  Raises DataProxyError."""
    topic = retry_topic(group)
    route = client.routes.known(topic) or client.routes.ask(topic)
    queues = () if route is None else route.writable
    if not queues:
        raise DiscoveryError(f"topic {topic!r} has no queue that takes messages")
    attempts = most if delay_level < 0 else message.attempts + 1
    properties = message.properties
    level = min(delay_level or _FIRST_LEVEL + message.attempts, _MOST_LEVEL)
    told = {
        "RETRY_TOPIC": message.topic,
        "ORIGIN_MESSAGE_ID": properties.get("ORIGIN_MESSAGE_ID") or message.offset_id,
        "RECONSUME_TIME": str(attempts),
        "MAX_RECONSUME_TIMES": str(most),
    }
    if level > 0:
        told["DELAY"] = str(level)
    queue = queues[message.offset % len(queues)]
    address = client.routes.address(queue.broker_name)
    if address is None:
        raise DiscoveryError(f"broker {queue.broker_name} has no address")

    def write(link: Link, request: Request) -> None:
        link.send(
            request, _GROUP, topic.encode(), queue.queue_id, retold(properties, told), message.packed_body,
            sys_flag=message.sys_flag & 0x701, born_ms=message.born_ms, flag=message.flag, default_queues=1,
            batch=False, attempts=attempts, most_attempts=most,
        )  # fmt: skip

    answer: SendAnswer = client.connections.ask(address, write, _WAIT_S)
    if not answer.stored:
        raise RemoteProtocolError(
            f"broker {queue.broker_name} refused the copy: {answer_name(answer.code)} {answer.remark}"
        )
