"""Checks of a producer's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dataproxy.config import ProducerConfig, load_producer_config
from dataproxy.errors import ConfigError
from dataproxy.problems import callback_problem
from dataproxy.process.threads import check_native_threads
from dataproxy.producer import lifecycle
from dataproxy.producer.endsignals import install
from dataproxy.producer.ingest.names import check_name
from dataproxy.producer.results.callbacks import check_place

__all__ = ["checked_config"]


def checked_config(
    target: str | list[str] | tuple[str, ...] | None,
    group_id: str | None,
    on_delivery: object,
    callback_on: object,
    config: ProducerConfig | None,
    config_file: str | Path | None,
    options: Mapping[str, Any],
) -> ProducerConfig:
    """Check a producer's arguments and return the configuration that they describe.

    Raises ConfigError (also where ``threading`` has no native threads) and InvalidMessageError.
    """
    if on_delivery is not None and not callable(on_delivery):
        raise callback_problem(on_delivery, "on_delivery")
    check_place(callback_on)
    check_native_threads()
    if config is not None and not isinstance(config, ProducerConfig):
        raise ConfigError(
            f"config is a {type(config).__name__!r}, not a ProducerConfig",
            hint="make one by dataproxy.config.load_producer_config, or give the options themselves",
        )
    if config is None:
        settled = load_producer_config(target, file=config_file, group_id=group_id, **options)
    elif config_file is not None:
        raise ConfigError("config and config_file were both given", hint="give one of them")
    else:
        given = {"target": target, "group_id": group_id, **options}
        changes = {key: value for key, value in given.items() if value is not None}
        settled = config.replace(**changes) if changes else config
    install(settled.close_on, lifecycle.close_open)
    for group in filter(None, (settled.group_id, *settled.group_ids)):
        check_name("group", group, message_type=settled.message_type)
    return settled
