"""What InLong's DataProxies put into the queue: a message of a topic is a container of records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataproxy._core.wire.inlong import message
from dataproxy.consumer.seen import SeenRecords
from dataproxy.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from dataproxy.problems import shown

if TYPE_CHECKING:
    from dataproxy._core.consumer.pack import Pack, Record

__all__ = ["InLongRecord", "check_arguments", "inlong_records"]

_TIME_DIGITS: Final = 15  # the year 33658


@dataclass(frozen=True, slots=True)
class InLongRecord:
    """One record of a container, as a producer sent it.

    ``data_time_ms`` is when the container was made, where the record does not say more.  ``message_id`` is that of a
    producer of this package, "" without one: the same record that came twice has the same id.  ``attributes`` are the
    container's and the record's own.  ``index`` is the message's place in its pack, ``number`` the record's place in
    the message.
    """

    group_id: str
    stream_id: str
    data_time_ms: int
    message_id: str
    body: bytes
    attributes: dict[str, str]
    index: int
    number: int


def inlong_records(
    pack: Pack,
    on_malformed: Callable[[Record, RemoteProtocolError], Any] | None = None,
    *,
    dedupe: SeenRecords | None = None,
) -> Iterator[InLongRecord]:
    """Return the records of all messages of a pack, one at a time.

    ``dedupe``: leave out records that were done with before, as far as it remembers them.

    A message that is no container, or a damaged one, goes to ``on_malformed(message, error)``, after the records before
    the damage; without it RemoteProtocolError is raised, which names topic, partition and offset.  The pack can be
    confirmed all the same.  Raises LocalProtocolError for what is no pack, ConfigError for other arguments.
    """
    if not (hasattr(pack, "partition") and hasattr(pack, "offset")):
        raise LocalProtocolError(f"{shown(pack)} is no pack", hint="give what poll() returned")
    check_arguments(on_malformed, dedupe)
    return _records(pack, on_malformed, dedupe)


def check_arguments(on_malformed: object, dedupe: object) -> None:
    """Raise ConfigError for what nothing could be given to."""
    if on_malformed is not None and not callable(on_malformed):
        raise ConfigError(
            f"on_malformed is a function of a message and an error, not {shown(on_malformed)}",
            code="BAD_CALLBACK",
            hint="pass a callable",
        )
    if dedupe is not None and not isinstance(dedupe, SeenRecords):
        raise ConfigError(f"dedupe={shown(dedupe)} remembers no records", hint="give dataproxy.SeenRecords()")


def _records(
    pack: Pack, on_malformed: Callable[[Record, RemoteProtocolError], Any] | None, dedupe: SeenRecords | None
) -> Iterator[InLongRecord]:
    given = None if dedupe is None else dedupe._begin(pack)
    for one in pack:
        try:
            container = message.records(one.body)
            for number, (body, attrs) in enumerate(container):
                who = attrs.get("groupId", ""), attrs.get("streamId", "")
                message_id = attrs.get("msgid", "")
                if given is None or given.is_new(*who, message_id):
                    own = dict(attrs)  # the container's records share theirs, and an application may change what it got
                    yield InLongRecord(
                        *who, _time(attrs, container.create_time_ms), message_id, body, own, one.index, number
                    )
        except RemoteProtocolError as error:
            told = RemoteProtocolError(
                f"message {one.index} of the pack at {pack.offset} of {pack.partition} is no container of InLong: "
                f"{error.message}",
                hint="give on_malformed to keep such messages, or read them as they are",
                details={
                    "topic": pack.topic, "partition": pack.partition, "offset": pack.offset, "index": one.index,
                    "id": one.id,
                },
            )  # fmt: skip
            if on_malformed is None:
                raise told from error
            on_malformed(one, told)


def _time(attrs: dict[str, str], otherwise: int) -> int:
    for name in ("dtMs", "dt"):
        text = attrs.get(name, "")
        if text.isdecimal() and len(text) <= _TIME_DIGITS:
            return int(text)
    return otherwise
