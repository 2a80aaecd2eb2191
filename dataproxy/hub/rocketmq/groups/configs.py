"""Configurations of consumer groups (200): defaults, changes with a version, and where they are kept."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.bodies import SubscriptionGroup
from dataproxy.wire.rocketmq.codes import Answer
from dataproxy.wire.rocketmq.dialect import read_body, write_body
from dataproxy.wire.rocketmq.names import is_name

__all__ = ["GroupConfigs", "GroupStore", "Version"]

_MOST: Final = 100_000
_QUEUES: Final = 1024
_NAME_BYTES: Final = 120  # with %RETRY% in front it is the name of a topic


class GroupStore(Protocol):
    """Where configurations are kept; a call that returns has kept them."""

    def load(self) -> bytes | None:
        """Return what was saved last, None if nothing was."""
        ...

    def save(self, data: bytes) -> None:
        """Keep this in the place of what was saved before; raises if it cannot."""
        ...


class Version(msgspec.Struct, frozen=True):
    """Which state of the configurations this is; each change has a higher counter."""

    timestamp: int = 0  #: ms of the time of day
    counter: int = 0


class _Saved(msgspec.Struct, rename="camel"):
    data_version: Version
    subscription_group_table: dict[str, SubscriptionGroup]


class GroupConfigs:
    """The configurations of consumer groups.  One thread.

    A group that nobody has configured has the defaults; with ``auto_create`` off it is unknown.  Raises
    RemoteProtocolError if what the store has cannot be read.
    """

    def __init__(self, store: GroupStore, *, auto_create: bool = True) -> None:
        self._store, self.auto_create = store, auto_create
        data = store.load()
        try:
            saved = _Saved(Version(), {}) if data is None else read_body(_Saved, data)
        except RemoteProtocolError as error:
            raise RemoteProtocolError(
                f"the configurations of groups that were saved cannot be read: {error}", retriable=False
            ) from None
        self._table, self.version = saved.subscription_group_table, saved.data_version

    def get(self, group: str) -> SubscriptionGroup | None:
        """Return a group's configuration; None: it is unknown."""
        found = self._table.get(group)
        if found is None and self.auto_create:
            return SubscriptionGroup(group)
        return found

    def update(self, config: SubscriptionGroup, wall_ms: int) -> None:
        """Take a group's configuration, once it is kept.  Raises RefusedError; then nothing has changed."""
        self._check(config)
        table = {**self._table, config.group_name: config}
        version = Version(wall_ms, self.version.counter + 1)
        try:
            self._store.save(write_body(_Saved(version, table)))
        except Exception as error:
            raise RefusedError(
                Answer.SYSTEM_ERROR, f"the configuration of {config.group_name} could not be kept: {error}"
            ) from error
        self._table, self.version = table, version

    def tells(self, group: str) -> bool:
        """Tell whether members hear that their group has changed; they do where nobody said otherwise."""
        found = self._table.get(group)
        return found is None or found.notify_consumer_ids_changed_enable

    def all(self) -> tuple[SubscriptionGroup, ...]:
        """Return what was configured, by the names of the groups."""
        return tuple(self._table[group] for group in sorted(self._table))

    def _check(self, config: SubscriptionGroup) -> None:
        wrong = ""
        if not is_name(config.group_name) or len(config.group_name) > _NAME_BYTES:
            wrong = (
                f"groupName is {shown(config.group_name)}; expected 1 to {_NAME_BYTES} letters of ASCII, digits, and"
                " any of %|_-"
            )
        elif not 0 <= config.retry_queue_nums <= _QUEUES:
            wrong = f"retryQueueNums is {config.retry_queue_nums}; expected 0 to {_QUEUES}"
        elif config.retry_max_times < -1:
            wrong = f"retryMaxTimes is {config.retry_max_times}; expected -1 (no limit) or more"
        elif config.group_name not in self._table and len(self._table) >= _MOST:
            wrong = f"{_MOST} groups are configured, and there is room for no more"
        if wrong:
            raise RefusedError(Answer.SYSTEM_ERROR, wrong)
