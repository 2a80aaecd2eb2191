"""Why options of the official SDKs have no counterpart: the reasons that several of them share."""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Alias, Refusal

__all__ = [
    "ALWAYS_RETRIED",
    "BUFFERS",
    "BY_TIME",
    "CPP_2022",
    "CPP_2026",
    "GO",
    "JAVA",
    "LOGGING",
    "MAINTAINED",
    "MS",
    "NO_CACHE",
    "PACKING",
    "ROUTING",
    "STATISTICS",
    "of",
    "refuse",
]

CPP_2022: Final = "C++ 2022"
CPP_2026: Final = "C++ 2026 and Python"
JAVA: Final = "Java"
GO: Final = "Go"

MS: Final = 1e-3

ALWAYS_RETRIED: Final = "failures are retried until delivery_timeout; for an earlier end lower delivery_timeout"
BUFFERS: Final = "one option bounds all memory: buffer_bytes"
BY_TIME: Final = "retries are limited by time, not by number: set delivery_timeout"
LOGGING: Final = "logs go to the logger 'dataproxy' of Python's logging module; configure it there"
MAINTAINED: Final = "heartbeats check connections: set heartbeat_interval and heartbeat_retries"
NO_CACHE: Final = "set cache_dir, a folder in which the Manager's lists are kept, and cache_max_age"
PACKING: Final = "batch_bytes, batch_messages and linger decide when a pack is sent"
ROUTING: Final = "connections are chosen by their waiting bytes and by the load that their proxy reports"
STATISTICS: Final = "call Producer.stats() for statistics"


def of(sdks: tuple[str, ...], *entries: Alias) -> tuple[Alias, ...]:
    """Return the entries with the SDKs that have them."""
    return tuple(entry._replace(sdks=sdks) for entry in entries)


def refuse(sdks: tuple[str, ...], reason: str, *names: str) -> tuple[Refusal, ...]:
    """Return one refusal for each name."""
    return tuple(Refusal(name, reason, sdks) for name in names)
