"""A process with a consumer in a simulated run: driver, member and compiled reader, without their threads."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from dataproxy.consumer.driver import Driver
from dataproxy.consumer.group.asking import Address, MemberOptions, Refusal
from dataproxy.consumer.group.member import Life, Member
from dataproxy.consumer.state import Watcher
from dataproxy.wire.tubemq.texts import Partition
from tests.native.probe_fetch import Reader
from tests.simgroup.app import App
from tests.simgroup.hosts import GROUP, true_ms
from tests.simgroup.laws import LawError
from tests.simgroup.lines import Line
from tests.simgroup.plan import S

if TYPE_CHECKING:
    from tests.simgroup.world import World

__all__ = ["Node"]

_NEVER: Final = 1 << 62
_ROUNDS: Final = 200  # of a loop that has nothing to wait for


class _Core:
    """The reader, as the driver knows a consumer's core: what the driver says is done at once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def call(
        self, number: int, peer: tuple[Any, ...], service: int, method: int, request: bytes, timeout: float
    ) -> None:
        self._reader.call(number, peer[0], service, method, request, timeout)

    def hold(
        self, number: int, peer: tuple[Any, ...], topic: str, partition: int, key: str, offset: int, end: int,
        filters: list[bytes], paused: bool,
    ) -> None:  # fmt: skip
        self._reader.hold(
            number, peer[0], topic=topic, partition=partition, offset=offset, end=end, filters=filters, paused=paused
        )

    def release(self, number: int, seconds: float, sought: bool) -> None:
        self._reader.release(number, seconds, sought)

    def follow(self, number: int, peer: tuple[Any, ...]) -> None:
        self._reader.follow(number, peer[0])

    def drop(self, number: int, code: int) -> None:
        self._reader.drop(number, code)

    def forget(self, number: int) -> None:
        pass

    def rules(self, group: Any, cluster: Any) -> None:
        self._reader.rules(group, cluster)

    def wake(self) -> None:
        pass


class _Names:
    """Addresses of hosts, known from some time on."""

    def __init__(self, known_at: float) -> None:
        self._known_at = known_at
        self._asked = False

    def look(self, host: str, now: float) -> str:
        if now >= self._known_at:
            return host
        self._asked = not self._asked
        if self._asked:
            return ""
        raise OSError(f"{host!r} has no address")


