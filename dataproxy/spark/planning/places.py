"""A warning if ids of rows depend on Spark's partitions, and a repeated write may have other partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataproxy.logs import logger
from dataproxy.spark.driverlog import commits_streams, open_log

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dataproxy.spark.planning.writeplan import WritePlan

__all__ = ["say_what_ids_name"]

_log = logger("spark.places")
_REMEMBERED: Final = 1000
_said: Final[set[Hashable]] = set()


def say_what_ids_name(plan: WritePlan, *, stream: bool, again: bool = False) -> None:
    """Log that ids are places of rows, if a write may be repeated: a stream, or a batch that its user has named.

    Not logged if ids are made from columns, nor with ``reportLog=false``.  Logged once in a process for writes to one
    place, with ``again`` always: a stream is planned for each micro-batch, and ``foreachBatch`` gives each a name.
    Spark's planning process lives for a minute without work.  Thread rule: any thread.
    """
    if not plan.row_ids or plan.columns.id_from or not plan.outlets.log or not (stream or plan.id_run):
        return
    if commits_streams():
        return
    place = (stream, plan.options.group_name, plan.options.stream_id, plan.columns)
    if place in _said and not again:
        return
    if len(_said) >= _REMEMBERED:
        _said.clear()
    _said.add(place)
    open_log(plan.outlets.log)
    _log.warning(
        "rows for the group %s: their ids are made from their places in their partitions. When %s is run again with"
        " other"
        " partitions (another number of cores or executors, adaptive execution) or with rows in another order, rows get"
        " other ids and are stored twice. To prevent this, set the option idFrom to columns that identify a row,"
        " or add a column msg_id; the server has to remember such ids (a hub: dedupe_window)",
        plan.options.group_name or "of the column group_id",
        "a micro-batch" if stream else "the write",
    )
