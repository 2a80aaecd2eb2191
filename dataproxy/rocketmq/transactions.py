"""A producer of messages that are seen when a transaction of the caller's has ended well."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataproxy._core.remoting.messages import read_messages
from dataproxy.errors import DataProxyError, RemoteProtocolError
from dataproxy.logs import logger
from dataproxy.problems import callback_problem
from dataproxy.process.threads import end_child, join, start_hearing
from dataproxy.rocketmq.arguments import limit
from dataproxy.rocketmq.producer import Producer
from dataproxy.rocketmq.sending.deliveries import Delivered
from dataproxy.rocketmq.sending.messages import Message, encode_message
from dataproxy.shown import foreign
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.headers import EndTransaction, TransactionCheck, header_fields, read_header
from dataproxy.wire.rocketmq.names import MessageId

if TYPE_CHECKING:
    from datetime import timedelta

    from dataproxy._core.remoting.answers import Incoming
    from dataproxy._core.remoting.link import Link
    from dataproxy._core.remoting.messages import ReceivedMessage
    from dataproxy.rocketmq.network.target import Address
    from dataproxy.rocketmq.sending.dispatch import Report

__all__ = ["TransactionProducer", "TransactionResult"]

_LOG: Final = logger("rocketmq")
_ENDS: Final = {"commit": 8, "rollback": 12, "unknown": 0}
_NAMES: Final = tuple(_ENDS)
_PREPARED: Final = 4
_MOST_CHECKS: Final = 2000  # that wait to be answered; a broker asks again
_CHECK_S: Final = 5.0  # of a close, for a check


class TransactionResult(NamedTuple):
    """Say what became of a transaction: ``end`` is ``commit``, ``rollback`` or ``unknown``.

    ``told``: the broker was told; if not, it asks ``check`` later.
    """

    delivered: Delivered
    end: str
    told: bool


class TransactionProducer(Producer):
    """Send messages that consumers see after a commit.  Any thread.

    ``check`` is called with a message whose transaction the broker knows no end of: ``execute`` said ``unknown``, or
    this process, or another one of the group, has died.  It returns ``commit``, ``rollback`` or ``unknown``; then, and
    when it raises, the broker asks again, up to 15 times.  It runs on a thread of its own.

    All else is as with `Producer`, and `send` sends without a transaction.
    """

    def __init__(self, target: str, group: str, check: Callable[[ReceivedMessage], str], **options: Any) -> None:
        if not callable(check):
            raise callback_problem(check, "check")
        self._check = check
        self._asked: queue.SimpleQueue[tuple[Address, TransactionCheck, bytes] | None] = queue.SimpleQueue()
        self._leaving = False
        super().__init__(target, group, **options)
        with self._client.made_whole():
            self._client.handlers[Code.CHECK_TRANSACTION_STATE] = self._take_check
            try:
                self._checker = start_hearing("dataproxy-rocketmq-checks", self._run_checks)
            except BaseException:  # of a signal handler, too, when the thread runs already
                self._asked.put(None)
                raise

    def send_in_transaction(
        self,
        topic: str,
        body: bytes | bytearray | memoryview,
        execute: Callable[[Delivered], str],
        *,
        tag: str = "",
        keys: tuple[str, ...] = (),
        properties: Mapping[str, str] | None = None,
        key: str | bytes | None = None,
        timeout: float | timedelta | None = None,
    ) -> TransactionResult:
        """Store a message that nobody sees, call ``execute``, and end the transaction as it says.

        ``execute`` gets where the message is stored, and returns ``commit``, ``rollback`` or ``unknown``.  If it
        raises, the end is ``rollback`` and its exception goes on.  Raises DeliveryError if the message could not be
        stored: ``execute`` was not called then.
        """
        if not callable(execute):
            raise callback_problem(execute, "execute")
        patience = None if timeout is None else limit(timeout)  # before anything is sent
        message = Message(body, tag, keys, {} if properties is None else properties, 0, key)
        more = {"TRAN_MSG": "true", "PGROUP": self._group}
        content = encode_message(message, next(self._ids), self._compress_above, more)
        content.sys_flag |= _PREPARED
        delivered = self._accept(topic, content, 1, key, None).result(patience)
        try:
            end = execute(delivered)
            if end not in _NAMES:  # which may be of any type
                raise ValueError(f"execute returned {end!r}; expected {', '.join(map(repr, _ENDS))}")
        except BaseException as error:
            self._end(delivered, "rollback", repr(error))
            raise
        return TransactionResult(delivered, end, self._end(delivered, end, ""))

    def close(self, timeout: float | timedelta = 10.0) -> Report:
        """Close it as `Producer.close`; checks that wait are left to other producers of the group.

        For a check that has begun it waits as well, for 5 s at most; the answer of one that takes longer is not told.
        """
        until = time.monotonic() + limit(timeout)
        if self.closed or self._client.inherited:
            return super().close(timeout)
        self._dispatcher.check_may_wait()
        raised: BaseException | None = None
        try:
            self._leaving = True
            self._asked.put(None)
            if threading.current_thread() is not self._checker:
                raised = join(self._checker, min(until - time.monotonic(), _CHECK_S), heeds=True)
        finally:
            try:
                super().close(max(0.0, until - time.monotonic()))
            except BaseException:  # of a signal handler, perhaps before anything was closed
                super().close(0.0)
                raise
        if raised is not None:  # by a signal handler
            raise raised
        return self.report()

    def _end(self, delivered: Delivered, end: str, remark: str) -> bool:
        """Tell the broker the end; return whether that was possible."""
        try:
            place = MessageId.read(delivered.offset_ids[0])
            address = self._client.routes.address(delivered.broker)
            if address is None:
                return False
            header = EndTransaction(
                producer_group=self._group, tran_state_table_offset=delivered.offset, commit_log_offset=place.offset,
                commit_or_rollback=_ENDS[end], msg_id=delivered.id,
                transaction_id=delivered.transaction_id or delivered.id,
            )  # fmt: skip
            self._client.connections.tell(address, Code.END_TRANSACTION, header_fields(header))
        except (DataProxyError, ValueError) as error:
            _LOG.warning("the end of transaction %s was not told: %s (%s)", delivered.id, error, remark)
            return False
        return True

    def _take_check(self, address: Address, _link: Link, incoming: Incoming) -> None:
        """39: a broker asks for the end of a transaction.  Thread: the one that reads."""
        if self._asked.qsize() >= _MOST_CHECKS:
            _LOG.warning("%d transactions wait to be checked; %s asks again", _MOST_CHECKS, address)
            return
        try:
            self._asked.put((address, read_header(TransactionCheck, incoming.fields), incoming.body))
        except RemoteProtocolError as error:
            _LOG.warning("%s asks for a transaction: %s", address, error.message)

    def _run_checks(self) -> None:
        """Answer brokers, one check after the other.  Thread: for checks."""
        while (asked := self._asked.get()) is not None and not self._leaving:
            try:
                self._answer_check(*asked)
            except BaseException:  # noqa: BLE001 - also SystemExit: the thread goes on
                _LOG.log(logging.ERROR, "a transaction could not be checked", exc_info=True)

    def _answer_check(self, address: Address, header: TransactionCheck, body: bytes) -> None:
        messages, _ = read_messages(body, str(address))
        if len(messages) != 1:
            raise RemoteProtocolError(f"{address} asks for a transaction with {len(messages)} messages")
        try:
            end = self._check(messages[0])
        finally:
            end_child(self._client.inherited)
        if end not in _NAMES:  # which may be of any type
            raise ValueError(f"check returned {foreign(repr(end))}; expected {', '.join(map(repr, _ENDS))}")
        id_ = header.msg_id or messages[0].id
        answer = EndTransaction(
            producer_group=self._group, tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset, commit_or_rollback=_ENDS[end], from_transaction_check=True,
            msg_id=id_, transaction_id=header.transaction_id or id_,
        )  # fmt: skip
        self._client.connections.tell(address, Code.END_TRANSACTION, header_fields(answer))
