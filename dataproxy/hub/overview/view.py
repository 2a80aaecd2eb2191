"""The operator's view of a hub: one page of each kind over all protocols, and what can be changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from dataproxy._core.server.store.view import StoreView
from dataproxy.errors import ConfigError, HubError
from dataproxy.hub.overview.events import Events
from dataproxy.hub.overview.pages import Key, cut, write_key
from dataproxy.hub.overview.places import AbsentError, Place, Step, Topic, plan, steps_told
from dataproxy.hub.overview.producers import Producer, Producers
from dataproxy.hub.reading.records import LogInfo, offset_at
from dataproxy.problems import shown

if TYPE_CHECKING:  # each needs a port of its own, and TubeMQ's the package `protobuf`
    from dataproxy.hub.rocketmq.service import Service as RocketService
    from dataproxy.hub.tubemq.admin.parts import Positions
    from dataproxy.hub.tubemq.service import Service as TubeService

__all__ = ["View"]

_US: Final = 1_000_000
_KEPT_S: Final = 10.0  # until the store has a reset
_PROTOCOLS: Final = ("rocketmq", "tubemq")
_Row = dict[str, Any]


class View:
    """What an operator sees.  Reading threads: each call asks the threads of the protocols, and waits for them.

    ``clock_us``: the hub's clock.  Services are None where the hub has no such port.
    """

    def __init__(
        self,
        clock_us: Callable[[], int],
        producers: Producers,
        events: Events,
        store: StoreView,
        tubemq: TubeService | None,
        rocketmq: RocketService | None,
    ) -> None:
        self._clock_us, self.producers, self.events, self._store = clock_us, producers, events, store
        self._tubemq, self._rocketmq = tubemq, rocketmq

    @property
    def now(self) -> float:
        """Return the hub's time: seconds of a monotonic clock."""
        return self._clock_us() / _US

    # --- pages

    def clients(self, start: Key, limit: int) -> _Row:
        """Return up to ``limit`` clients of all protocols behind a place, by protocol, role, group and name."""
        now = self.now
        found = cut(self.producers.follow(now), _producer_key, start, limit + 1)
        rows = [_producer_row(one, now) for one in found]
        tubemq, rocketmq = self._tubemq, self._rocketmq
        if rocketmq is not None:
            from dataproxy.hub.overview.rocketmq import clients as of_rocketmq

            rows += rocketmq.run(lambda: of_rocketmq(rocketmq, start, limit + 1))
        if tubemq is not None:
            from dataproxy.hub.overview.tubemq import clients as of_tubemq

            positions = self._positions(tubemq)
            rows += tubemq.run(lambda: of_tubemq(tubemq, positions, start, limit + 1))
        names = ("protocol", "role", "group", "client", "address")
        return _page("clients", rows, lambda row: tuple(row[name] for name in names), limit)

    def groups(self, start: Key, limit: int, only: str | None = None) -> _Row:
        """Return up to ``limit`` groups of all protocols behind a place, by name, or one of them.

        A group with offsets and no members is one of the protocol whose port the hub has, RocketMQ's if it has both.
        Raises AbsentError.
        """
        keys = [(name, protocol) for name, protocols in self._groups().items() for protocol in protocols]
        if only is not None:
            keys = [key for key in keys if key[0] == only]
            if not keys:
                raise AbsentError(f"there is no group {shown(only)} with members or offsets")
        page = cut(keys, lambda key: key, start, limit + 1)
        rows: list[_Row] = []
        tubemq, rocketmq = self._tubemq, self._rocketmq
        if rocketmq is not None and (names := [name for name, protocol in page if protocol == "rocketmq"]):
            from dataproxy.hub.overview.rocketmq import groups as of_rocketmq

            rows += rocketmq.run(lambda: of_rocketmq(rocketmq, names))
        if tubemq is not None and (others := [name for name, protocol in page if protocol == "tubemq"]):
            from dataproxy.hub.overview.tubemq import groups as of_tubemq

            positions = self._positions(tubemq)
            rows += tubemq.run(lambda: of_tubemq(tubemq, positions, others))
        return _page("groups", rows, lambda row: (row["group"], row["protocol"]), limit)

    def locks(self, start: Key, limit: int) -> _Row:
        """Return up to ``limit`` locks of queues behind a place."""
        rows: list[_Row] = []
        if (rocketmq := self._rocketmq) is not None:
            from dataproxy.hub.overview.rocketmq import locks

            rows = rocketmq.run(lambda: locks(rocketmq, start, limit + 1))
        return _page("locks", rows, lambda row: (row["group"], row["topic"], row["queue"]), limit)

    def transactions(self, start: Key, limit: int) -> _Row:
        """Return up to ``limit`` transactions that have not ended, behind a place."""
        rows: list[_Row] = []
        if (rocketmq := self._rocketmq) is not None:
            from dataproxy.hub.overview.rocketmq import transactions

            rows = rocketmq.run(lambda: transactions(rocketmq, start, limit + 1))
        return _page("transactions", rows, lambda row: (row["offset"],), limit)

    def events_after(self, number: int, limit: int) -> _Row:
        """Return up to ``limit`` events behind a number."""
        self.producers.follow(self.now)
        found = self.events.after(number, limit)
        return {"events": [one.to_json() for one in found.events], "next": found.next, "missed": found.missed}

    def metrics(self) -> _Row:
        """Return counts for Prometheus: what is there now, and what has happened since the start.

        If the thread of a protocol is too busy to answer, only the latter.
        """
        happened = {"ends": self.events.ends(), "events": self.events.counts()}
        try:
            return {**self._counts(), **happened}
        except TimeoutError:
            return happened

    def _counts(self) -> _Row:
        counts = {"dataproxy": len(self.producers.follow(self.now)), "tubemq": 0, "rocketmq": 0}
        found: _Row = {"locks": 0, "transactions": 0, "idle_members": 0}
        if (tubemq := self._tubemq) is not None:
            counts["tubemq"], idle = tubemq.run(lambda: (tubemq.clients.total, len(tubemq.idling.now())))
            found["idle_members"] += idle
        if (rocketmq := self._rocketmq) is not None:
            counts["rocketmq"], state, idle = rocketmq.run(
                lambda: (
                    rocketmq.clients.total,
                    rocketmq.registry.snapshot(rocketmq.now),
                    len(rocketmq.registry.idle()),
                )
            )
            found["idle_members"] += idle
            found |= {"locks": len(state.locks), "transactions": state.transactions}
        groups = dict.fromkeys(_PROTOCOLS, 0)
        for protocols in self._groups().values():
            for protocol in protocols:
                groups[protocol] += 1
        return {"clients": counts, "groups": groups, **found}

    # --- offsets

    def reset(self, group: str, topic: str, partition: int | None, to: object, protocol: str, *, execute: bool) -> _Row:
        """Plan a reset of a group's offsets, and carry it out with ``execute``.

        All of it is checked before anything changes.  Raises AbsentError, ConfigError, and HubError if the store could
        not keep it.
        """
        known = self._groups()
        spoken = self._spoken(group, known.get(group, ()), protocol)
        service = self._rocketmq if spoken == "rocketmq" else self._tubemq
        assert service is not None
        steps = plan(
            group, known, self._places(spoken, group), lambda name: self._topic(spoken, name), self._at_time,
            topic=topic, partition=partition, to=to,
        )  # fmt: skip
        if spoken == "rocketmq":
            self._move_rocketmq(group, steps, execute=execute)
        elif execute:
            self._move_tubemq(group, steps)
        return steps_told(group, spoken, steps, executed=execute)

    def _spoken(self, group: str, has: Iterable[str], protocol: str) -> str:
        """Return by which protocol a group's offsets are set.  Raises ConfigError."""
        there = [name for name, service in zip(_PROTOCOLS, (self._rocketmq, self._tubemq), strict=True) if service]
        if not there:
            raise ConfigError(
                "this hub keeps no offsets of groups", hint="start it with --tubemq PORT or --rocketmq PORT"
            )
        if protocol and protocol not in there:
            raise ConfigError(
                f"protocol={shown(protocol)} is none that this hub has", hint=f"give {' or '.join(there)}"
            )
        spoken = [protocol] if protocol else list(has) or there[:1]
        if len(spoken) > 1:
            raise ConfigError(
                f"the group {shown(group)} has members of {' and '.join(spoken)}", hint="name the protocol"
            )
        return spoken[0]

    def _move_rocketmq(self, group: str, steps: list[Step], *, execute: bool) -> None:
        from dataproxy.hub.overview.rocketmq import check_move, move

        service = self._rocketmq
        assert service is not None
        if not execute:
            service.run(lambda: check_move(service, group, dict.fromkeys(one.topic for one in steps)))
            return
        kept: Future[bool] = Future()
        service.run(lambda: move(service, group, steps, time.time_ns() // 1_000_000, kept.set_result))
        try:
            whole = kept.result(_KEPT_S)
        except TimeoutError:
            whole = False
        if not whole:
            raise HubError(
                f"the offsets of the group {shown(group)} are set, and the store could not keep that they were:"
                " late commits may undo it after a restart", hint="see the hub's health, and repeat the reset",
            )  # fmt: skip

    def _move_tubemq(self, group: str, steps: list[Step]) -> None:
        from dataproxy.hub.overview.tubemq import move

        service = self._tubemq
        assert service is not None
        service.administer(lambda: move(service, group, steps))
        for name in dict.fromkeys(one.topic for one in steps):
            queues = sum(one.topic == name for one in steps)
            self.events.add("reset", protocol="tubemq", group=group, topic=name, queues=queues)

    # --- inside

    def _groups(self) -> dict[str, tuple[str, ...]]:
        """Return the groups that have members or offsets, and by which protocols they have members."""
        found: dict[str, list[str]] = {}
        offline: set[str] = set()
        default = "tubemq"
        if (rocketmq := self._rocketmq) is not None:
            from dataproxy.hub.overview import rocketmq as of

            members, names = rocketmq.run(lambda: (of.member_groups(rocketmq), of.group_names(rocketmq)))
            for name in members:
                found.setdefault(name, []).append("rocketmq")
            offline |= names
            default = "rocketmq"
        if (tubemq := self._tubemq) is not None:
            from dataproxy.hub.overview import tubemq as of_tubemq

            positions = self._positions(tubemq)
            members, names = tubemq.run(
                lambda: (of_tubemq.member_groups(tubemq), of_tubemq.group_names(tubemq, positions))
            )
            for name in members:
                found.setdefault(name, []).append("tubemq")
            offline |= {name for name in names if not name.startswith("RMQ_SYS_")}
        for name in offline:
            found.setdefault(name, [default])
        return {name: tuple(protocols) for name, protocols in found.items()}

    @staticmethod
    def _positions(tubemq: TubeService, only: str | None = None) -> Positions:
        from dataproxy.hub.tubemq.admin.parts import read_positions

        return read_positions(tubemq.parts.registrations, only)

    def _places(self, protocol: str, group: str) -> list[Place]:
        if protocol == "rocketmq":
            from dataproxy.hub.overview.rocketmq import places

            rocketmq = self._rocketmq
            assert rocketmq is not None
            return rocketmq.run(lambda: places(rocketmq, group))
        from dataproxy.hub.overview.tubemq import places as of_tubemq

        assert self._tubemq is not None
        return of_tubemq(self._positions(self._tubemq, group), group)

    def _topic(self, protocol: str, name: str) -> Topic | None:
        if protocol == "rocketmq":
            from dataproxy.hub.overview.rocketmq import topic

            rocketmq = self._rocketmq
            assert rocketmq is not None
            return rocketmq.run(lambda: topic(rocketmq, name))
        from dataproxy.hub.overview.tubemq import topic as of_tubemq

        tubemq = self._tubemq
        assert tubemq is not None
        return tubemq.run(lambda: of_tubemq(tubemq, name))

    def _at_time(self, topic: str, partition: int, ms: int) -> int:
        for log in (LogInfo(*numbers) for numbers in self._store.logs(topic)):
            if log.partition == partition:
                return offset_at(self._store, log, ms)
        return 0


def _page(name: str, rows: list[_Row], key: Callable[[_Row], Key], limit: int) -> _Row:
    """Return the first rows in their order, with the place of the next page; None on the last one."""
    found = sorted(rows, key=key)
    more = len(found) > limit
    return {name: found[:limit], "next": write_key(key(found[limit - 1])) if more else None}


def _producer_key(one: Producer) -> Key:
    return one.protocol, "producer", _groups_of(one), one.address, one.address


def _groups_of(one: Producer) -> str:
    return ",".join(dict.fromkeys(group for group, _ in one.streams))


def _producer_row(one: Producer, now: float) -> _Row:
    return {
        "protocol": one.protocol, "role": "producer", "client": one.address, "group": _groups_of(one),
        "address": one.address, "language": "", "version": "", "silent_s": round(max(now - one.seen, 0.0), 1),
        "limit_s": None, "age_s": round(max(now - one.since, 0.0), 1), "requests": one.requests,
        "messages": one.messages, "streams": [{"group": group, "stream": stream} for group, stream in one.streams],
        "requests_of_others": one.unnamed,
    }  # fmt: skip
