"""The options of the source, in Spark's spelling."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataproxy.config import CONSUMER, load_consumer_config, plain_name
from dataproxy.config.spark import camel_case
from dataproxy.config.suggestion import nearest_name
from dataproxy.config.tables.spark import OF_CONSUMERS, SOURCE_OPTIONS
from dataproxy.errors import ConfigError
from dataproxy.masters.target import parse_target
from dataproxy.shown import without_secrets
from dataproxy.spark.tubemq.offsets import EARLIEST, LATEST, Bound, read_bound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataproxy.config import ConsumerConfig

__all__ = ["SourceSettings", "named_records", "source_settings"]

_SHARED: Final = {camel_case(name): name for name in OF_CONSUMERS}
_OWN: Final = {option.name: option for option in SOURCE_OPTIONS}
_KNOWN: Final = {name.lower(): name for name in (*_SHARED, *_OWN)}
#: Names of other sources, and what they are here.
_ELSEWHERE: Final = {
    "subscribe": "topics",
    "subscribepattern": "topics",
    "assign": "topics",
    "topic": "topics",
    "groupid": "group",
    "kafka.group.id": "group",
    "kafka.bootstrap.servers": "target",
    "masters": "target",
    "master": "target",
}
_BATCH, _STREAM = "batch", "stream"


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The options of a read, as the driver read them; picklable."""

    config: ConsumerConfig
    inlong: bool
    start: Bound
    end: Bound
    max_offsets: int
    min_partitions: int
    fail_on_loss: bool
    skip_malformed: bool
    time_zone: str
    group_wait: float
    listing_interval: float


def source_settings(options: Mapping[str, str], *, stream: bool) -> SourceSettings:
    """Read the options of a batch or a stream.

    The driver's ``DATAPROXY_CONSUMER_*`` variables fill in what a consumer has.  Names are compared without case.
    Raises ConfigError for unknown names (with the nearest one), bad values, and what is missing.
    """
    given: dict[str, Any] = {}
    for key, value in options.items():
        _take(given, key, value)
    target = given.get("target", "")
    if without_secrets(target) != target:
        raise ConfigError(
            "Spark shows the value of the option 'target' in plans, and it holds a secret",
            hint="give credentials as user and password",
        )
    shared = {name: given[spelled] for spelled, name in _SHARED.items() if spelled in given}
    config = load_consumer_config(**shared)
    parse_target(config.target, config.tls)
    own: dict[str, Any] = {
        name: option.parse(given.get(name, option.default), "Spark option") for name, option in _OWN.items()
    }
    _check_zone(own["timeZone"])
    if stream and own["endingOffsets"]:
        raise ConfigError("option endingOffsets is for batches, and this is a stream", hint="leave it out")
    if not stream and own["maxOffsetsPerTrigger"]:
        raise ConfigError(
            "option maxOffsetsPerTrigger is for streams, and this is a batch", hint="leave it out, or use endingOffsets"
        )
    topics = {topic: items or own["filters"] for topic, items in config.topics}
    password = config.password.reveal()  # once, on the driver: executors may not have its file or variable
    config = config.replace(topics=topics, **({"password": f"value:{password}"} if password else {}))
    names = tuple(topics)
    return SourceSettings(
        config,
        own["records"] == "inlong",
        read_bound("startingOffsets", own["startingOffsets"], LATEST if stream else EARLIEST, names),
        read_bound("endingOffsets", own["endingOffsets"], LATEST, names),
        own["maxOffsetsPerTrigger"],
        own["minPartitions"],
        own["failOnDataLoss"],
        own["malformed"] == "skip",
        own["timeZone"],
        own["groupWait"],
        own["listingInterval"],
    )


def named_records(options: Mapping[str, str]) -> str:
    """Return what a row is, ``raw`` or ``inlong``; the other options are looked at when a read is planned.

    Raises ConfigError for unknown options, and for one that is wrong.
    """
    given: dict[str, Any] = {}
    for key, value in options.items():
        _take(given, key, value)
    return str(_OWN["records"].parse(given.get("records", "raw"), "Spark option"))


def _take(given: dict[str, Any], key: str, value: Any) -> None:
    """Add an option under its own name.  Raises ConfigError for an option that is unknown or comes twice."""
    word = plain_name(key)
    if word == "path":
        raise ConfigError(f"the read was given the path {value!r}", hint="call load() without one, and give 'topics'")
    name = _KNOWN.get(word) or _KNOWN.get(word.replace("_", ""))
    if name is None:
        raise ConfigError(
            _unknown(key, word), code="UNKNOWN_OPTION", hint=f"the options are {', '.join(_KNOWN.values())}"
        )
    if name in given:
        raise ConfigError(f"two options set {name}", hint="keep one")
    given[name] = value


def _unknown(key: str, word: str) -> str:
    text = f"there is no option {key!r} of the source tubemq"
    meant = _ELSEWHERE.get(word) or nearest_name(key, _KNOWN.values())
    if meant is None and word.replace("_", "") in {name.replace("_", "") for name in CONSUMER.by_name}:
        return f"{text}: consumers have it, and the source needs none"
    return f"{text}, did you mean {meant!r}?" if meant else text


def _check_zone(name: str) -> None:
    """Refuse a time zone that Python, or Arrow, does not know: tasks would fail on it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        zoneinfo.ZoneInfo(name)
        pc.assume_timezone(pa.array([0], pa.timestamp("us")), name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise ConfigError(
            f"option timeZone={name!r} is no time zone", hint="give a name such as 'UTC' or 'Asia/Shanghai'"
        ) from None
