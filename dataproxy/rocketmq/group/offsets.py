"""Where the offsets of a group are kept: at brokers, or for broadcasting in a file."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from dataproxy.errors import ConfigError, DataProxyError, DiscoveryError
from dataproxy.rocketmq.network.client import Client
from dataproxy.rocketmq.network.connections import answer_fault
from dataproxy.rocketmq.network.target import Address
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.headers import (
    GroupQueue,
    Header,
    Offset,
    SearchOffset,
    TopicQueue,
    UpdateOffset,
    header_fields,
    read_header,
)
from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["BrokerOffsets", "FileOffsets", "Offsets", "QueueEnds"]


class Offsets(Protocol):
    """What the keeper asks."""

    def read(self, queue: Queue) -> int | None:
        """Return the offset of a queue, None if there is none.  Raises DataProxyError."""

    def write(self, offsets: Mapping[Queue, int]) -> None:
        """Keep offsets.  Raises DataProxyError."""


class _Asking:
    def __init__(self, client: Client) -> None:
        self._client = client

    def _address(self, queue: Queue) -> Address:
        found = self._client.routes.address(queue.broker_name)
        if found is None:
            raise DiscoveryError(f"broker {queue.broker_name} has no address")
        return found

    def _offset(self, queue: Queue, code: Code, header: Header, none: frozenset[int] = frozenset()) -> int | None:
        address = self._address(queue)
        answer = self._client.connections.call(address, code, header_fields(header))
        if answer.code in none:
            return None
        if answer.code != Answer.SUCCESS:
            raise answer_fault(address, f"an offset of {queue.topic} {queue.broker_name}/{queue.queue_id}", answer)
        return read_header(Offset, answer.fields).offset


class QueueEnds(_Asking):
    """Ask where queues begin and end.  Any thread that may wait.  Raises DataProxyError."""

    def first(self, queue: Queue) -> int:
        """Return the first offset that is stored."""
        return self._offset(queue, Code.GET_MIN_OFFSET, TopicQueue(queue.topic, queue.queue_id)) or 0

    def last(self, queue: Queue) -> int:
        """Return the offset behind the last message."""
        return self._offset(queue, Code.GET_MAX_OFFSET, TopicQueue(queue.topic, queue.queue_id)) or 0

    def at(self, queue: Queue, ms: int) -> int:
        """Return the offset of the first message stored at a time, in ms since 1970, or later."""
        header = SearchOffset(queue.topic, queue.queue_id, ms)
        return self._offset(queue, Code.SEARCH_OFFSET_BY_TIMESTAMP, header) or 0


class BrokerOffsets(_Asking):
    """Offsets of a group, at the brokers of its queues."""

    def __init__(self, client: Client, group: str) -> None:
        super().__init__(client)
        self._group = group

    def read(self, queue: Queue) -> int | None:
        """Return the offset of a queue, None if the group has none.  Raises DataProxyError."""
        header = GroupQueue(self._group, queue.topic, queue.queue_id)
        return self._offset(queue, Code.QUERY_CONSUMER_OFFSET, header, frozenset((Answer.QUERY_NOT_FOUND,)))

    def write(self, offsets: Mapping[Queue, int]) -> None:
        """Tell brokers, which do not answer.  Raises DataProxyError."""
        failed: DataProxyError | None = None
        for queue, offset in offsets.items():
            header = UpdateOffset(self._group, queue.topic, queue.queue_id, offset)
            try:
                self._client.connections.tell(self._address(queue), Code.UPDATE_CONSUMER_OFFSET, header_fields(header))
            except DataProxyError as error:
                failed = error
        if failed is not None:
            raise failed

    def set(self, queue: Queue, offset: int) -> None:
        """Tell a broker, and wait for its answer.  Raises DataProxyError."""
        address = self._address(queue)
        header = UpdateOffset(self._group, queue.topic, queue.queue_id, offset)
        answer = self._client.connections.call(address, Code.UPDATE_CONSUMER_OFFSET, header_fields(header))
        if answer.code != Answer.SUCCESS:
            raise answer_fault(address, f"an offset of {queue.topic} {queue.broker_name}/{queue.queue_id}", answer)


class FileOffsets:
    """Offsets of one process, in a file of JSON; without a path, in memory.  Raises ConfigError: it cannot be read."""

    _TEXT: Final = "\t"

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._offsets: dict[str, int] = {}
        if self._path is None or not self._path.exists():
            return
        try:
            found = json.loads(self._path.read_text("utf-8"))
            if not isinstance(found, dict) or not all(type(one) is int for one in found.values()):
                raise ValueError("it is not an object of numbers")
        except (OSError, ValueError) as error:
            raise ConfigError(f"offsets_path {str(path)!r} cannot be read: {error}") from None
        self._offsets = found

    def read(self, queue: Queue) -> int | None:
        """Return the offset of a queue, None if there is none."""
        return self._offsets.get(self._key(queue))

    def write(self, offsets: Mapping[Queue, int]) -> None:
        """Keep offsets: the file is replaced as a whole.  Raises OSError."""
        self._offsets |= {self._key(queue): offset for queue, offset in offsets.items()}
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                json.dump(self._offsets, file, sort_keys=True, indent=1)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()

    def _key(self, queue: Queue) -> str:
        return f"{queue.topic}{self._TEXT}{queue.broker_name}{self._TEXT}{queue.queue_id}"
