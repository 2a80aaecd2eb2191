"""Configuration: one table of options, read from files, environment and arguments.

What lives here.  `tables`: the options.  `option`, `units`, `rules`: what an option is, its values, rules between
options.  `file`, `loader`, `model`: from texts to settled values.  `foreign`: names of other SDKs.  `spark`: options in
Spark's spelling.  `suggestion`: the nearest known name.  `secret`: secrets, and where they are.  `render` writes
CONFIGURATION.md and `typed`, `migration` the tables of docs/migration.md.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from dataproxy.config.file import path_text, read_file
from dataproxy.config.loader import conceal, prefixed, read_environment, settle
from dataproxy.config.model import HubConfig, ProducerConfig
from dataproxy.config.option import Option, OptionTable
from dataproxy.config.spark import concealed, plain_name, spark_options
from dataproxy.config.tables.hub import HUB
from dataproxy.config.tables.producer import PRODUCER
from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "HUB",
    "PRODUCER",
    "HubConfig",
    "Option",
    "OptionTable",
    "ProducerConfig",
    "conceal",
    "concealed",
    "load_hub_config",
    "load_producer_config",
    "plain_name",
    "spark_options",
]


def load_producer_config(
    target: str | list[str] | tuple[str, ...] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    require_target: bool = True,
    **options: Any,
) -> ProducerConfig:
    """Return the configuration of a producer: defaults, then ``file``, then ``DATAPROXY_*``, then arguments.

    ``env`` is the environment (None: that of the process; ``{}``: none).  Options that are None count as not
    given.  Raises ConfigError that names the option, the value, the limit and the way out.
    """
    conceal(PRODUCER, options)
    env = prefixed(PRODUCER, os.environ if env is None else env)
    values, origins = settle(PRODUCER, _layers(PRODUCER, file, env, {"target": target, **options}))
    if require_target and not values["target"]:
        raise ConfigError(
            "there is no target",
            hint="give e.g. 'tcp://host1:46801,host2:46801' or 'http://manager:8083', or set DATAPROXY_TARGET",
        )
    return ProducerConfig(values, origins)


def load_hub_config(
    store: str | os.PathLike[str] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> HubConfig:
    """Return the configuration of a hub: defaults, then ``file``, then ``DATAPROXY_HUB_*``, then arguments.

    The parameters are as for ``load_producer_config``.  Raises ConfigError.
    """
    conceal(HUB, options)
    env = prefixed(HUB, os.environ if env is None else env)
    path = None if store is None else path_text("a store", store)
    values, origins = settle(HUB, _layers(HUB, file, env, {"store": path, **options}))
    return HubConfig(values, origins)


def _layers(
    table: OptionTable, file: str | os.PathLike[str] | None, env: Mapping[str, Any], options: Mapping[str, Any]
) -> list[tuple[str, Mapping[str, Any]]]:
    layers: list[tuple[str, Mapping[str, Any]]] = []
    if file is not None:
        found = read_file(table, file)
        conceal(table, found)
        layers.append((f"file {path_text('a file', file)}", found))
    foreign = () if table is HUB else (HUB.env_prefix,)
    layers.append(("environment", read_environment(table, env, foreign)))
    layers.append(("argument", options))
    return layers
