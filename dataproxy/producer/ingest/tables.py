"""Tables as messages: the work of ``Producer.send_rows``."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dataproxy._core.producer.ingest.columnar.arrowtable import ArrowTable
from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy._core.producer.ingest.columnar.tablesend import send_table
from dataproxy.errors import ConfigError, DataProxyError, InvalidMessageError
from dataproxy.rows.badfile import FAIL, SKIP, BadFile, read_bad_records, refuser
from dataproxy.rows.options import read_row_options
from dataproxy.rows.plan import plan_rows
from dataproxy.rows.problems import row_error
from dataproxy.rows.zones import zone_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataproxy._core.producer.results.delivery import BatchDelivery
    from dataproxy.producer.producer import Producer

__all__ = ["send_rows"]


def send_rows(
    producer: Producer, stream_id: str | None, table: object, form: str, options: Mapping[str, Any]
) -> BatchDelivery:
    """Send each row of a table as a message; see ``Producer.send_rows``."""
    own, body = read_row_options(form, options)
    where = read_bad_records(own["bad_records"])
    group = producer.config.group_id if own["group_id"] is None else own["group_id"]
    if not isinstance(stream_id, str):
        stream_id = _no_stream(stream_id, own)
    opened = _open(table)
    plan = plan_rows(opened, own, body)
    encoder = plan.body.encoder()
    assert encoder is not None  # send_rows always has a format
    file = BadFile(where) if where not in (FAIL, SKIP) else None
    try:
        out = send_table(
            producer,
            opened,
            encoder,
            BodyEncoder("json", plan.shown, zone_table=zone_table, times="iso_micros", leave_nulls_out=False),
            explain=row_error,
            refuse=refuser(where, file),
            group_id=plan.group_id,
            stream_id=plan.stream_id,
            dt=plan.dt,
            message_id=plan.message_id,
            key=plan.key,
            attr_map=plan.attr_map,
            attr_encoder=BodyEncoder("csv", plan.attrs, zone_table=zone_table) if plan.attrs else None,
            attr_keys=[opened.names[at].encode() for at in plan.attrs],
            group=group,
            stream=stream_id,
            exact_time=producer.config.exact_time,
            escape=producer.config.attribute_escape == "percent",
            on_delivery=own["on_delivery"],
        )
    except BaseException:
        if file is not None:
            with suppress(OSError):
                file.abandon()
        raise
    if file is not None:
        file.close()
    return out


def _no_stream(stream_id: object, own: Mapping[str, Any]) -> str:
    """Return the empty name if a column names the streams.  Raises InvalidMessageError if none does."""
    if stream_id is None and own["stream_column"] is not None:
        return ""
    raise InvalidMessageError(
        f"a stream's name is text, not {type(stream_id).__name__!r}",
        code="BAD_NAME",
        hint="give the name, or None and stream_column",
    )


def _cure(table: object) -> str:
    """Return a hint for a table whose own library failed."""
    if type(table).__module__.partition(".")[0] == "pandas":
        return "give each column one name and one type, e.g. by astype(str)"
    return "correct it so that its own library can make Arrow data of it"


def _open(table: object) -> ArrowTable:
    """Read a table's columns.  Raises InvalidMessageError, and ConfigError if the table's library lacks a package."""
    _refuse_objects(table)
    try:
        return ArrowTable(table)
    except DataProxyError:
        raise
    except ImportError as error:
        name = error.name or "pyarrow"
        raise ConfigError(
            f"a {type(table).__name__} of {type(table).__module__.partition('.')[0]} gives its columns to others by the"
            f" package {name}, which is not installed",
            code="MISSING_PACKAGE",
            hint=f"pip install {name}; Polars and pyarrow tables need nothing else",
        ) from error
    except Exception as error:  # of the table's library; pandas raises for a column of several types, for example
        raise InvalidMessageError(
            f"a {type(table).__name__} gave no Arrow data: {type(error).__name__}: {error}",
            code="BAD_COLUMN",
            hint=_cure(table),
        ) from error


def _refuse_objects(table: object) -> None:
    """Raise InvalidMessageError for columns of Python objects: Polars exports their memory addresses as values."""
    if type(table).__module__.partition(".")[0] != "polars":
        return
    objects = [name for name, kind in dict(getattr(table, "schema", {})).items() if str(kind) == "Object"]
    if objects:
        raise InvalidMessageError(
            f"column {objects[0]!r} of the Polars table has the type Object, whose values are Python objects",
            code="BAD_COLUMN",
            hint="leave the column out of the table, or make texts or numbers of it",
        )
