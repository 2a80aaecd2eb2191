"""The proxies of a producer: found at the start, then refreshed in the background."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Final, Protocol

from dataproxy.config import ProducerConfig
from dataproxy.errors import ConfigError, DataProxyError, DiscoveryError
from dataproxy.logs import logger
from dataproxy.process.threads import start_quiet
from dataproxy.producer.discovery.asking import Questions
from dataproxy.producer.discovery.clusters import Answer, ClusterMap, Picture
from dataproxy.producer.discovery.credentials import ManagerAuth
from dataproxy.producer.discovery.limited import side_by_side
from dataproxy.producer.discovery.pace import Schedule
from dataproxy.types import ResolvedEndpoint

__all__ = [
    "MOST_GROUPS",
    "Owner",
    "ProxySource",
    "node_number",
    "order_seed",
    "proxy_order",
]

#: Most groups of one producer that asks a Manager by group; each is asked about in every round.
MOST_GROUPS: Final = 4096

_LOG = logger("route")
_LOOK_SECONDS = 1.0  # between two looks whether a file has changed
_LONGEST = 86_400.0
_LOOK = "dataproxy doctor TARGET looks at each step"
_LAZY = 'with start="lazy" a producer starts without proxies and looks for them in the background'


class Owner(Protocol):
    """Whom a source tells of proxies: a producer."""

    def _use_clusters(self, picture: Picture) -> None: ...

    def _limit_frames(self, max_packet_length: int) -> None: ...

    def _not_found(self, text: str) -> None: ...

    def _active_clusters(self) -> set[int]: ...


def node_number(node: str) -> int:
    """Return 63 bits that tell ids of proxies apart, 0 for none."""
    return int.from_bytes(blake2b(node.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 1 if node else 0


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


def _load(manager: bool) -> None:
    """Import what the refreshing thread needs, in the caller's thread.

    A fork while another thread imports a module leaves that module's lock held in the child: it could never import it.
    """
    import encodings.idna  # noqa: F401 - for every look-up of a name

    if manager:
        import dataproxy.producer.discovery.answer
        import dataproxy.producer.discovery.calls  # noqa: F401


class _Pause:
    """What the discovery thread waits on: another thread wakes it, or ends the wait for good."""

    def __init__(self) -> None:
        self._called = threading.Event()
        self.stopped = False

    def wake(self) -> None:
        """End the present wait, or the next one."""
        self._called.set()

    def stop(self) -> None:
        """End this wait and all later ones."""
        self.stopped = True
        self._called.set()

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds``; tell whether this is the end."""
        if not self.stopped:
            self._called.wait(min(seconds, _LONGEST))
            self._called.clear()
        return self.stopped


