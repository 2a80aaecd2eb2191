"""Finding the proxies on the driver, so that not every task has to ask for them at its start."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

from dataproxy.errors import ConfigError, TransportError
from dataproxy.logs import logger
from dataproxy.producer.discovery.limited import side_by_side
from dataproxy.producer.discovery.listfile import read_list
from dataproxy.producer.discovery.managers import ask_managers
from dataproxy.producer.discovery.targets import parse_target
from dataproxy.spark.planning.following import KnownProxies
from dataproxy.trust.files import uses_tls
from dataproxy.types import DnsTarget, Endpoint, FileTarget, ManagerTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataproxy.config import ProducerConfig

__all__ = ["check_connection", "find_proxies", "known_proxies", "static_target", "unreachable"]

_log = logger("spark.target")


def find_proxies(config: ProducerConfig) -> tuple[Endpoint, ...]:
    """Return the proxies of a write: those that the target or its file names, or the Manager's list.

    Raises ConfigError for a bad target and for a Manager without the option ``groupId`` (a Manager answers for one
    group), DiscoveryError when the Manager gives no list, or the file has none.
    """
    target = parse_target(config.target)
    if isinstance(target, DnsTarget):
        return (target.endpoint,)  # each task looks the name up
    if isinstance(target, FileTarget):
        return read_list(target.path, config.protocol.upper()).endpoints
    if not isinstance(target, ManagerTarget):
        return target.endpoints
    if not config.group_id and not target.cluster:
        raise ConfigError(
            f"the Manager {target} lists the proxies of one group, but the groups are in a column",
            hint='set the option "groupId", or name the proxies as target="tcp://host:port,..."',
        )
    answer, _ = ask_managers(target, config)
    return answer.endpoints


def static_target(endpoints: Sequence[Endpoint], *, tls: bool = False) -> str:
    """Return the target text that names these proxies."""
    return ("tls://" if tls else "tcp://") + ",".join(str(endpoint) for endpoint in endpoints)


def known_proxies(config: ProducerConfig, endpoints: Sequence[Endpoint]) -> KnownProxies:
    """Return the proxies, found at this moment, in the form for tasks."""
    target = parse_target(config.target)
    manager = str(target) if isinstance(target, ManagerTarget) else ""
    secret = bool(manager and (config.manager_secret_id or config.manager_secret_file or config.manager_header_file))
    return KnownProxies(static_target(endpoints, tls=uses_tls(config)), manager, secret, time.time())


def unreachable(endpoints: Sequence[Endpoint], each: float, total: float) -> dict[Endpoint, str]:
    """Return proxy -> reason, for each proxy that accepts no connection within `each` seconds.

    All proxies are tried at the same time, including the look-up of names.  Blocks for at most `total` seconds.
    """

    def connect(endpoint: Endpoint) -> bool:
        with socket.create_connection((endpoint.host, endpoint.port), timeout=each):
            return True

    answers = side_by_side("dataproxy-connect-check", total, connect, list(dict.fromkeys(endpoints)))
    late = TimeoutError(f"no answer within {min(each, total):g} s")
    found = {endpoint: answers.get(endpoint, late) for endpoint in endpoints}
    return {endpoint: _reason(answer) for endpoint, answer in found.items() if isinstance(answer, BaseException)}


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error)


def check_connection(endpoints: Sequence[Endpoint], timeout: float, *, must: bool) -> None:
    """Connect to each proxy within `timeout` seconds and disconnect; log those that do not answer.

    Raises TransportError, which names every proxy with the reason, if none answers and `must` is true.
    """
    failures = unreachable(endpoints, timeout, timeout * len(endpoints))
    named = "; ".join(f"{endpoint}: {why}" for endpoint, why in failures.items())
    if must and failures and all(endpoint in failures for endpoint in endpoints):
        raise TransportError(
            f"no proxy can be reached from the driver: {named}",
            hint="check the target; where only executors reach the proxies, set the option connectCheck=off",
        )
    if failures:
        _log.warning(
            "%d of %d proxies cannot be reached from the driver: %s (connectCheck=off where only executors reach them)",
            len(failures),
            len(set(endpoints)),
            named,
        )
