"""Time zones as tables that the encoders of the core read."""

from __future__ import annotations

import re
from array import array
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from dataproxy.errors import ConfigError

__all__ = ["find_zone", "zone_table"]

_FIRST, _LAST = 1800, 2440  # years; from 2040 on the rules repeat every 400 years, as the calendar does
_STEP: Final = 14 * 86400  # seconds; no zone has changed its offset twice within two weeks
_FIXED: Final = re.compile(r"(?:UTC|GMT|UT)?(?:([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?)?|Z")
# Java's names of three letters, which Spark accepts besides those of the IANA database.
_SHORT: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def find_zone(name: str) -> tzinfo:
    """Return the time zone of a name as Spark writes it: a region, three letters, ``UTC``, ``Z`` or an offset.

    Raises ConfigError.
    """
    given, name = name, _SHORT.get(name, name)
    fixed = _FIXED.fullmatch(name)
    try:
        if fixed:
            sign, hours, minutes, seconds = fixed.groups()
            offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0), seconds=int(seconds or 0))
            return timezone(-offset if sign == "-" else offset)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(
            f"the time zone {given!r} is unknown on this machine: {error}",
            hint="use a name of the IANA database, or UTC",
        ) from None


@lru_cache(maxsize=16)
def zone_table(name: str) -> tuple[bytes, bytes, int]:
    """Return the changes of a zone's offset: seconds since 1970 (int64), seconds to add (int32), and the year 2440.

    The last value is in seconds since 1970; from there on the 400 years before it repeat.  Raises ConfigError for an
    unknown zone.
    """
    zone = find_zone(name)
    second = int((datetime(_FIRST, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
    end = int((datetime(_LAST, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
    starts, offsets = array("q", [-(2**63)]), array("i", [_offset(zone, second)])
    if not isinstance(zone, ZoneInfo):
        return starts.tobytes(), offsets.tobytes(), end
    while second < end:
        after = min(second + _STEP, end)
        offset = _offset(zone, after)
        if offset != offsets[-1]:
            starts.append(_change(zone, second, after))
            offsets.append(offset)
        second = after
    return starts.tobytes(), offsets.tobytes(), end


def _offset(zone: tzinfo, second: int) -> int:
    """Return how many seconds the zone adds to UTC at a second."""
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
    assert offset is not None  # zones of this module always have one
    return int(offset.total_seconds())


def _change(zone: tzinfo, low: int, high: int) -> int:
    """Return the first second that has the offset of ``high``, where ``low`` has another."""
    wanted = _offset(zone, high)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle) == wanted:
            high = middle
        else:
            low = middle
    return high
