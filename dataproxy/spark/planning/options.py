"""The sink's options: those of the producer in Spark's spelling, and some of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataproxy.config import (
    PRODUCER,
    Option,
    ProducerConfig,
    concealed,
    load_producer_config,
    plain_name,
    spark_options,
)
from dataproxy.config.secret import Secret
from dataproxy.config.tables.spark import FORMAT_OPTIONS, SINK_OPTIONS
from dataproxy.errors import ConfigError
from dataproxy.messagetypes import frame_family, has_item_ids
from dataproxy.producer.discovery.targets import refuse_masters
from dataproxy.rows.bodies import RAW, BodyOptions
from dataproxy.shown import without_secrets
from dataproxy.spark.badrecords import read_policy
from dataproxy.spark.folders import read_folder
from dataproxy.spark.planning.columns import BY_NAME, Meanings
from dataproxy.spark.planning.following import NOT_ASKED, KnownProxies
from dataproxy.spark.planning.formats import check_used, read_body_options
from dataproxy.spark.reporting.outlets import Outlets
from dataproxy.spark.wording import sparks_words

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SINK_OPTIONS", "SinkOptions", "SinkSettings", "read_options"]

# What Spark itself adds to a streaming write.
_LINGER: Final = 1.0  # seconds that a pack may stay open; less where deliveries have little time
_LATER: Final = 1.0  # seconds that the wait for room exceeds delivery_timeout, so that a lost row ends it
_SPARKS_OWN: Final = ("checkpointLocation", "queryName")
# Other SDKs' names of the secrets, which Spark does not know as such.
_SHOWN: Final = {name.replace("_", mark): name for name in ("auth_id", "auth_key") for mark in ("_", "")}
_HIDDEN: Final = "write managerSecretId and managerSecretKey, whose values Spark hides, and change the secret"
_NO_PATH = (
    "the sink takes no path: call save() or start() without one and set the proxies with the option 'target'; in SQL "
    "use CREATE TEMPORARY VIEW with columns and options"
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options for tasks: those of the producer with the proxies that the driver found, and the stream; no secrets.

    Two equal objects may share one producer.
    """

    producer: tuple[tuple[str, Any], ...]
    stream_id: str
    group_id: str = ""  # the group of rows whose column is null
    proxies: KnownProxies = NOT_ASKED  # how the driver found the producer's target

    @property
    def group_name(self) -> str:
        """Return the group of all rows; empty where a column names it."""
        return str(dict(self.producer).get("group_id", ""))

    def config(self) -> ProducerConfig:
        """Return the producer's configuration; the executor's environment has no effect on it."""
        return load_producer_config(env={}, **dict(self.producer))


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """The options of a write, as the driver read them."""

    config: ProducerConfig
    stream_id: str
    row_ids: bool
    connect_check: str
    outlets: Outlets
    body: BodyOptions = RAW
    bad_records: str = "fail"
    null_group_id: str = ""
    null_stream_id: str = ""
    meanings: Meanings = BY_NAME
    run_id: str = ""
    id_from: tuple[str, ...] = ()

    def for_tasks(self, proxies: KnownProxies) -> SinkOptions:
        """Return the options for tasks; `proxies` are those that the driver found."""
        values = {
            name: value
            for name, value in self.config.as_dict().items()
            if value != PRODUCER.by_name[name].default and (not PRODUCER.by_name[name].secret or _portable(name, value))
        }
        values["target"] = proxies.target
        return SinkOptions(
            tuple(sorted(values.items())), self.stream_id or self.null_stream_id, self.null_group_id, proxies
        )


def _portable(name: str, value: object) -> bool:
    """Tell whether a secret is only the name of a variable or file, which each executor looks at itself.

    The Manager's key stays here with its id, which is no such name: without the id it is a wrong option.
    """
    return name != "manager_secret_key" and isinstance(value, Secret) and value.portable


def read_options(options: Mapping[str, str]) -> SinkSettings:
    """Read the options of a write.

    The driver's ``DATAPROXY_*`` variables fill in what the options leave out.  Names are compared without
    case.  Raises ConfigError for unknown names (with the nearest one), bad values and a missing target.
    """
    options = concealed(options)
    with sparks_words():
        return _read(options)


