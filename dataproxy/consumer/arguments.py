"""Checks of a consumer's arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dataproxy.config import ConsumerConfig, load_consumer_config
from dataproxy.errors import ConfigError
from dataproxy.problems import shown
from dataproxy.process.threads import check_native_threads

__all__ = ["checked_config"]


def checked_config(
    target: str | list[str] | tuple[str, ...] | None,
    group: str | None,
    topics: Any,
    on_assigned: object,
    on_revoked: object,
    config: ConsumerConfig | None,
    config_file: str | Path | None,
    options: Mapping[str, Any],
) -> ConsumerConfig:
    """Check a consumer's arguments and return the configuration that they describe.

    Raises ConfigError (also where ``threading`` has no native threads).
    """
    _check_callback("on_assigned", "a partition", on_assigned)
    _check_callback("on_revoked", "a partition, and whether it is lost", on_revoked)
    check_native_threads()
    if config is not None and not isinstance(config, ConsumerConfig):
        raise ConfigError(
            f"config is a {type(config).__name__!r}, not a ConsumerConfig",
            hint="make one by dataproxy.config.load_consumer_config, or give the options themselves",
        )
    if config is None:
        return load_consumer_config(target, group, topics, file=config_file, **options)
    if config_file is not None:
        raise ConfigError("config and config_file were both given", hint="give one of them")
    given = {"target": target, "group": group, "topics": topics, **options}
    changes = {key: value for key, value in given.items() if value is not None}
    return config.replace(**changes) if changes else config


def _check_callback(name: str, of: str, callback: object) -> None:
    """Raise ConfigError for what cannot be called, or would only return a coroutine that nobody awaits."""
    if callback is None:
        return
    if not callable(callback):
        raise ConfigError(
            f"{name} is a function of {of}, not {shown(callback)}", code="BAD_CALLBACK", hint="pass a callable"
        )
    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):
        raise ConfigError(
            f"{name} is a coroutine function, and callbacks are called on a thread, where nobody awaits it",
            code="BAD_CALLBACK",
            hint="pass a plain function; it may hand work to a loop by asyncio.run_coroutine_threadsafe(work, loop)",
        )
