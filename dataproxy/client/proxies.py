"""Where a producer's proxies are: asked once at the start, then refreshed in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakMethod

from dataproxy.client.discovery import parse_target, resolve
from dataproxy.client.manager import ManagerClient
from dataproxy.client.threads import start_quiet
from dataproxy.config import ProducerConfig
from dataproxy.errors import ConfigError, DataProxyError
from dataproxy.logs import logger
from dataproxy.types import ManagerTarget, ResolvedEndpoint

__all__ = ["ProxySource", "links_per_executor"]

_LOG = logger("route")
_AUTO_CONNECTIONS = 8


def links_per_executor(connections: int, executors: int, proxies: int) -> list[int]:
    """Return how many connections each executor keeps; 0 ``connections`` means one for each proxy, up to 8."""
    total = max(executors, connections or min(proxies, _AUTO_CONNECTIONS))
    return [total // executors + (1 if i < total % executors else 0) for i in range(executors)]


class ProxySource:
    """Know the proxies of one group; a refresh that fails keeps the list that is known."""

    def __init__(
        self,
        config: ProducerConfig,
        apply: Callable[[list[ResolvedEndpoint]], None],
        *,
        inherited: ProxySource | None = None,
    ) -> None:
        self._config = config
        self._apply = WeakMethod(apply)  # who is told has this object
        self._target = parse_target(config.target)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        # A forked child starts with what its parent knew last, and asks again in its own turn.
        self._known: list[ResolvedEndpoint] = list(inherited.known) if inherited else []
        self.max_packet_length: int = inherited.max_packet_length if inherited else 0
        if isinstance(self._target, ManagerTarget) and not config.group_id:
            raise ConfigError(
                f"the Manager {self._target.url!r} is asked by group, and there is no group_id",
                hint="give group_id=, or set DATAPROXY_GROUP_ID",
            )

    @property
    def known(self) -> list[ResolvedEndpoint]:
        """Return the proxies of the last list that could be fetched."""
        return self._known

    def fetch(self, *, strict: bool = True) -> list[ResolvedEndpoint]:
        """Ask for the proxies now.  Raises DiscoveryError; blocks up to ``manager_timeout``."""
        target = self._target
        if isinstance(target, ManagerTarget):
            client = ManagerClient(target, self._config)
            try:
                answer = client.fetch(self._config.group_id)
            finally:
                client.close()
            self.max_packet_length = answer.max_packet_length
            self._known = resolve(answer.endpoints, strict=False)
        else:
            self._known = resolve(target.endpoints, strict=strict)
        return self._known

    def start(self) -> None:
        """Begin to refresh every ``discovery_interval``, unless nothing can change."""
        fixed = not isinstance(self._target, ManagerTarget) and all(e.host == e.address for e in self._known)
        if not fixed:
            self._thread = start_quiet("dataproxy-discovery", self._run)

    def stop(self) -> None:
        """End the refreshing; does not wait for a request that is under way."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self._config.discovery_interval):
            before = list(self._known)
            try:
                now = self.fetch(strict=False)
            except DataProxyError as error:
                _LOG.warning("the proxy list was not refreshed, the known one stays in use: %s", error)
                self._known = before
                continue
            if not self._stop.is_set() and {e.label for e in now} != {e.label for e in before}:
                _LOG.info("the proxy list changed: %s", ", ".join(e.label for e in now))
                apply = self._apply()
                if apply is not None:
                    apply(now)
