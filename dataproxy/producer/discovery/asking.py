"""One question about the proxies, whatever the target is, and the addresses in its answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dataproxy.errors import DiscoveryError
from dataproxy.logs import logger
from dataproxy.process.threads import start_quiet
from dataproxy.producer.discovery.cache import ListCache
from dataproxy.producer.discovery.clusters import Answer
from dataproxy.producer.discovery.credentials import Credentials
from dataproxy.producer.discovery.listfile import read_list
from dataproxy.producer.discovery.managers import about_the_group, ask_managers
from dataproxy.producer.discovery.smallfile import FileState, file_state
from dataproxy.producer.discovery.targets import is_numeric, parse_target, resolve
from dataproxy.trust.files import manager_trust
from dataproxy.types import DnsTarget, Endpoint, FileTarget, ManagerTarget, ProxyList, ResolvedEndpoint

if TYPE_CHECKING:
    from dataproxy.config.model import ProducerConfig
    from dataproxy.producer.discovery.credentials import ManagerAuth
    from dataproxy.trust.watched import Trust

__all__ = ["Questions"]

_LOG: Final = logger("route")


class Questions:
    """Ask what the target of ``config`` names; ``auth`` is the function of ``manager_auth``.

    Raises ConfigError for a target, or for credentials of a Manager, that cannot be used.

    ``alone``: one list for all groups, also from a Manager that is asked by group.
    """

    def __init__(self, config: ProducerConfig, auth: ManagerAuth | None = None, *, alone: bool = False) -> None:
        self._config = config
        self._target = parse_target(config.target)
        self._credentials = Credentials(config, auth) if isinstance(self._target, ManagerTarget) else None
        self._trust: Trust | None = None
        if isinstance(self._target, ManagerTarget) and self._target.url.startswith("https://"):
            self._trust = manager_trust(config)
        self._alone = alone
        self._state: FileState | None = None
        self._told: dict[str, str] = {}
        self._cache: ListCache | None = None
        if config.cache_dir:
            self._cache = ListCache(
                os.path.expanduser(config.cache_dir),  # noqa: PTH111 - pathlib costs every program that starts 4 ms
                config.cache_max_age,
                tenant=config.manager_tenant,
                protocol=config.protocol.upper(),
            )

    def follow(self) -> None:
        """Begin to look for certificates that are replaced."""
        if self._trust is not None:
            self._trust.follow(start_quiet)

    def stop(self) -> None:
        """End what ``follow`` began; does not wait."""
        if self._trust is not None:
            self._trust.stop()

    @property
    def needs_manager(self) -> bool:
        """Tell whether a question goes to a Manager."""
        return isinstance(self._target, ManagerTarget)

    @property
    def needs_group(self) -> bool:
        """Tell whether a question names a group."""
        return isinstance(self._target, ManagerTarget) and not self._target.cluster

    @property
    def by_group(self) -> bool:
        """Tell whether each group has an answer of its own."""
        return self.needs_group and not self._alone

    @property
    def may_wait(self) -> bool:
        """Tell whether an answer takes the network, so that a lazy producer does not wait for it."""
        target = self._target
        if isinstance(target, (ManagerTarget, DnsTarget)):
            return True
        return not isinstance(target, FileTarget) and not all(is_numeric(one.host) for one in target.endpoints)

    @property
    def watches(self) -> bool:
        """Tell whether ``changed`` may ever be true."""
        return isinstance(self._target, FileTarget)

    def changed(self) -> bool:
        """Tell whether the target's file has changed since it was read.  Does not wait."""
        return isinstance(self._target, FileTarget) and file_state(self._target.path) != self._state

    def is_final(self, answer: Answer) -> bool:
        """Tell whether a later answer would be the same: the target has addresses and no names."""
        if isinstance(self._target, (ManagerTarget, FileTarget, DnsTarget)):
            return False
        return all(is_numeric(one.host) for one in self._target.endpoints)

    def is_whole(self, answer: Answer) -> bool:
        """Tell whether each name of the target has an address."""
        if isinstance(self._target, (ManagerTarget, FileTarget, DnsTarget)):
            return True
        return {(one.host, one.port) for one in answer.proxies} >= set(self._target.endpoints)

    def ask(self, group: str, known: Sequence[ResolvedEndpoint] = ()) -> Answer:
        """Ask now; takes up to ``manager_timeout`` for each Manager and 15 s for names.

        ``known`` are the proxies of the last answer: a name that cannot be resolved now keeps its addresses.  Without
        them, a list in ``cache_dir`` serves if no Manager answers.  Raises DiscoveryError.  Different threads may ask
        about different groups.
        """
        target = self._target
        if isinstance(target, ManagerTarget):
            return self._ask_manager(target, group, known)
        if isinstance(target, FileTarget):
            self._state = file_state(target.path)  # first: a change after this is read the next time
            found = read_list(target.path, self._config.protocol.upper())
            self._tell_ignored(f"the file {target.path!r}", found)
            return _resolved(found, known)
        if isinstance(target, DnsTarget):
            found = ProxyList(None, (target.endpoint,))
            return Answer(found, tuple(resolve(found.endpoints, strict=False, known=known, every=True)))
        answer = _resolved(ProxyList(None, target.endpoints), known)
        self._tell_missing(answer)
        return answer

    def _ask_manager(self, target: ManagerTarget, group: str, known: Sequence[ResolvedEndpoint]) -> Answer:
        try:
            found, self._target = ask_managers(
                target, self._config, self._trust, group_id=group, credentials=self._credentials
            )
        except DiscoveryError as error:
            kept = None if known else self._kept(target, group, error)
            if kept is None:
                raise
            return kept
        self._tell_ignored(f"the Manager at {self._target.url}", found)
        if self._cache is not None:
            self._cache.write(target, group or self._config.group_id, found)
        return _resolved(found, known)

    def _kept(self, target: ManagerTarget, group: str, error: DiscoveryError) -> Answer | None:
        """Return the list in ``cache_dir`` if no Manager answered, and tell of its use."""
        if self._cache is None or not error.retriable or about_the_group(error):
            return None
        kept = self._cache.read(target, group or self._config.group_id)
        if kept is None:
            return None
        found, age = kept
        answer = _resolved(found, ())._replace(age=age)
        name = f"cluster {target.cluster!r}" if target.cluster else f"group {group or self._config.group_id!r}"
        _LOG.warning("%s; the list of %s in cache_dir is used, which is %.0f s old", error.message, name, age)
        return answer

    def _tell_ignored(self, origin: str, found: ProxyList) -> None:
        """Warn of entries that cannot be used, once until there are others."""
        text = "; ".join(found.ignored[:3]) + ("; ..." if found.ignored[3:] else "")
        if text and text != self._told.get(origin):
            _LOG.warning("%s lists proxies that cannot be used, the others are: %s", origin, text)
        self._told[origin] = text

    def _tell_missing(self, answer: Answer) -> None:
        """Warn once of hosts without an address."""
        found = {(one.host, one.port) for one in answer.proxies}
        missing = ", ".join(str(one) for one in answer.found.endpoints if one not in found)
        if missing and missing != self._told.get(""):
            _LOG.warning(
                "no address found for %s; the other proxies are used, and the name is looked up again", missing
            )
        self._told[""] = missing


def _resolved(found: ProxyList, known: Sequence[ResolvedEndpoint]) -> Answer:
    ids = dict(zip(found.endpoints, found.ids, strict=False))
    proxies = resolve(found.endpoints, strict=False, known=known)
    return Answer(found, tuple(one._replace(node=ids.get(Endpoint(one.host, one.port), "")) for one in proxies))