class ProxySource:
    """Know the proxies of a producer, by group where the target is a Manager that is asked by group.

    If a question fails, the known list stays; if a name cannot be resolved, its known addresses stay.  ``owner`` is
    told of changes, and only weakly referred to.  ``inherited``: the source whose lists are in use now, of a forked
    process or of another target.  ``alone``: one list for all groups.  ``auth`` is the function of ``manager_auth``.

    Raises ConfigError.
    """

    def __init__(
        self,
        config: ProducerConfig,
        owner: Owner,
        *,
        inherited: ProxySource | None = None,
        alone: bool = False,
        auth: ManagerAuth | None = None,
    ) -> None:
        self._config = config
        self._owner = weakref.ref(owner)
        self._adopted = False
        self._questions = Questions(config, auth, alone=alone)
        self._schedule = Schedule(config.discovery_interval)
        self._pause = _Pause()
        self._thread: threading.Thread | None = None
        self._map = ClusterMap()
        self._lock = threading.Lock()
        self._wanted: list[str] = []  # guarded by lock: groups that are new
        self._lost = False  # a connection was lost since the last look; written by any thread
        self._urgent = False
        self._failing: dict[str, str] = {}  # group -> why nothing is known of it
        # The newest last.  A forked child starts with its parent's lists, and later refreshes them itself.
        self._answers: dict[str, Answer] = dict(inherited._answers) if inherited else {}
        self._groups: dict[str, int] = dict(inherited._groups) if inherited else {}  # guarded by lock: group -> number
        self._auth = auth
        self._check_groups()
        if not self.by_group and self._answers and "" not in self._answers:
            self._answers = {"": next(reversed(self._answers.values()))}
        self._picture = self._draw()
        self._told_length = 0

    def _check_groups(self) -> None:
        config = self._config
        groups = list(dict.fromkeys(group for group in (config.group_id, *config.group_ids) if group))
        if not groups and self._questions.needs_group:
            raise ConfigError(
                f"the Manager {config.target!r} is asked by group, and there is no group_id",
                hint="give group_id=, or set DATAPROXY_GROUP_ID",
            )
        if self.by_group:
            for group in groups:
                self._groups.setdefault(group, len(self._groups))

    @property
    def sender(self) -> str:
        """Return nothing: DataProxies want no name of who sends."""
        return ""

    @property
    def by_group(self) -> bool:
        """Tell whether each group goes to the cluster that the Manager names for it."""
        return self._questions.by_group

    @property
    def auth(self) -> ManagerAuth | None:
        """Return the function that gives the Manager's header."""
        return self._auth

    @property
    def groups(self) -> dict[str, int]:
        """Return the number of each group in the order of numbers; empty unless ``by_group``."""
        with self._lock:
            return dict(self._groups) if self.by_group else {}

    @property
    def picture(self) -> Picture:
        """Return the clusters of the last answers."""
        return self._picture

    @property
    def known(self) -> list[ResolvedEndpoint]:
        """Return the proxies of all clusters."""
        return [proxy for cluster in self._picture.clusters for proxy in cluster.proxies]

    @property
    def max_packet_length(self) -> int:
        """Return the smallest limit of a frame that an answer has, in bytes; 0: none has a limit."""
        return min((a.found.max_packet_length for a in self._answers.values() if a.found.max_packet_length), default=0)

    def begin(self) -> None:
        """Find the first proxies, for a producer's constructor, by the option ``start``; perhaps they come later.

        If some of several names have no address, or some of several Managers do not answer, the others are enough; of
        several groups each needs an answer.  Raises DiscoveryError, which names ``start="lazy"`` where a later try may
        find proxies.
        """
        if self._config.start == "lazy" and self._questions.may_wait:
            _load(self._questions.needs_manager)
            return
        try:
            self._ask_all(list(self.groups) or [""])
        except DiscoveryError as error:
            lazy = self._config.start == "lazy"
            more = [error.hint] if error.hint else []
            if self._questions.needs_manager:
                more.append(_LOOK)
            if error.retriable and not lazy:
                more.append(_LAZY)
            error.hint = "; ".join(more)
            if not lazy or not self._questions.watches:  # a file may come later
                raise
        self._picture = self._draw()

    def _ask_all(self, groups: list[str]) -> None:
        """Ask about some groups side by side.  Raises the first error."""
        if len(groups) == 1:
            self._answers[groups[0]] = self._questions.ask(groups[0])
            return
        found = side_by_side("dataproxy-ask-groups", _LONGEST, self._questions.ask, groups)
        for group in groups:
            answer = found[group]
            if isinstance(answer, BaseException):
                raise answer
            self._answers[group] = answer

    def want(self, group: str, add: Callable[[str, int], None]) -> None:
        """Make sure that a group has a number, and ask about a new one at once.  Any thread.

        ``add`` tells the engine of a new number before it is used.  Raises ConfigError if there are too many groups.
        """
        with self._lock:
            if group in self._groups:
                return
            number = len(self._groups)
            if number >= MOST_GROUPS:
                raise ConfigError(
                    f"group {group!r} is one more than {MOST_GROUPS}, the most that one producer asks a Manager about",
                    hint="make several producers, or ask for a cluster: /getIpListByClusterName/NAME",
                )
            add(group, number)
            self._groups[group] = number
            self._wanted.append(group)
        self._pause.wake()

    def lost(self) -> None:
        """Note that a connection was lost, or could not be made.  Any thread; does not wait."""
        if not self._lost:
            self._lost = True
            self._pause.wake()

    def start(self, first: float | None = None) -> None:
        """Begin to refresh every ``discovery_interval``, the first time in ``first`` s, unless nothing can change."""
        answers = self._answers.values()
        if answers and all(self._questions.is_final(answer) for answer in answers):
            return
        now = time.monotonic()
        self._schedule.begin(now, first if answers or first is not None else 0.0)
        if not self._is_whole():
            self._schedule.round_ended(now, soon=True)
        for group in self._missing():
            self._schedule.want(group, now)
        for group, answer in self._answers.items():
            if answer.age is not None:
                self._schedule.failed(group, now)
        self._told_length = self.max_packet_length
        self._thread = start_quiet("dataproxy-discovery", self._run)
        self._questions.follow()

    def adopt(self, owner: Owner) -> None:
        """Tell an owner that was garbage, and is being closed, of everything once more.  Any thread."""
        self._owner = weakref.ref(owner)
        self._adopted = True
        self._pause.wake()

    def stop(self) -> None:
        """Stop refreshing; does not wait for a request in progress."""
        self._pause.stop()
        self._questions.stop()

    def leave(self) -> BaseException | None:
        """Take no leave of anybody: a Manager does not know its producers."""
        return None

    def _missing(self) -> list[str]:
        """Return the groups of which nothing is known."""
        return [group for group in (self.groups or [""]) if group not in self._answers]

    def _is_whole(self) -> bool:
        return all(self._questions.is_whole(answer) for answer in self._answers.values())

    def _run(self) -> None:
        wait = self._next_wait()
        while not self._pause.wait(wait):
            try:
                self._turn()
            except Exception:  # noqa: BLE001 - the next turn may fare better, and nobody else would ask again
                _LOG.exception("the proxy list was not refreshed, the known one stays in use")
                self._schedule.put_off(time.monotonic())
            wait = self._next_wait()

    def _next_wait(self) -> float:
        wait = self._schedule.wait(time.monotonic())
        return min(wait, _LOOK_SECONDS) if self._questions.watches else wait

    def _turn(self) -> None:
        """Ask about what is due.  Discovery thread."""
        if self._adopted:
            self._adopted = False
            self._apply()
        now = time.monotonic()
        with self._lock:
            wanted, self._wanted = self._wanted, []
        for group in wanted:
            self._schedule.want(group, now)
        if self._questions.changed():
            self._schedule.at_once(now)
        self._note_loss(now)
        groups, whole = self._schedule.due(now, [*self._answers] or self._missing())
        if whole:
            self._schedule.round_begins(now)
        for group in groups:
            if self._pause.stopped:
                return
            self._ask(group)
        if whole:
            self._schedule.round_ended(time.monotonic(), soon=not self._is_whole())
        if groups:
            self._apply()
        if self._urgent:
            self._note_loss(time.monotonic())

    def _note_loss(self, now: float) -> None:
        """Plan a round at once if a cluster has no connection any more."""
        if not (self._lost or self._urgent):
            return
        self._lost = False
        owner = self._owner()
        active = set() if owner is None else owner._active_clusters()
        self._urgent = any(cluster.number not in active for cluster in self._picture.clusters)
        if self._urgent:
            self._schedule.hurry(now)
        else:
            self._schedule.calm()

    def _ask(self, group: str) -> None:
        """Ask about one group; what is new is used at once, so that its messages wait for no other question."""
        before = self._answers.get(group)
        try:
            answer = self._questions.ask(group, () if before is None else before.proxies)
        except DataProxyError as error:
            self._failed(group, str(error), before)
            return
        except Exception as error:  # noqa: BLE001 - whatever a Manager sends, the next answer may be good
            _LOG.exception("the proxy list was not refreshed, the known one stays in use")
            if before is None:
                self._failed(group, repr(error), None)
            return
        self._answers.pop(group, None)
        self._answers[group] = answer  # the newest last
        self._schedule.answered(group)
        if answer.age is not None:
            self._schedule.failed(group, time.monotonic())
        self._trouble(group, "")
        if before is None:
            self._apply()

    def _failed(self, group: str, why: str, before: Answer | None) -> None:
        """Note that a question failed.  It comes again soon if nothing is known, or only from ``cache_dir``."""
        if before is not None and before.age is None:
            _LOG.warning("the proxy list was not refreshed, the known one stays in use: %s", why)
            return
        self._schedule.failed(group, time.monotonic())
        if before is None:
            self._trouble(group, why)
        else:
            _LOG.debug("the list from cache_dir stays in use: %s", why)

    def _trouble(self, group: str, text: str) -> None:
        """Tell the producer why a group has no proxies; an empty text: it has some."""
        before = self._failing.pop(group, "")
        if text and group not in self._answers:
            self._failing[group] = text
            if text != before and self._answers:
                _LOG.warning("messages of group %r wait, because no proxy is known for it: %s", group, text)
        owner = self._owner()
        if owner is not None and (self._failing or not text):
            owner._not_found(next(iter(self._failing.values()), ""))

    def _draw(self) -> Picture:
        """Return the picture of all answers."""
        if self.by_group:
            return self._map.picture(self._answers, self.groups)
        return self._map.single(self._answers.get(""))

    def _apply(self) -> None:
        """Tell the producer what changed.  If it could not take a list, the next turn gives it again."""
        picture, length, owner = self._draw(), self.max_packet_length, self._owner()
        if owner is None or self._pause.stopped:
            return
        if length != self._told_length:
            _LOG.info("the Manager's limit of a frame changed from %d to %d bytes", self._told_length, length)
            owner._limit_frames(length)
            self._told_length = length
        if not picture.same(self._picture):
            if picture.same_proxies(self._picture):
                _LOG.debug("groups go to clusters that were known: %s", picture.groups)
            else:
                _LOG.info("the proxy list changed: %s", ", ".join(_labels(picture)))
            owner._use_clusters(picture)
            self._picture = picture


def _labels(picture: Picture) -> Iterator[str]:
    for cluster in picture.clusters:
        yield from (proxy.label for proxy in cluster.proxies)
