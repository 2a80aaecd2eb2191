"""Finding the proxies once, on the driver, so that a thousand tasks need not ask."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING

from dataproxy.client.discovery import parse_target, resolve
from dataproxy.client.manager import ManagerClient
from dataproxy.errors import ConfigError, TransportError
from dataproxy.types import Endpoint, ManagerTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataproxy.config import ProducerConfig

__all__ = ["check_connection", "find_proxies", "static_target"]


def find_proxies(config: ProducerConfig) -> tuple[Endpoint, ...]:
    """Return the proxies of a write: those the target names, or what the Manager answers for the group.

    Raises ConfigError for a bad target and for a Manager without the option ``groupId`` (a Manager answers for one
    group), DiscoveryError when the Manager gives no list.
    """
    target = parse_target(config.target)
    if not isinstance(target, ManagerTarget):
        return target.endpoints
    if not config.group_id:
        raise ConfigError(
            f"the Manager {target.url} is asked for the proxies of one group, and the groups are in a column",
            hint='set the option "groupId", or name the proxies as target="tcp://host:port,..."',
        )
    with closing(ManagerClient(target, config)) as manager:
        return manager.fetch(config.group_id).endpoints


def static_target(endpoints: Sequence[Endpoint]) -> str:
    """Return the target text that names these proxies."""
    return "tcp://" + ",".join(str(endpoint) for endpoint in endpoints)


def check_connection(endpoints: Sequence[Endpoint], timeout: float) -> None:
    """Connect to the first proxy that answers within `timeout` seconds, and hang up.

    Raises DiscoveryError when a name does not resolve and TransportError naming every proxy when none answers.
    """
    failures = []
    for address in resolve(endpoints):
        try:
            with socket.create_connection((address.address, address.port), timeout=timeout):
                return
        except OSError as error:
            failures.append(f"{address.label}: {error}")
    raise TransportError(
        f"no proxy can be reached from the driver: {'; '.join(failures)}",
        hint="check the target; where only executors reach the proxies, set the option connectCheck=false",
    )
