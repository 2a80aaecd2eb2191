"""A queue that a hub pushes: frames come without being asked for, and are acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataproxy._core.remoting.messages import read_messages
from dataproxy.errors import ClosedError, DataProxyError, RemoteProtocolError
from dataproxy.logs import logger
from dataproxy.rocketmq.group.reader import QueueReader
from dataproxy.shown import foreign
from dataproxy.wire.rocketmq.bodies import ClientCheck
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.headers import (
    Pushed,
    PushState,
    PushStateOf,
    UpdateOffset,
    header_fields,
    read_header,
)
from dataproxy.wire.rocketmq.queues import Queue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataproxy._core.remoting.answers import Incoming
    from dataproxy._core.remoting.link import Link
    from dataproxy._core.remoting.messages import ReceivedMessage
    from dataproxy.rocketmq.group.backlog import Chunk
    from dataproxy.rocketmq.group.member import Member
    from dataproxy.rocketmq.network.client import Client
    from dataproxy.rocketmq.network.target import Address
    from dataproxy.wire.rocketmq.bodies import Subscription

__all__ = ["PushedReader", "refusal_of_filters", "refusal_of_push", "serve_pushes"]

_LOG: Final = logger("rocketmq")
_ACKNOWLEDGED: Final = 64  # messages, when there are more to come


class PushedReader(QueueReader):
    """Take what a hub pushes of a queue.  Any thread.  Locks: that of `QueueReader`.

    Frames of one session follow each other without a gap.  Another session begins where the hub knows the group to be:
    what is out then counts no more, and comes again.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._session = -1
        self._acknowledged = self.backlog.next

    def pull(self) -> None:
        """Do nothing: messages come without being asked for."""

    def take(self, frame: Pushed, messages: list[ReceivedMessage]) -> bool:
        """Take a frame; False: it does not follow the one before it.  Thread: the one that reads."""
        with self.lock:
            if self.dropped:
                return True
            if frame.session != self._session:
                self._session = frame.session
                self.backlog.reset(frame.begin_offset)
                self._acknowledged = frame.begin_offset
            elif frame.begin_offset != self.backlog.next:
                return False
            self.lagging = max(0, frame.max_offset - frame.next_offset)
            chunks = self.backlog.add(messages, frame.next_offset, self._sink._chunk_size())
        if chunks:
            self._sink._take(self, chunks)
        return True

    def finish(self, chunk: Chunk) -> None:
        """Count messages as done, and acknowledge what is, if that is much or all that came."""
        with self.lock:
            if not self.backlog.finish(chunk) or self.dropped:
                return
            done = self.backlog.done
            if not self.backlog.idle and done - self._acknowledged < _ACKNOWLEDGED:
                return
            self._acknowledged = done
        self._acknowledge(done)

    def report(self) -> None:
        """Acknowledge what is done and was not acknowledged."""
        with self.lock:
            done = self.backlog.done
            if self.dropped or done <= self._acknowledged:
                return
            self._acknowledged = done
        self._acknowledge(done)

    def repeat(self) -> None:
        """Acknowledge what is done once more: nobody answers that, and a hub that is too busy leaves it aside."""
        with self.lock:
            if self.dropped or self._session < 0:
                return
            done = self._acknowledged = self.backlog.done
        self._acknowledge(done)

    def _acknowledge(self, offset: int) -> None:
        """Tell the hub; on a connection that has ended nobody waits for it."""
        address = self._client.routes.address(self.queue.broker_name)
        link = None if address is None else self._client.connections.get(address)
        if link is None:
            return
        header = UpdateOffset(self._group.decode(), self.queue.topic, self.queue.queue_id, offset)
        try:
            link.call(None, Code.UPDATE_CONSUMER_OFFSET, header_fields(header), b"")
        except ClosedError:
            return
        self._client.connections.push(link)

    def seek(self, offset: int) -> None:
        """Do nothing: the hub that sets an offset ends the session, and begins another one there."""