def _read(options: Mapping[str, Any]) -> SinkSettings:
    given = {key.lower(): value for key, value in options.items()}
    if "path" in given:
        raise ConfigError(f"the write was given the path {given['path']!r}", hint=_NO_PATH)
    shown = next((_SHOWN[name] for name in map(plain_name, given) if name in _SHOWN), "")
    if shown:
        raise ConfigError(f"Spark shows the value of the option {shown!r} in plans", hint=_HIDDEN)
    target = next((value for name, value in given.items() if plain_name(name) == "target"), "")
    if without_secrets(target) != target:
        raise ConfigError("Spark shows the value of the option 'target' in plans, and it holds a secret", hint=_HIDDEN)
    refuse_masters(target)
    own = {option.name: option.parse(_value(given, option), "Spark option") for option in SINK_OPTIONS}
    plain = {plain_name(name) for name in given}
    check_used(own["format"], [option.name for option in FORMAT_OPTIONS if option.name.lower() in plain])
    config = load_producer_config(
        **spark_options(options, known=[*_SPARKS_OWN, *(option.name for option in SINK_OPTIONS)])
    )
    if config.tls_key_password and not config.tls_key_password.portable:
        raise ConfigError(
            "a plan of Spark holds no secrets, and option tlsKeyPassword is one",
            hint="write tlsKeyPassword=env:NAME or file:PATH, which each executor looks at",
        )
    if config.on_full != "block":
        raise ConfigError(
            f"option onFull={config.on_full!r} cannot be used in Spark",
            hint="leave it out: a full buffer makes the task wait, which is Spark's back-pressure",
        )
    row_ids = own["rowIds"] and has_item_ids(frame_family(config.message_type, config.joined_lines, config.protocol))
    if own["runId"] and not row_ids:
        raise ConfigError("option runId needs ids of rows, but rows have none", hint="use rowIds=true, messageType=7")
    if own["idFrom"] and not row_ids:
        raise ConfigError("option idFrom makes ids of rows, but rows have none", hint="use rowIds=true, messageType=7")
    room = read_folder("reportFolder", own["reportFolder"]) if own["reportFolder"] else ""
    outlets = Outlets(own["reportFile"], own["reportCallback"], own["reportLog"], room)
    outlets.check()
    return SinkSettings(
        config=_with_sink_defaults(config),
        stream_id=own["streamId"],
        row_ids=row_ids,
        connect_check=own["connectCheck"],
        outlets=outlets,
        body=read_body_options(own, null_given="nulltext" in plain),
        bad_records=read_policy(own["badRecords"]),
        null_group_id=own["nullGroupId"],
        null_stream_id=own["nullStreamId"],
        meanings=_read_meanings(own["columns"], own["columnPrefix"], config.ordering == "key"),
        run_id=own["runId"],
        id_from=own["idFrom"],
    )


def _read_meanings(columns: tuple[str, ...], prefix: str, ordered: bool) -> Meanings:
    """Return the columns that route.  Raises ConfigError if both options are given."""
    if columns and prefix:
        raise ConfigError("options columns and columnPrefix both say which columns have a meaning", hint="keep one")
    return Meanings(columns or None, prefix, ordered)


def _value(given: Mapping[str, str], option: Option) -> Any:
    """Return the value of an option of the sink, given with or without the prefix, else its default."""
    spelled = [name for name in given if plain_name(name) == option.name.lower()]
    if len(spelled) > 1:
        raise ConfigError(f"options {spelled[0]!r} and {spelled[1]!r} both set {option.name}", hint="keep one")
    return given[spelled[0]] if spelled else option.default


def _with_sink_defaults(config: ProducerConfig) -> ProducerConfig:
    """Return the options with the sink's own defaults.

    Each worker process has one connection, since there are many processes.  The wait for room is a second longer than
    ``delivery_timeout``, so that the first lost row ends the task.  A pack may stay open for a second, so that rows of
    many streams fill their frames; the task ends with a flush, before which no row counts as written.  A column ``dt``
    keeps its milliseconds if messages have attributes.
    """
    changes: dict[str, Any] = {}
    if config.origin("connections").startswith("default"):
        changes["connections"] = max(1, config.executors)
    if config.origin("max_block").startswith("default"):
        longer = config.delivery_timeout + _LATER
        changes["max_block"] = min(longer, PRODUCER.by_name["max_block"].high or longer)
    if config.origin("exact_time").startswith("default") and has_item_ids(
        frame_family(config.message_type, config.joined_lines, config.protocol)
    ):
        changes["exact_time"] = True
    if config.origin("linger").startswith("default"):
        changes["linger"] = max(config.linger, min(_LINGER, config.delivery_timeout / 4))
    return config.replace(**changes) if changes else config
