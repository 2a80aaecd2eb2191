"""Configuration: one table of options, read from files, environment and arguments.

What lives here.  `tables`: the options.  `option`, `units`, `rules`: what an option is, its values, rules between
options.  `file`, `loader`, `model`: from texts to settled values.  `foreign`: names of other SDKs.  `spark`: options in
Spark's spelling.  `suggestion`: the nearest known name.  `secret`: secrets, and where they are.  `render` writes
CONFIGURATION.md and `typed`, `migration` the tables of docs/migration.md.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from dataproxy.config.file import path_text, read_file
from dataproxy.config.loader import conceal, prefixed, read_environment, settle
from dataproxy.config.model import ConsumerConfig, HubConfig, ProducerConfig
from dataproxy.config.option import Option, OptionTable
from dataproxy.config.rules import is_rocketmq
from dataproxy.config.spark import concealed, plain_name, spark_options
from dataproxy.config.tables.consumer import CONSUMER
from dataproxy.config.tables.hub import HUB
from dataproxy.config.tables.producer import PRODUCER
from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = [
    "CONSUMER",
    "HUB",
    "PRODUCER",
    "ConsumerConfig",
    "HubConfig",
    "Option",
    "OptionTable",
    "ProducerConfig",
    "conceal",
    "concealed",
    "is_rocketmq",
    "load_consumer_config",
    "load_hub_config",
    "load_producer_config",
    "plain_name",
    "spark_options",
]

#: What a consumer cannot do without: the option, what the error says, an example.
_NEEDED: Final = (
    ("target", "is no target", "'tubemq://master1:8715,master2:8715'"),
    ("group", "is no group", "'my_group'"),
    ("topics", "are no topics", "['orders']"),
)


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


def load_consumer_config(
    target: str | list[str] | tuple[str, ...] | None = None,
    group: str | None = None,
    topics: str | list[str] | tuple[str, ...] | Mapping[str, Collection[str] | None] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    complete: bool = True,
    **options: Any,
) -> ConsumerConfig:
    """Return the configuration of a consumer: defaults, then ``file``, then ``DATAPROXY_CONSUMER_*``, then arguments.

    With ``complete`` it has to have a target, a group and topics.  ``topics`` are names, as a list or as text, or a
    mapping from each name to its filter items.  The other parameters are as for ``load_producer_config``.  Raises
    ConfigError.
    """
    conceal(CONSUMER, options)
    env = prefixed(CONSUMER, os.environ if env is None else env)
    given = {"target": target, "group": group, "topics": topics, **options}
    values, origins = settle(CONSUMER, _layers(CONSUMER, file, env, given))
    for name, what, example in _NEEDED if complete else ():
        if not values[name]:
            raise ConfigError(
                f"there {what}", hint=f"give e.g. {name}={example}, or set {CONSUMER.env_prefix}{name.upper()}"
            )
    return ConsumerConfig(values, origins)


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
    layers.append(("environment", read_environment(table, env)))
    layers.append(("argument", options))
    return layers
