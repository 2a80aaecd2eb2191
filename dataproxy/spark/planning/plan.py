"""Checks and look-ups on the driver before a task runs, for batch and for streaming writes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from dataproxy.errors import ConfigError, DiscoveryError, TransportError
from dataproxy.logs import logger
from dataproxy.messagetypes import frame_family, has_item_attributes, has_item_ids
from dataproxy.numbers import FAMILY_BINARY_LINES
from dataproxy.producer.ingest.names import check_name
from dataproxy.rows.bodies import BodyFormat
from dataproxy.spark.badrecords import FAIL, SKIP
from dataproxy.spark.driverlog import open_log
from dataproxy.spark.planning.bodytypes import check_kept_types
from dataproxy.spark.planning.columns import ABSENT, ColumnPlan, plan_columns
from dataproxy.spark.planning.options import SinkSettings, read_options
from dataproxy.spark.planning.runs import named_run
from dataproxy.spark.planning.target import check_connection, find_proxies, known_proxies
from dataproxy.spark.planning.writeplan import WritePlan
from dataproxy.spark.wording import sparks_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from dataproxy.spark.planning.following import KnownProxies

__all__ = ["ProxyMemory", "check_write", "plan_write"]

_log = logger("spark.planning")


class ProxyMemory:
    """Remember the proxies of a write for ``discovery_interval``, since a stream is planned twice for each micro-batch.

    If a later request fails, the last list stays in use: a Manager that does not answer must not stop a running query.
    Thread rule: the one thread of Spark's planner process.
    """

    def __init__(self) -> None:
        self._known: dict[object, tuple[float, KnownProxies]] = {}

    def proxies(self, settings: SinkSettings) -> KnownProxies:
        """Return the proxies; if the list is old, they are looked up and tried again.

        Raises DiscoveryError and TransportError when none was ever found.
        """
        key = (settings.config.target, settings.config.group_id)
        known = self._known.get(key)
        now = time.monotonic()
        if known is not None and now < known[0]:
            return known[1]
        try:
            proxies = find_proxies(settings.config)
            if settings.connect_check != "off" and known is None:
                open_log(wanted=True)  # connectCheck itself switches its own records
                check_connection(proxies, settings.config.connect_timeout, must=settings.connect_check == "fail")
                open_log(settings.outlets.log)
            found = known_proxies(settings.config, proxies)
        except (DiscoveryError, TransportError) as error:
            if known is None:
                raise
            _log.warning("the known proxies stay in use: %s", error)
            found = known[1]
        self._known[key] = (now + settings.config.discovery_interval, found)
        return found


PROXIES: Final = ProxyMemory()


def check_write(options: Mapping[str, str], schema: StructType) -> SinkSettings:
    """Check options, columns and names, without using the network; return the settings.

    Raises ConfigError for options, columns or target, InvalidMessageError for the group or stream.
    """
    settings = read_options(options)
    config, stream_id = settings.config, settings.stream_id
    columns = _columns(settings, schema)
    _check_travel(columns, frame_family(config.message_type, config.joined_lines, config.protocol))
    if settings.bad_records not in (FAIL, SKIP):
        check_kept_types(schema)
    if config.group_id:
        check_name("group", config.group_id, message_type=config.message_type)
    if stream_id:
        check_name("stream", stream_id, message_type=config.message_type)
    if settings.null_group_id:
        check_name("group", settings.null_group_id, message_type=config.message_type)
    if settings.null_stream_id:
        check_name("stream", settings.null_stream_id, message_type=config.message_type)
    return settings


def _columns(settings: SinkSettings, schema: StructType) -> ColumnPlan:
    """Return the places of the columns.  Raises ConfigError."""
    return plan_columns(
        schema,
        group_given=bool(settings.config.group_id),
        stream_given=bool(settings.stream_id),
        body=settings.body,
        meanings=settings.meanings,
        id_from=settings.id_from,
    )


_LAYOUT: Final = {FAMILY_BINARY_LINES: "joinedLines=true"}


def _check_travel(columns: ColumnPlan, family: int) -> None:
    """Refuse columns for which a layout of frames has no place.  Raises ConfigError."""
    wanted = {"msg_id": (columns.msg_id, "use message type 7"), "attrs": (columns.attrs, "use message type 7 or 5")}
    for name, (place, way) in wanted.items():
        carried = has_item_ids(family) or (name == "attrs" and has_item_attributes(family))
        if place != ABSENT and not carried:
            raise ConfigError(
                f"the column {name!r} cannot be sent with {_LAYOUT.get(family, f'messageType={family}')}",
                hint=f"{way}, or drop the column, or send it as data (options format and columns)",
            )


def plan_write(
    options: Mapping[str, str], schema: StructType, *, job: str, proxies: ProxyMemory | None = None
) -> WritePlan:
    """Check everything that can be checked before a task starts, find the proxies, and return the plan.

    ``job`` names a batch write and is empty for streaming; with ``proxies`` a list is remembered there.  Raises
    what `check_write` raises, DiscoveryError and TransportError when no proxy is found or none answers.
    """
    with sparks_words():
        return _plan(options, schema, job, ProxyMemory() if proxies is None else proxies)


def _plan(options: Mapping[str, str], schema: StructType, job: str, proxies: ProxyMemory) -> WritePlan:
    settings = check_write(options, schema)
    columns = _columns(settings, schema)
    found = proxies.proxies(settings)
    _log.debug("job %s: %s, %r", job, found.target, columns)
    row_ids = settings.row_ids and columns.msg_id == ABSENT
    if settings.run_id and not row_ids:
        raise ConfigError("option runId makes ids of rows, but the column msg_id has them already", hint="keep one")
    if settings.id_from and not row_ids:
        raise ConfigError("option idFrom makes ids of rows, but the column msg_id has them already", hint="keep one")
    return WritePlan(
        job,
        settings.for_tasks(found),
        columns,
        settings.outlets,
        row_ids,
        body=BodyFormat(settings.body, columns.body),
        bad_records=settings.bad_records,
        id_run=named_run(settings.run_id) if settings.run_id else "",
    )
