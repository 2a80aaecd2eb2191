"""The sink's options for bodies that are made from columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataproxy.config.tables.spark import FORMAT_OPTIONS, FORMATS
from dataproxy.errors import ConfigError
from dataproxy.rows.bodies import BodyOptions, settle_body

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["FORMATS", "FORMAT_OPTIONS", "check_used", "read_body_options"]

_NAMES: Final = {
    "format": "format",
    "body_columns": "bodyColumns",
    "separator": "separator",
    "kv_separator": "kvSeparator",
    "escape": "escape",
    "quote": "quote",
    "line_separator": "lineSeparator",
    "null_text": "nullText",
    "ignore_null_fields": "ignoreNullFields",
    "timestamp_format": "timestampFormat",
    "time_zone": "timeZone",
}

# Options without effect, by format.
_IDLE: Final[dict[str, set[str]]] = {
    "raw": {option.name for option in FORMAT_OPTIONS},
    "json": {"separator", "kvSeparator", "escape", "quote", "lineSeparator", "nullText"},
    "csv": {"kvSeparator"},
    "kv": set(),
}


def check_used(form: str, given: Iterable[str]) -> None:
    """Raise ConfigError when an option was given that has no effect on the format."""
    form = form or "raw"
    idle = [name for name in given if name != "format" and name in _IDLE[form]]
    if idle:
        users = [other for other in FORMATS if idle[0] not in _IDLE[other]]
        raise ConfigError(
            f"option {idle[0]} has no effect on format={form}",
            hint=f"leave it out, or set the option format to {' or '.join(users)}",
        )


def read_body_options(own: Mapping[str, Any], *, null_given: bool = False) -> BodyOptions:
    """Return the options for bodies; ``null_given`` tells that ``nullText`` is not a default.

    An empty ``nullText`` that was given allows that nulls and empty texts are written in the same way.
    Raises ConfigError for a separator that is not one ASCII character, for two equal ones, for `nullText` that holds
    one, and for an unknown time zone.
    """
    given = {name: own[option] for name, option in _NAMES.items()}
    return settle_body(given, null_given=null_given, say=_NAMES.__getitem__)
