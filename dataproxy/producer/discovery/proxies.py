"""The addresses of a producer's proxies: found at the start, then refreshed in the background."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from weakref import WeakMethod

from dataproxy.config import ProducerConfig
from dataproxy.errors import ConfigError, DataProxyError, DiscoveryError
from dataproxy.logs import logger
from dataproxy.producer.discovery.managers import ask_managers
from dataproxy.producer.discovery.targets import is_numeric, parse_target, resolve
from dataproxy.producer.threads import start_quiet
from dataproxy.types import ManagerTarget, ResolvedEndpoint, StaticTarget

__all__ = ["ProxySource", "connections_per_executor", "order_seed", "proxy_order"]

_LOG = logger("route")
_AUTO_CONNECTIONS = 8
_SOON_SECONDS = 0.25  # until the next request while no proxy is known; doubled each time
_MISSING_SECONDS = 10.0
_LAZY = 'with start="lazy" a producer starts without proxies and looks for them in the background'


def connections_per_executor(connections: int, executors: int, proxies: int) -> list[int]:
    """Return how many connections each executor keeps; 0 ``connections`` means one for each proxy, up to 8."""
    total = max(executors, connections or min(proxies, _AUTO_CONNECTIONS))
    return [total // executors + (1 if i < total % executors else 0) for i in range(executors)]


def order_seed() -> int:
    """Return 64 random bits for ``proxy_order``."""
    return int.from_bytes(os.urandom(8), "big")


def proxy_order(proxies: Sequence[ResolvedEndpoint], seed: int) -> list[ResolvedEndpoint]:
    """Return the proxies in the order in which a producer with this ``seed`` uses them.

    Each seed gives another order, so that many producers with the same list do not all begin with the same proxy.  A
    proxy that leaves or joins the list does not change the order of the others.
    """

    def place(proxy: ResolvedEndpoint) -> bytes:
        return blake2b(proxy.label.encode("utf-8", "replace"), digest_size=8, key=seed.to_bytes(8, "big")).digest()

    return sorted(proxies, key=place)


class ProxySource:
    """Know the proxies of one group.

    If a refresh fails, the known list stays; if a name cannot be resolved, its known addresses stay.
    """

    def __init__(
        self,
        config: ProducerConfig,
        apply: Callable[[list[ResolvedEndpoint]], None],
        limit: Callable[[int], None] | None = None,
        *,
        inherited: ProxySource | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._tell_trouble: WeakMethod[Callable[[str], None]] | None = None if tell is None else WeakMethod(tell)
        self._missing = ""
        self._config = config
        self._apply = WeakMethod(apply)  # weak: the producer refers to this object
        self._limit: WeakMethod[Callable[[int], None]] | None = None if limit is None else WeakMethod(limit)
        self._target = parse_target(config.target)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        # A forked child starts with its parent's last list, and later refreshes it itself.
        self._known: list[ResolvedEndpoint] = list(inherited.known) if inherited else []
        self.max_packet_length: int = inherited.max_packet_length if inherited else 0
        if isinstance(self._target, ManagerTarget) and not config.group_id:
            raise ConfigError(
                f"the Manager {str(self._target)!r} is asked by group, and there is no group_id",
                hint="give group_id=, or set DATAPROXY_GROUP_ID",
            )

    @property
    def known(self) -> list[ResolvedEndpoint]:
        """Return the proxies of the last successful request."""
        return self._known

    def begin(self) -> list[ResolvedEndpoint]:
        """Return the first proxies, for a producer's constructor, by the option ``start``; empty: they come later.

        If some of several names have no address, or some of several Managers do not answer, the others are enough.
        Raises DiscoveryError, which names ``start="lazy"`` where a later try may find proxies.
        """
        target = self._target
        if self._config.start == "lazy" and (
            isinstance(target, ManagerTarget) or not all(is_numeric(one.host) for one in target.endpoints)
        ):
            return []
        try:
            return self.fetch(strict=False)
        except DiscoveryError as error:
            if error.retriable and self._config.start != "lazy":
                error.hint = f"{error.hint}; {_LAZY}" if error.hint else _LAZY
            raise

    def fetch(self, *, strict: bool = True) -> list[ResolvedEndpoint]:
        """Ask now; takes up to ``manager_timeout`` for each Manager and 15 s for names.  Raises DiscoveryError."""
        target = self._target
        if isinstance(target, ManagerTarget):
            answer, self._target = ask_managers(target, self._config)  # the one that answered is asked first next time
            self.max_packet_length = answer.max_packet_length
            self._known = resolve(answer.endpoints, strict=False, known=self._known)
        else:
            self._known = resolve(target.endpoints, strict=strict, known=self._known)
            self._note_missing(target)
        return self._known

    def _note_missing(self, target: StaticTarget) -> None:
        """Log once which of several hosts have no address."""
        found = {(one.host, one.port) for one in self._known}
        missing = ", ".join(str(one) for one in target.endpoints if one not in found)
        if missing and missing != self._missing:
            _LOG.warning(
                "no address found for %s; the other proxies are used, and the name is looked up again", missing
            )
        self._missing = missing

    def start(self, first: float | None = None) -> None:
        """Begin to refresh every ``discovery_interval``, the first time in ``first`` s, unless nothing can change."""
        static = not isinstance(self._target, ManagerTarget)
        fixed = static and bool(self._known) and not self._missing and all(e.host == e.address for e in self._known)
        if not self._known and first is None:
            first = 0.0
        if not fixed:
            self._thread = start_quiet("dataproxy-discovery", partial(self._run, first))

    def stop(self) -> None:
        """Stop refreshing; does not wait for a request in progress."""
        self._stop.set()

    def _run(self, first: float | None = None) -> None:
        soon = _SOON_SECONDS
        wait = self._wait(soon) if first is None else first
        while not self._stop.wait(wait):
            try:
                self._refresh()
                self._trouble("")
            except DataProxyError as error:
                self._failed(error)
            except Exception as error:  # noqa: BLE001 - the next turn may fare better, and nobody else would ask again
                _LOG.exception("the proxy list was not refreshed, the known one stays in use")
                self._trouble(repr(error))
            soon = min(2 * soon, _MISSING_SECONDS)
            wait = self._wait(soon)

    def _wait(self, soon: float) -> float:
        """Return the seconds until the next refresh: few while no proxy is known, or a name has no address."""
        usual = self._config.discovery_interval
        if not self._known:
            return min(soon, usual)
        return min(_MISSING_SECONDS, usual) if self._missing else usual

    def _failed(self, error: DataProxyError) -> None:
        if self._known:
            _LOG.warning("the proxy list was not refreshed, the known one stays in use: %s", error)
            return
        self._trouble(str(error))

    def _trouble(self, text: str) -> None:
        """Tell the producer why it has no proxies; an empty text: it has some."""
        tell = None if self._tell_trouble is None else self._tell_trouble()
        if tell is not None and (not self._known or not text):
            tell(text)

    def _refresh(self) -> None:
        """Ask again, and tell the producer what changed.  Raises what ``fetch`` raises.  One thread at a time.

        If the producer could not take the list, it does not count as known, and the next refresh gives it again.
        """
        before, length = list(self._known), self.max_packet_length
        try:
            now = self.fetch(strict=False)
            if not self._stop.is_set():
                self._tell(now, before, length)
        except BaseException:
            self._known, self.max_packet_length = before, length
            raise

    def _tell(self, now: list[ResolvedEndpoint], before: list[ResolvedEndpoint], length: int) -> None:
        limit, apply = None if self._limit is None else self._limit(), self._apply()
        if self.max_packet_length != length and limit is not None:
            _LOG.info("the Manager's limit of a frame changed from %d to %d bytes", length, self.max_packet_length)
            limit(self.max_packet_length)
        if {(e.label, e.other) for e in now} != {(e.label, e.other) for e in before} and apply is not None:
            _LOG.info("the proxy list changed: %s", ", ".join(e.label for e in now))
            apply(now)
