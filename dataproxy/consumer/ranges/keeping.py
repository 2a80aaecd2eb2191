"""A group kept at the brokers for one reader of its topics, whose stored offsets follow that reader.

Who registers a partition under a group has it alone, until it is given back or the broker misses heartbeats for half a
minute.  So a second reader with the same group is noticed at once, wherever it runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dataproxy.consumer.ranges.calls import Calls
from dataproxy.consumer.ranges.registering import FOUND, TAKEN, Client, Registered, refusal_of
from dataproxy.errors import DataProxyError, GroupRefusedError
from dataproxy.logs import logger
from dataproxy.process.threads import join, start_quiet

if TYPE_CHECKING:
    from dataproxy.config import ConsumerConfig
    from dataproxy.consumer.ranges.places import Place

__all__ = ["GroupKeeper"]

_LOG: Final = logger("consumer")
_OWNER: Final = re.compile(r"registered by(?: other consumer:)? ?(\S+)")
_PAUSE_S: Final = 0.5
_JOIN_S: Final = 5.0
_QUIET_S: Final = 30.0  # between two log records about brokers that are away

_numbers = itertools.count(1)


class GroupKeeper:
    """Keep partitions under a group.  Any thread; one call at a time.

    ``wait_s``: how long a partition that another client has is waited for; a reader of this machine whose process has
    ended is not waited for.  ``sleep`` waits.  Raises ConfigError for files of TLS that cannot be used.
    """

    def __init__(self, config: ConsumerConfig, wait_s: float, sleep: Callable[[float], None] = time.sleep) -> None:
        self._config, self._wait_s, self._sleep = config, wait_s, sleep
        self._group = config.group
        self._calls = Calls(config)
        self._client = Client(self._calls, config, f"{config.group}_{_own_mark()}-{next(_numbers)}-stream")
        self._kept: dict[str, Place] = {}
        self._told = -_QUIET_S  # when a broker was told to be away
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = start_quiet("dataproxy-keeper", self._beat)

    def look(self, places: Iterable[Place]) -> dict[str, Registered]:
        """Return stored offset and end of partitions by their keys; from now on these are kept.

        Partitions of brokers that cannot be asked are left out, with a warning in the log.  Raises GroupRefusedError
        (GROUP_IN_USE) if another reader has one, and TransportError if a broker refuses, or none can be asked.
        """
        found: dict[str, Registered] = {}
        left = list(places)
        until = time.monotonic() + self._wait_s
        while left:
            answers, failure = self._register([(place, None) for place in left])
            taken = []
            for place in left:
                answer = answers.get(place.key)
                if answer is None:
                    continue
                if answer.code == TAKEN:
                    taken.append((place, answer.text))
                elif answer.code != FOUND:
                    raise refusal_of(place, self._group, answer.code, answer.text, user=bool(self._config.user))
                else:
                    found[place.key] = answer
                    self._kept[place.key] = place
            if failure is not None and not found and not taken:
                raise failure
            if taken and not self._free(taken):
                self._wait(taken, until)
            left = [place for place, _ in taken]
        return found

    def store(self, offsets: Mapping[str, int], places: Mapping[str, Place]) -> set[str]:
        """Move the stored offsets of the group, and return the keys of those that were moved.

        A failure is only logged, since nothing is read from them.
        """
        wanted = [(places[key], offset) for key, offset in offsets.items() if key in places]
        answers, failure = self._register(wanted)
        refused = [f"{key}: code {answer.code}" for key, answer in answers.items() if answer.code != FOUND]
        if failure is not None or refused:
            why = "; ".join([*refused, *([str(failure)] if failure is not None else [])])
            _LOG.warning("the stored offsets of group %s were not moved: %s", self._group, why)
        return {key for key, answer in answers.items() if answer.code == FOUND}

    def close(self) -> None:
        """Give all partitions back."""
        self._ended.set()
        raised = join(self._thread, _JOIN_S)
        with self._lock:
            numbers = []
            for place in self._kept.values():
                with contextlib.suppress(DataProxyError):
                    numbers.append(self._client.post_unregister(place, self._group))
            for number in numbers:
                with contextlib.suppress(DataProxyError):
                    self._calls.wait(number)
            self._kept.clear()
            self._calls.close()
        if raised is not None:
            raise raised

    def _register(
        self, wanted: Sequence[tuple[Place, int | None]]
    ) -> tuple[dict[str, Registered], DataProxyError | None]:
        """Return the answers of the brokers that can be asked, and the first failure of another one."""
        failure: DataProxyError | None = None
        found: dict[str, Registered] = {}
        numbers = []
        with self._lock:
            for place, offset in wanted:
                try:
                    numbers.append((place, self._client.post_register(place, self._group, offset)))
                except DataProxyError as error:
                    failure = failure or error
            for place, number in numbers:
                try:
                    found[place.key] = self._client.registered(number, self._group)
                except DataProxyError as error:
                    failure = failure or error
        if failure is not None and found and time.monotonic() - self._told >= _QUIET_S:
            self._told = time.monotonic()
            _LOG.warning("partitions of a broker are left out for now: %s", failure)
        return found, failure

    def _free(self, taken: list[tuple[Place, str]]) -> bool:
        """Give back what readers of this machine had whose processes have ended; tell whether that was all."""
        numbers, all_ended = [], True
        with self._lock:
            for place, text in taken:
                owner = _OWNER.search(text)
                if owner is not None and _has_ended(owner[1], self._group):
                    numbers.append(self._client.post_unregister(place, self._group, owner[1]))
                else:
                    all_ended = False
            for number in numbers:
                self._calls.wait(number)
        return all_ended

    def _wait(self, taken: list[tuple[Place, str]], until: float) -> None:
        place, text = taken[0]
        if time.monotonic() >= until:
            raise GroupRefusedError(
                f"group {self._group!r} is in use: the broker at {place.address.host}:{place.address.port} says of"
                f" partition {place.key}: {text!r}",
                code="GROUP_IN_USE",
                hint="give each query a group of its own, and end consumers of the group before; what was killed is"
                " forgotten by brokers after half a minute",
                details={"group": self._group, "partition": place.key, "text": text},
            )
        self._sleep(_PAUSE_S)

    def _beat(self) -> None:
        """Send heartbeats until the end.  Thread: the keeper's own."""
        while not self._ended.wait(self._config.heartbeat_interval):
            with self._lock:
                by_broker: dict[int, list[Place]] = {}
                for place in self._kept.values():
                    by_broker.setdefault(place.broker, []).append(place)
                numbers = []
                for places in by_broker.values():
                    with contextlib.suppress(DataProxyError):  # the next `look` says it
                        numbers.append(self._client.post_heartbeat(places, self._group))
                for number in numbers:
                    with contextlib.suppress(DataProxyError):
                        self._calls.wait(number)


# --- which process of which machine a client is


def _machine() -> str:
    """Return a mark of this start of this machine and of its table of processes, which containers have of their own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return hashlib.sha256(f"{boot} {Path('/proc/self/ns/pid').readlink()}".encode()).hexdigest()[:16]
    except OSError:
        return "unknown"


def _began(pid: int) -> str:
    """Return when a process began, in ticks of this machine; "" if there is none, or it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


def _own_mark() -> str:
    return f"{_machine()}-{os.getpid()}-{_began(os.getpid()) or 'unknown'}"


def _has_ended(client: str, group: str) -> bool:
    """Tell whether a client was a keeper of this group on this machine, in a process that is no more."""
    parts = client.removeprefix(f"{group}_").split("-")
    if not client.startswith(f"{group}_") or len(parts) != 5 or parts[4] != "stream":
        return False
    machine, pid, began = parts[:3]
    return machine == _machine() != "unknown" and pid.isdecimal() and _began(int(pid)) not in (began, "unknown")
