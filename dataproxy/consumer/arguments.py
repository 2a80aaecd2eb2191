"""Checks of a consumer's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dataproxy.config import ConsumerConfig, load_consumer_config
from dataproxy.errors import ConfigError
from dataproxy.problems import callback_problem
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
    for name, callback in (("on_assigned", on_assigned), ("on_revoked", on_revoked)):
        if callback is not None and not callable(callback):
            raise callback_problem(callback, name)
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