def refusal_of_push(client: Client, group: str, name: str, address: Address) -> str:
    """Return why a broker does not push to a group; empty: it does.  Thread: the keeper.  Raises DataProxyError."""
    answer = client.connections.call(address, Code.PUSH_STATE, header_fields(PushStateOf(group)))
    if answer.code != Answer.REQUEST_CODE_NOT_SUPPORTED:
        return ""
    return (
        f"the broker {name} at {address} does not push: it does not know the code {Code.PUSH_STATE:d}. Hubs of"
        " dataproxy push, brokers of RocketMQ 4.x do not: leave push=True out, and messages are pulled"
    )


def refusal_of_filters(client: Client, group: str, wanted: Iterable[Subscription], address: Address) -> str:
    """Return what is wrong with an expression; empty: a broker can read all.

    Thread: the keeper.  Raises DataProxyError.  A hub does not push what is asked for by such a one, and cannot say so
    in its answer to a heartbeat.
    """
    for one in wanted:
        if one.expression_type == "SQL92":
            body = ClientCheck(client.id, group, one).write()
            answer = client.connections.call(address, Code.CHECK_CLIENT_CONFIG, {}, body)
            if answer.code == Answer.SUBSCRIPTION_PARSE_FAILED:
                return f"topic {one.topic!r}: {foreign(answer.remark)}"
    return ""


def serve_pushes(client: Client, member: Member) -> None:
    """Take what hubs push to a member, and what they say of it."""
    served = _Served(client, member)
    client.handlers[Code.SNODE_PUSH_MESSAGE] = served.pushed
    client.handlers[Code.PUSH_STATE] = served.told


class _Served:
    """Threads: the one that reads."""

    def __init__(self, client: Client, member: Member) -> None:
        self._client, self._member = client, member

    def pushed(self, address: Address, _link: Link, incoming: Incoming) -> None:
        """352: messages.  A frame that cannot be read, or that leaves a gap, ends the connection: all comes again."""
        try:
            frame = read_header(Pushed, incoming.fields)
            reader = self._reader(address, frame.consumer_group, frame.topic, frame.queue_id)
            if reader is None:
                return  # it was given back
            messages, broken = read_messages(incoming.body, reader.queue.broker_name)
            reader.broken += broken
            if not reader.take(frame, messages):
                raise RemoteProtocolError(
                    f"{reader!r}: a frame from offset {frame.begin_offset} was pushed; expected {reader.backlog.next}"
                )
        except DataProxyError as error:
            self._client.connections.drop(address, RemoteProtocolError(f"{address}: {error.message}"))
        except Exception as error:
            text = f"{address}: what was pushed could not be taken: {type(error).__name__}"
            self._client.connections.drop(address, RemoteProtocolError(text))
            raise  # it is logged

    def _reader(self, address: Address, group: str, topic: str, queue: int) -> PushedReader | None:
        if group != self._member.group:
            return None
        for name, places in self._client.routes.brokers().items():
            if address in places.values():
                found = self._member.readers.get(Queue(name, queue, topic))
                if isinstance(found, PushedReader):
                    return found
        return None

    def told(self, address: Address, _link: Link, incoming: Incoming) -> None:
        """353: a session is paused, goes on, or is evicted."""
        try:
            found = read_header(PushState, incoming.fields)
        except DataProxyError as error:
            _LOG.warning("%s tells of a push: %s", address, error.message)
            return
        _LOG.warning(
            "the push of %s %d to the group %s is %s: %d messages of %d bytes are not acknowledged, for %.1f s",
            foreign(found.topic), found.queue_id, foreign(found.consumer_group), foreign(found.state), found.messages,
            found.bytes, found.age_millis / 1000,
        )  # fmt: skip
        reader = self._reader(address, found.consumer_group, found.topic, found.queue_id)
        if reader is not None and found.state == "paused":
            reader.repeat()
