"""The options of a read, in Spark's spelling."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataproxy.config import PRODUCER, concealed, load_producer_config, plain_name, spark_options
from dataproxy.config.spark import camel_case
from dataproxy.config.suggestion import nearest_name
from dataproxy.config.tables.spark import READ_OPTIONS, SINK_OPTIONS
from dataproxy.errors import ConfigError
from dataproxy.problems import shown
from dataproxy.producer.discovery.targets import parse_target, refuse_masters
from dataproxy.shown import without_secrets
from dataproxy.spark.reading.hubclient import HubAddress
from dataproxy.types import ManagerTarget

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["READ_OPTIONS", "Bound", "ReadSettings", "read_settings"]

#: Options that a read and a write have in common, by the names in the producer's table.
_SHARED: Final = ("target", "groupId", "managerSecretId", "managerSecretKey")
_EARLIEST, _LATEST = -2, -1  # Kafka's numbers for the two ends
_OFFSET_MOST: Final = 2**63 - 1
_DIGITS: Final = 20
_OF_WRITES: Final = {
    name.lower(): name for name in (*map(camel_case, PRODUCER.by_name), *(option.name for option in SINK_OPTIONS))
}
_SQL: Final = "in SQL a view to write into names its columns: CREATE TEMPORARY VIEW sink (value STRING) USING dataproxy"
_NO_GROUP: Final = f'set the option "groupId"; {_SQL}'
_ADDRESS: Final = "give the address of the hub's Manager port, such as http://host:8083 (Hub.manager_url)"


@dataclass(frozen=True, slots=True)
class Bound:
    """Hold an end of the range: a time, offsets by partition, one offset for all logs, else the default.

    None among the offsets stands for the default: the earliest entry, or the latest.
    """

    time_ms: int | None = None
    offset: int | None = None
    by_partition: tuple[tuple[int, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The options of a read, as the driver read them."""

    hub: HubAddress
    group_id: str
    stream_id: str
    start: Bound
    end: Bound
    fail_on_loss: bool
    partition_bytes: int


def read_settings(options: Mapping[str, str]) -> ReadSettings:
    """Read the options of a read.

    The driver's ``DATAPROXY_*`` variables fill in target, group and credentials.  Names are compared without case.
    Raises ConfigError for unknown names (with the nearest one), bad values, and what is missing.
    """
    options = concealed(options)
    known = {name.lower(): name for name in (*_SHARED, *(option.name for option in READ_OPTIONS))}
    given: dict[str, Any] = {}
    for key, value in options.items():
        _take(given, known, key, value)
    target = given.get("target", "")
    if without_secrets(target) != target:
        raise ConfigError("Spark shows the value of the option 'target' in plans, and it holds a secret", hint=_ADDRESS)
    refuse_masters(target)
    own: dict[str, Any] = {
        option.name: option.parse(given.get(option.name, option.default), "Spark option") for option in READ_OPTIONS
    }
    try:
        config = load_producer_config(**spark_options({name: given[name] for name in _SHARED if name in given}))
    except ConfigError as error:
        if not target:
            raise ConfigError(f"no hub to read from: {error.message}", hint=f"{_ADDRESS}; {_SQL}") from None
        raise
    if not config.group_id:
        raise ConfigError("no group was given", hint=_NO_GROUP)
    found = parse_target(config.target)
    if not isinstance(found, ManagerTarget):
        raise ConfigError(f"target {config.target!r} accepts messages but cannot be read", hint=_ADDRESS)
    if found.others:
        raise ConfigError(f"target {config.target!r} names several addresses, but a read needs one hub", hint=_ADDRESS)
    hub = HubAddress.of(
        found.url, own["token"], config.manager_secret_id, config.manager_secret_key.reveal(), own["requestTimeout"]
    )
    return ReadSettings(
        hub,
        config.group_id,
        own["streamId"],
        _bound(own, "starting", _EARLIEST, "earliest", config.group_id),
        _bound(own, "ending", _LATEST, "latest", config.group_id),
        own["failOnDataLoss"],
        own["maxPartitionBytes"],
    )


def _take(given: dict[str, Any], known: dict[str, str], key: str, value: Any) -> None:
    """Add an option under its own name.  Raises ConfigError for an option that is unknown or comes twice."""
    word = plain_name(key)
    if word == "path":
        raise ConfigError(f"the read was given the path {value!r}", hint=f"call load() without one; {_ADDRESS}")
    name = known.get(word) or known.get(word.replace("_", ""))
    if name is None and word in _OF_WRITES:
        raise ConfigError(f"option {_OF_WRITES[word]} is for writes, and this is a read", hint=f"leave it out; {_SQL}")
    if name is None:
        near = nearest_name(key, known.values())
        meant = f", did you mean {near!r}?" if near else ""
        raise ConfigError(
            f"there is no option {key!r} of a read{meant}",
            code="UNKNOWN_OPTION",
            hint=f"the options are {', '.join(known.values())}",
        )
    if name in given:
        raise ConfigError(f"two options set {name}", hint="keep one")
    given[name] = value


def _bound(own: dict[str, Any], side: str, default: int, word: str, group: str) -> Bound:
    """Return one end of the range.  Raises ConfigError."""
    by_offset, by_time = f"{side}Offsets", f"{side}Timestamp"
    offsets, time = own[by_offset].strip(), own[by_time].strip()
    if offsets and time:
        raise ConfigError(f"options {by_offset} and {by_time} both say where to read", hint="keep one")
    if time:
        if not time.isascii() or not time.isdecimal() or len(time) > _DIGITS or int(time) > _OFFSET_MOST:
            raise ConfigError(f"option {by_time}={shown(time)} is not a time", hint="give milliseconds since 1970")
        return Bound(time_ms=int(time))
    if not offsets or offsets.lower() == word:
        return Bound()
    hint = f'give {word}, an offset, or JSON by partition such as {{"0": 17, "1": {default}}}'
    wrong = ConfigError(f"option {by_offset}={shown(offsets)} is not allowed", hint=hint)
    try:
        value = json.loads(offsets)
    except (ValueError, RecursionError):
        raise wrong from None
    if _is_offset(value, default):
        return Bound(offset=_settled(value, default))
    if isinstance(value, dict) and list(value) == [group] and isinstance(value[group], dict):
        value = value[group]  # as Kafka writes it, by topic
    if not isinstance(value, dict) or not all(
        name.isascii() and name.isdecimal() and len(name) <= _DIGITS and _is_offset(offset, default)
        for name, offset in value.items()
    ):
        raise wrong
    return Bound(by_partition=tuple(sorted((int(name), _settled(at, default)) for name, at in value.items())))


def _is_offset(value: object, default: int) -> bool:
    return type(value) is int and (value == default or 0 <= value <= _OFFSET_MOST)


def _settled(value: int, default: int) -> int | None:
    return None if value == default else value
