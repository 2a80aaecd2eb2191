"""The topics of one producer of TubeMQ: asked about at the start, when one is new, and in each heartbeat."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dataproxy.errors import ConfigError, DataProxyError, DiscoveryError
from dataproxy.logs import logger
from dataproxy.masters.target import parse_target
from dataproxy.process.threads import join, start_quiet
from dataproxy.producer.discovery.clusters import Picture
from dataproxy.producer.tubemq.addresses import BrokerAddresses
from dataproxy.producer.tubemq.layout import Layout
from dataproxy.producer.tubemq.session import MasterSession, client_name

if TYPE_CHECKING:
    import ssl

    from dataproxy.config import ProducerConfig
    from dataproxy.producer.discovery.credentials import ManagerAuth
    from dataproxy.producer.discovery.proxies import Owner
    from dataproxy.producer.tubemq.layout import Places
    from dataproxy.types import ResolvedEndpoint
    from dataproxy.wire.tubemq.texts import Broker

__all__ = ["FRAME_SPARE", "MOST_TOPICS", "MasterSource"]

#: Most topics of one producer: what a master takes.
MOST_TOPICS: Final = 1024
#: Bytes of a frame beside a message of the largest size; brokers take 10 KiB more than the largest message has.
FRAME_SPARE: Final = 8 << 10

_LOG: Final = logger("route")
_PROOF_SECONDS: Final = 10.0  # between two signatures of a user
_FIRST_PAUSE: Final = 0.5  # after a question that failed; doubled with each further one
_SOONEST: Final = 1.0  # between two questions that losses and refusals ask for
_MISSING_SECONDS: Final = 2.0  # between two questions while messages may wait for a topic or a broker's address
_LEAVE_SECONDS: Final = 1.0
_SHOWN: Final = 5  # names in a text
_LAZY: Final = 'with start="lazy" a producer starts without masters and looks for them in the background'


class MasterSource:
    """Know where the topics of a producer are; the interface is that of ``ProxySource``.

    ``owner`` is told of changes, and only weakly referred to.  ``inherited``: the source of a parent process, whose
    picture is used until the masters have answered.  ``context`` gives the settings of TLS, None for plain connections.

    Raises ConfigError.
    """

    auth: ManagerAuth | None = None

    def __init__(
        self,
        config: ProducerConfig,
        owner: Owner,
        *,
        inherited: MasterSource | None = None,
        context: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        target = parse_target(config.target, config.tls)
        self._config = config
        self._owner = weakref.ref(owner)
        self.sender = client_name(target)
        self._session = MasterSession(config, target, self.sender, context if target.tls else None)
        self._layout = Layout(config.key_buckets if config.ordering == "key" else 0)
        self._lock = threading.Lock()
        self._topics: list[str] = list(inherited._topics) if inherited else []  # guarded by lock
        # Brokers get a new signature with each heartbeat, and take those of the last 20 s.
        self._interval = min(config.discovery_interval, _PROOF_SECONDS if config.user else config.discovery_interval)
        self._asked = threading.Event()
        self._new = False  # a topic or the owner is new; set after what is new, and before the event
        self._doubted = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures = 0
        self._missing: frozenset[str] = frozenset()
        self._nameless: frozenset[str] = frozenset()
        self._said = ""
        self._addresses = BrokerAddresses()
        self._picture = Picture((), ())
        self._length = FRAME_SPARE + self._session.largest
        if inherited:
            self._layout = inherited._layout
            self._picture, self._length = inherited._picture, inherited._length

    @property
    def by_group(self) -> bool:
        """Tell that each topic goes to the brokers that have it."""
        return True

    @property
    def groups(self) -> dict[str, int]:
        """Return the number of each topic in the order of numbers."""
        with self._lock:
            return {topic: i * self._layout.step for i, topic in enumerate(self._topics)}

    @property
    def picture(self) -> Picture:
        """Return the clusters of the last answer."""
        return self._picture

    @property
    def known(self) -> list[ResolvedEndpoint]:
        """Return the brokers of all clusters."""
        return [proxy for cluster in self._picture.clusters for proxy in cluster.proxies]

    @property
    def max_packet_length(self) -> int:
        """Return the bytes of the largest frame that the topics in use take."""
        return self._length

    def begin(self) -> None:
        """Register at a master, for a producer's constructor; with ``start="lazy"`` that comes later.

        Raises DiscoveryError.
        """
        import encodings.idna  # noqa: F401 - in the caller's thread: a fork while it is imported would break the child

        if self._config.start == "lazy":
            return
        try:
            self._session.refresh(())
        except DiscoveryError as error:
            self._session.leave()
            error.hint = "; ".join(filter(None, (error.hint, _LAZY)))
            raise
        self._length = FRAME_SPARE + self._session.largest

    def want(self, topic: str, add: Callable[[str, int], None]) -> None:
        """Make sure that a topic has a number, and ask about a new one at once.  Any thread.

        ``add`` tells the engine of a new number before it is used.  Raises ConfigError if there are too many topics.
        """
        with self._lock:
            if topic in self._topics:
                return
            if len(self._topics) >= MOST_TOPICS:
                raise ConfigError(
                    f"topic {topic!r} is one more than {MOST_TOPICS}, the most of one producer",
                    hint="make several producers",
                )
            add(topic, len(self._topics) * self._layout.step)
            self._topics.append(topic)
            self._new = True
        self._asked.set()

    def lost(self) -> None:
        """Note that a connection was lost or a message refused: what is known of brokers may be old.  Any thread."""
        self._doubted = True
        self._asked.set()

    def start(self, first: float | None = None) -> None:
        """Begin to send heartbeats, the first one at once if there are topics."""
        self._new = bool(self._topics) or not self._session.registered
        if self._new:
            self._asked.set()
        self._thread = start_quiet("dataproxy-discovery", self._run)

    def adopt(self, owner: Owner) -> None:
        """Tell an owner that was garbage, and is being closed, of everything once more.  Any thread."""
        self._owner = weakref.ref(owner)
        self._new = True
        self._asked.set()

    def stop(self) -> None:
        """Stop asking; does not wait for a call in progress."""
        self._stop.set()
        self._asked.set()

    def leave(self) -> BaseException | None:
        """Wait a moment until the master knows that this producer has ended.

        Returns what a signal handler raised meanwhile.
        """
        if self._thread is None:
            self._session.leave()
        elif self._thread is not threading.current_thread():
            return join(self._thread, _LEAVE_SECONDS)
        return None

    def _run(self) -> None:
        last = time.monotonic()
        due = last + self._interval
        while not self._stop.is_set():
            self._asked.wait(max(0.0, due - time.monotonic()))
            self._asked.clear()
            if self._stop.is_set():
                break
            now = time.monotonic()
            if self._doubted and not self._new and now < due:
                due = min(due, last + _SOONEST)
            if now < due and not self._new:
                continue
            self._new = self._doubted = False
            last = time.monotonic()
            due = last + self._turn()
        self._session.leave()

    def _turn(self) -> float:
        """Ask, and tell the producer what changed; return the seconds until the next question."""
        topics = list(self.groups)
        try:
            self._session.refresh(topics)
            self._apply(topics)
            waits = self._note_missing(topics)
        except DataProxyError as error:
            self._failures += 1
            self._tell(error.message)
        except Exception as error:  # noqa: BLE001 - whatever a master sends, the next answer may be good
            _LOG.exception("the topics were not asked about, what is known stays in use")
            self._failures += 1
            self._tell(repr(error))
        else:
            self._failures = 0
        if self._failures:
            return min(self._interval, _FIRST_PAUSE * float(2 ** min(self._failures, 10)))
        return min(self._interval, _MISSING_SECONDS) if waits else self._interval

    def _note_missing(self, topics: list[str]) -> bool:
        """Say for which topics and brokers messages may wait, once for each; return whether there are such."""
        places = self._session.places
        missing = frozenset(topic for topic in topics if not places.parts(topic))
        new = missing - self._missing
        if new:
            _LOG.warning("no broker takes messages of %s; they wait", _named(new))
        if self._missing - missing:
            _LOG.info("brokers take messages of %s now", _named(self._missing - missing))
        self._missing = missing
        nameless = self._without_address(topics, places)
        for text in sorted(nameless - self._nameless):
            _LOG.warning("%s", text)
        self._nameless = nameless
        if missing:
            self._tell(f"the masters know no broker that takes messages of the topic {_named(missing)}")
        else:
            self._tell(min(nameless, default=""))
        return bool(missing or nameless)

    def _without_address(self, topics: list[str], places: Places) -> frozenset[str]:
        """Return what is said of brokers whose names have no address."""
        return frozenset(
            f"broker {broker.id} cannot be used: {fault}"
            for broker in _brokers(topics, places)
            if (fault := self._addresses.fault(broker))
        )

    def _tell(self, text: str) -> None:
        """Tell the producer why messages wait; an empty text: they do not."""
        owner = self._owner()
        if owner is not None and text != self._said:
            owner._not_found(text)
            self._said = text

    def _apply(self, topics: list[str]) -> None:
        """Tell the producer what changed.  If it could not take a picture, the next turn gives it again."""
        places = self._session.places
        self._addresses.look_up(_brokers(topics, places))
        picture = self._layout.draw(topics, places, self._addresses.of, self._session.admission)
        length, owner = FRAME_SPARE + self._session.largest, self._owner()
        if owner is None or self._stop.is_set():
            return
        if length != self._length:
            owner._limit_frames(length)
            self._length = length
        if picture != self._picture:
            owner._use_clusters(picture)
            self._picture = picture


def _brokers(topics: list[str], places: Places) -> set[Broker]:
    """Return the brokers that take messages of some of ``topics``."""
    return {broker for topic in topics for broker, _, _ in places.parts(topic)}


def _named(topics: frozenset[str]) -> str:
    """Return a few names of topics, and how many more there are."""
    names = sorted(topics)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more
