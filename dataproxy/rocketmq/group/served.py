"""What brokers ask a member of a group: to divide queues anew, to go elsewhere, and what it is doing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from dataproxy._core.remoting.messages import read_messages
from dataproxy._version import __version__
from dataproxy.errors import DataProxyError
from dataproxy.logs import logger
from dataproxy.wire.rocketmq.bodies import ConsumeResult, RunningInfo
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.headers import ConsumerOf, ResetOffset, RunningInfoOf, StatusOf, read_header
from dataproxy.wire.rocketmq.queues import read_offsets, write_own_offsets

if TYPE_CHECKING:
    from dataproxy._core.remoting.answers import Incoming
    from dataproxy._core.remoting.link import Link
    from dataproxy._core.remoting.messages import ReceivedMessage
    from dataproxy.rocketmq.group.member import Member
    from dataproxy.rocketmq.network.client import Client
    from dataproxy.rocketmq.network.target import Address

__all__ = ["serve"]

_LOG: Final = logger("rocketmq")


class _Served:
    def __init__(self, client: Client, member: Member, consume: Callable[[ReceivedMessage], str] | None,
                 execute: Callable[[Callable[[], None]], None]) -> None:  # fmt: skip
        self._client, self._member, self._consume, self._execute = client, member, consume, execute
        self._begun_ms = time.time_ns() // 1_000_000

    def changed(self, _address: Address, _link: Link, incoming: Incoming) -> None:
        """40: members came or went.  Thread: the one that reads."""
        if read_header(ConsumerOf, incoming.fields).consumer_group == self._member.group:
            self._client.keeper.soon(self._member.rebalance)

    def reset(self, _address: Address, _link: Link, incoming: Incoming) -> None:
        """220: offsets were reset.  Thread: the one that reads."""
        header = read_header(ResetOffset, incoming.fields)
        offsets = read_offsets(incoming.body)
        if header.group == self._member.group:
            self._client.keeper.soon(lambda: self._member.reset(offsets))

    def status(self, _address: Address, link: Link, incoming: Incoming) -> None:
        """221: which offsets it has.  Thread: the one that reads."""
        header = read_header(StatusOf, incoming.fields)
        found = {}
        for queue, reader in list(self._member.readers.items()):
            if queue.topic == header.topic and header.group == self._member.group:
                with reader.lock:
                    found[queue] = reader.backlog.done
        self._client.answer(link, incoming, Answer.SUCCESS, body=write_own_offsets(found))

    def running(self, _address: Address, link: Link, incoming: Incoming) -> None:
        """307: what it is doing.  Thread: the one that reads."""
        if read_header(RunningInfoOf, incoming.fields).consumer_group != self._member.group:
            self._client.answer(link, incoming, Answer.SYSTEM_ERROR, "this client is no member of the group")
            return
        now_ms, now = time.time_ns() // 1_000_000, time.monotonic()
        table: dict[str, dict[str, object]] = {}
        for queue, reader in list(self._member.readers.items()):
            with reader.lock:
                log = reader.backlog
                table[msgspec.json.encode(queue, order="sorted").decode()] = {
                    "commitOffset": log.done, "cachedMsgMinOffset": log.done, "cachedMsgMaxOffset": log.next,
                    "cachedMsgCount": log.count, "cachedMsgSizeInMiB": log.bytes >> 20, "droped": reader.dropped,
                    "locked": reader.locked_until > now, "tryUnlockTimes": 0, "transactionMsgMinOffset": 0,
                    "transactionMsgMaxOffset": 0, "transactionMsgCount": 0, "lastLockTimestamp": 0,
                    "lastPullTimestamp": now_ms - int((now - reader.pulled_at) * 1000), "lastConsumeTimestamp": now_ms,
                }  # fmt: skip
        info = RunningInfo(
            {
                "PROP_CLIENT_VERSION": f"dataproxy {__version__}", "PROP_CONSUMER_START_TIMESTAMP": str(self._begun_ms),
                "PROP_CONSUME_TYPE": self._member.consume_type.value,
            },
            tuple(self._member.subscriptions.values()), table, {}, None,
        )  # fmt: skip
        self._client.answer(link, incoming, Answer.SUCCESS, body=info.write())

    def directly(self, _address: Address, link: Link, incoming: Incoming) -> None:
        """309: it shall consume this message now, on a thread for listeners.  Thread: the one that reads."""
        consume = self._consume
        messages, _ = read_messages(incoming.body, incoming.fields.get("brokerName", ""))
        if consume is None or len(messages) != 1:
            self._client.answer(link, incoming, Answer.SYSTEM_ERROR, "no listener, or not one message")
            return

        def run() -> None:
            begun = time.monotonic()
            remark = consume(messages[0])
            result = ConsumeResult(
                "CR_THROW_EXCEPTION" if remark else "CR_SUCCESS", remark=remark or None,
                spent_time_mills=int((time.monotonic() - begun) * 1000),
            )  # fmt: skip
            self._client.answer(link, incoming, Answer.SUCCESS, body=result.write())

        self._execute(run)


def serve(
    client: Client, member: Member, consume: Callable[[ReceivedMessage], str] | None,
    execute: Callable[[Callable[[], None]], None],
) -> None:  # fmt: skip
    """Answer brokers' requests.

    ``consume`` gives one message to the listener, and returns why it has failed; ``execute`` calls a function on a
    thread for listeners.
    """
    served = _Served(client, member, consume, execute)
    for code, handler in (
        (Code.NOTIFY_CONSUMER_IDS_CHANGED, served.changed),
        (Code.RESET_CONSUMER_CLIENT_OFFSET, served.reset),
        (Code.GET_CONSUMER_STATUS_FROM_CLIENT, served.status),
        (Code.GET_CONSUMER_RUNNING_INFO, served.running),
        (Code.CONSUME_MESSAGE_DIRECTLY, served.directly),
    ):
        client.handlers[code] = _checked(client, handler)


def _checked(
    client: Client, handler: Callable[[Address, Link, Incoming], None]
) -> Callable[[Address, Link, Incoming], None]:
    """Return a handler that answers what cannot be read with an error."""

    def checked(address: Address, link: Link, incoming: Incoming) -> None:
        try:
            handler(address, link, incoming)
        except DataProxyError as error:
            _LOG.warning("%s asks with code %d: %s", address, incoming.code, error.message)
            client.answer(link, incoming, Answer.SYSTEM_ERROR, error.message)

    return checked