class Node(Watcher):
    """One process; ``work`` does what its loop and its driver would do now."""

    def __init__(self, world: World, client: str, style: str) -> None:
        plan, times = world.plan, world.plan.times
        self.world, self.client = world, client
        self.alive = True
        self.skew_ms = 0  #: of its wall clock
        self.reads: dict[str, int] = {}  #: partitions (keys) that are assigned, with the numbers of their holds
        self.partitions: dict[int, Partition] = {}  #: of all holds that there ever were
        self.closed_at = 0
        self._stopped_until = 0
        self._turn_at = world.now
        self._wake_at = _NEVER
        self._events: list[Any] = []
        self.reader = Reader(
            call=times.call, confirm=times.confirm, nothing=times.nothing, prefetch=plan.prefetch,
            client=client.encode(), group=GROUP.encode(),
        )  # fmt: skip
        self.reader.now = world.now
        masters = tuple(Address(*_address(one.label)) for one in world.masters.hosts)
        options = MemberOptions(
            masters, client, GROUP, {topic: plan.filters.get(topic, ()) for topic in plan.topics},
            user="u" if plan.auth else "", password="p" if plan.auth else "", first_read=plan.first_read,
            heartbeat_s=times.heartbeat, slow_s=times.slow, confirm_wait_s=times.release, timeout_s=times.call,
        )  # fmt: skip
        self.member = Member(options, random.Random(world.random.random()))
        names: Any = _Names((world.now / S) + plan.names)
        self.driver = Driver(cast("Any", _Core(self.reader)), self.member, names, self, options.topics)
        self.lines: dict[str, Line] = {}
        self.app = App(self, style)
        self.member.start(world.now / S)

    # --- what the driver tells

    def assigned(self, partition: Partition, number: int, begin: Callable[[bool], None], *, moved: bool) -> None:
        """Take a partition, or its new hold when it is read from another place."""
        self.world.note(f"{self.client} {'moves in' if moved else 'is assigned'} {partition.key} as hold {number}")
        if not moved:
            self.world.laws.assigned(self, partition.key)
        paused = moved and self.app.moved(self.reads[partition.key], number)
        self.reads[partition.key] = number
        self.partitions[number] = partition
        begin(paused)

    def revoked(self, partition: Partition, *, lost: bool) -> None:
        """Take the end of a partition: a second word about the same one changes nothing, as for an application."""
        number = self.reads.pop(partition.key, None)
        if number is not None:
            self.world.note(f"{self.client} is revoked {partition.key}{', lost' if lost else ''}")
            self.app.unpaused(number)

    def refused(self, refusal: Refusal | None) -> None:
        """Take a refusal."""
        if refusal is not None:
            self.world.note(f"{self.client} is refused: {refusal}")

    # --- life

    @property
    def is_member(self) -> bool:
        """Tell whether a master has taken it and it does not leave."""
        return self.alive and self.member.life is Life.MEMBER

    @property
    def leaves(self) -> bool:
        """Tell whether it was closed."""
        return bool(self.closed_at)

    def seek(self, key: str, offset: int) -> None:
        """Read a partition again from an offset on, or from its oldest message."""
        self.world.note(f"{self.client} seeks {offset} in {key}")
        self.world.laws.sought(self, key, self.driver.seek(key, offset))
        self._turn_at = self.world.now
        self.work()

    def close(self) -> None:
        """End in order."""
        self.world.note(f"{self.client} is closed")
        self.closed_at = self.world.now
        self.driver.close()
        self._turn_at = self.world.now
        self.work()

    def crash(self) -> None:
        """End without a word."""
        self.world.note(f"{self.client} crashes")
        self._end()
        for line in self.lines.values():
            line.end()

    def _end(self) -> None:
        self.alive = False
        self.reads.clear()

    def stop(self, until: int) -> None:
        """Do nothing until then, as a process that is stopped."""
        self.world.note(f"{self.client} is stopped for {(until - self.world.now) / S:.1f} s")
        self._stopped_until = until
        self.world.at(until, self.work)

    def go_on(self) -> None:
        """End a stop."""
        self._stopped_until = min(self._stopped_until, self.world.now)
        self.work()

    def set_clock(self, ms: int) -> None:
        """Set its wall clock so many ms before the true time."""
        self.reader.step_wall(ms - self.skew_ms)
        self.skew_ms = ms

    def paused(self, then: Callable[[], None]) -> bool:
        """Return whether the process is stopped; what it would do is done when it goes on."""
        if self.world.now < self._stopped_until:
            self.world.at(self._stopped_until, then)
            return True
        return False

    def awake(self) -> Reader:
        """Return the reader, which knows the time."""
        self.reader.now = self.world.now
        return self.reader

    def is_open(self, label: str) -> bool:
        """Tell whether there is a connection to a server."""
        return bool(self.reader.connection(label)[0] == "open")

    # --- work

    def work(self) -> None:
        """Do everything that is due now."""
        world = self.world
        if not self.alive or world.now < self._stopped_until:
            return
        self.reader.now = world.now
        turned = False
        for _ in range(_ROUNDS):
            busy = self._round()
            self._events += self.reader.events()
            if self._events:
                self._turn_at = min(self._turn_at, world.now + world.laziness())
            if world.now >= self._turn_at:
                turned = True
                self._turn()
            elif not busy:
                break
            if not self.alive:
                return
        else:
            world.laws.broken("calm", f"{self.client} does something all the time")
        world.laws.balances(self)
        if turned and not self._events:
            world.laws.agree(self)
        self.app.look()
        self._sleep()

    def _round(self) -> bool:
        """Do a round of the loop; False if nothing was to be done."""
        reader = self.reader
        reader.advance()
        needs = reader.needs()
        for label, what in needs:
            line = self.lines.get(label)
            if line is None:
                line = self.lines[label] = Line(self, self.world.hosts[label])
            if what == "late":
                line.late()
            elif what == "connect":
                line.connect()
            else:
                line.write()
        return bool(needs)

    def _turn(self) -> None:
        """Do a turn of the driver, as ``Driver.run`` does."""
        now = self.world.now / S
        events, self._events = self._events, []
        try:
            for event in events:
                self.driver.take(event, now)
            wait = self.driver.turn(now, true_ms(self.world.now) + self.skew_ms)
        except LawError:
            raise
        except Exception as error:
            self.world.laws.broken("error", f"of the driver of {self.client}: {error!r}")
        self._turn_at = self.world.now + int(wait * S) + 1 if wait > 0 else self.world.now
        if self.member.life is Life.GONE:
            self.world.note(f"{self.client} is gone")
            self.world.laws.gone(self)
            self._end()

    def _sleep(self) -> None:
        wait = self.reader.wait()
        when = min(self._turn_at, _NEVER if wait is None else self.world.now + max(wait, 0))
        if when < self._wake_at or self._wake_at <= self.world.now:
            self._wake_at = when
            if when < _NEVER:
                self.world.at(max(when, self.world.now), partial(self._wake, when))

    def _wake(self, when: int) -> None:
        if when == self._wake_at:
            self._wake_at = _NEVER
            self.work()


def _address(label: str) -> tuple[str, int]:
    host, _, port = label.rpartition(":")
    return host, int(port)
