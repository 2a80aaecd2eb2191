"""Arguments of the clients, checked."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from dataproxy.errors import ConfigError
from dataproxy.problems import seconds, shown
from dataproxy.wire.rocketmq.queues import Queue

__all__ = [
    "TlsOptions", "check_begin", "check_count", "check_instance", "check_limit", "check_queue", "limit", "uncopied",
]  # fmt: skip

_INSTANCE_MOST: Final = 200  # with the address in front of it, servers take 255
_LONGEST_S: Final = 1e9  # thirty years, and no limit; the waits of `threading` take no infinity


class TlsOptions(NamedTuple):
    """Options of TLS, without ``tls_`` in front of their names.  Texts; an empty one is not given."""

    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = ""
    verify: str = "full"


def limit(value: float | timedelta) -> float:
    """Return a timeout in seconds; infinity is no limit.  Raises ConfigError: it is negative, nan or no time."""
    return min(seconds(value), _LONGEST_S)


def check_limit(name: str, value: float | timedelta, *, zero: bool = False) -> float:
    """Return an option that is a time in seconds, more than 0 unless ``zero``.  Raises ConfigError, with its name."""
    try:
        found = limit(value)
    except ConfigError:
        found = -1.0
    if found < 0 or (not found and not zero):
        raise ConfigError(
            f"{name}={shown(value)} is no time", code="BAD_TIMEOUT",
            hint=f"give seconds or a timedelta, {'from 0 on' if zero else 'more than 0'}; math.inf is no limit",
        )  # fmt: skip
    return found


def check_count(name: str, value: object, least: int = 1) -> int:
    """Return a whole number from ``least`` on.  Raises ConfigError."""
    if type(value) is not int or not least <= value < 1 << 62:
        raise ConfigError(f"{name}={shown(value)} is not a whole number from {least} on")
    return value


def check_queue(value: object) -> Queue:
    """Return a queue.  Raises ConfigError."""
    if type(value) is not Queue:
        raise ConfigError(f"{shown(value)} is not a queue", hint="`queues` names those of a topic")
    return value


def check_begin(value: object) -> str | int:
    """Return ``first``, ``last`` or ms since 1970.  Raises ConfigError."""
    if isinstance(value, datetime):
        with contextlib.suppress(ValueError, OverflowError):  # no such time in UTC, or NaT of pandas
            return int(value.timestamp() * 1000)
    elif (isinstance(value, str) and value in ("first", "last")) or (type(value) is int and 0 <= value < 1 << 62):
        return value
    raise ConfigError(f"begin={shown(value)} is not 'first', 'last', a datetime, or ms since 1970")


def check_instance(value: object) -> str:
    """Return the name of an instance, which servers know a client by; empty: it gets one.  Raises ConfigError."""
    if isinstance(value, str) and len(value) <= _INSTANCE_MOST and value.isprintable():
        return value
    raise ConfigError(f"instance={shown(value)} is not a text of up to {_INSTANCE_MOST} characters that can be printed")


def uncopied(client: object) -> TypeError:
    """Return the error of a client that is to be copied or pickled."""
    kind = type(client).__name__
    return TypeError(f"a {kind} owns threads and sockets and cannot be copied or pickled: make one in each process")
