"""The thread that drives a member: it turns what a member asks into calls, and their ends into the member's.

Threads.  ``run`` is the body of one thread, and all methods without a word about threads belong to it.  The compiled
loop makes the calls and reads the packs; the application meets it alone, not the driver.  ``run`` repeats ``turn`` and
``take``, which get the time as an argument, so that a whole group runs on virtual time.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from dataproxy.consumer.group.asking import Address, Ask, Drop, Fault, Hold, Known, Refusal, Release, Reply, Untaken
from dataproxy.consumer.group.chooser import Chooser
from dataproxy.consumer.group.membership import Life
from dataproxy.consumer.places import INDEX_BYTES
from dataproxy.lasterror import why
from dataproxy.logs import logger
from dataproxy.numbers import CE_CONNECT_FAILED, TLS_FIRST
from dataproxy.process.changes import Asked
from dataproxy.shown import foreign
from dataproxy.wire.tubemq.calls import METHODS
from dataproxy.wire.tubemq.flow import FlowRules, read_flow_rules
from dataproxy.wire.tubemq.reading import read_message

if TYPE_CHECKING:
    from dataproxy._core.consumer.core import ConsumerCore
    from dataproxy.consumer.group.membership import Membership
    from dataproxy.consumer.names import Names
    from dataproxy.consumer.state import Watcher
    from dataproxy.wire.tubemq.texts import Partition

__all__ = ["Driver", "call_fault_text"]

_LOG: Final = logger("consumer")
_MASTER, _READ = 1, 2
_Peer = tuple[str, str, int, str]  # label, numeric address, port, name
_BY_NAME: Final = {one.request: one for one in METHODS.values()}
_SERVICE: Final = {name: _READ if name.endswith("C2B") else _MASTER for name in _BY_NAME}
_LONGEST_S: Final = 60.0
_FOLLOW_S: Final = 1.0  # between two looks where brokers are
_QUIET_S: Final = 10.0  # between two log records about the same broker's refusals
_PATIENT_S: Final = 5.0  # without a good answer of a master, before that is in the log
_MINUTE_S: Final = 60.0  # between two log records about masters
_STAGES: Final = {Life.NEW: "joining", Life.JOINING: "joining", Life.MEMBER: "member", Life.GONE: "closed"}
_CONNECT, _LOST, _TIMEOUT, _PROTOCOL, _CLOSED, _MEMORY = range(1, 7)
_UNTAKEN: Final = {0: "it does not answer", 410: "another consumer of the group has it"}
_FAULTS: Final = {
    _LOST: "the connection ended",
    _TIMEOUT: "no answer in time",
    _PROTOCOL: "the answer is none of TubeMQ's protocol",
    _CLOSED: "the consumer was closed",
    _MEMORY: "no memory for the call",
}


class Driver:
    """Drive a member until it is gone."""

    offset_unit: Final = INDEX_BYTES  #: of offsets, for one message
    server: Final = "master"  #: by whom a member is taken

    def __init__(
        self,
        core: ConsumerCore,
        member: Membership,
        names: Names,
        watcher: Watcher,
        items: dict[str, tuple[str, ...]],
        name: str = "",
    ) -> None:
        self._core, self.member, self._names, self._watcher = core, member, names, watcher
        self._items = items  # filter items of each topic
        self._name = name  # that certificates are for, in place of the hosts'
        self._waiting: list[tuple[Ask, float]] = []  # for an address
        self._calls: dict[int, str] = {}  # requests of calls under way
        self._numbers: dict[str, int] = {}  # holds by the keys of their partitions
        self._partitions: dict[int, Partition] = {}
        self._next = 0
        self._rules: dict[str, str] = {}
        self._valid = {"group": FlowRules(), "cluster": FlowRules()}
        self._follow_due = 0.0
        self._moving: set[str] = set()  # keys of partitions between two holds
        self._peers: dict[Address, _Peer] = {}  # where brokers are that packs are read from
        self._told: dict[tuple[str, int], float] = {}
        self._asked: queue.SimpleQueue[tuple[Callable[[int, float], None], Future[Reply]]] = queue.SimpleQueue()
        self._waiters: dict[int, Future[Reply]] = {}
        self._questions = 0
        self._trouble_due = 0.0
        self._over = False
        self._closing = False  # plain values: a finalizer sets them, which may run inside of any lock
        self._abandoned = False
        self._was_member = False

    @property
    def stage(self) -> str:
        """Return where the member is: ``joining``, ``member``, ``leaving``, ``closed``."""
        return _STAGES.get(self.member.life, "leaving")

    @property
    def trouble(self) -> str:
        """Return the newest fault of a call to a master, empty without one."""
        return "" if self.member.trouble is None else self.member.trouble.text

    def close(self) -> None:
        """Let the member leave its group.  Any thread."""
        self._closing = True
        self._core.wake()

    def abandon(self) -> None:
        """Let the thread end, whatever the member still waits for, and the loop with it.  Any thread."""
        self._abandoned = True
        self._core.wake()

    def seek(self, key: str, offset: int) -> Asked[Reply]:
        """Read a partition from another place; the reply is the member's, None if that has ended.  Any thread."""
        return self._question(lambda number, now: self.member.seek(key, offset, number, now))

    def assign(self, starts: Mapping[str, int | None]) -> Asked[Reply]:
        """Let a member that chooses by itself hold these partitions and no others.  Any thread."""

        def ask(number: int, now: float) -> None:
            assert isinstance(self.member, Chooser)
            self.member.assign(starts, number, now)

        return self._question(ask)

    def _question(self, ask: Callable[[int, float], None]) -> Asked[Reply]:
        reply: Asked[Reply] = Asked()
        reply.set_running_or_notify_cancel()  # nobody who waits can take it back
        self._asked.put((ask, reply))
        if self._over:  # nobody answers any more
            self._end_questions()
        self._core.wake()
        return reply

    def run(self) -> None:
        """Work until the member is gone; then the loop ends."""
        try:
            self.member.start(time.monotonic())
            while not self._is_gone() and not self._abandoned:
                pause = self.turn(time.monotonic(), int(time.time() * 1000))
                for event in self._core.events(pause):
                    self.take(event, time.monotonic())
        except Exception as error:  # noqa: BLE001 - the application gets it
            _LOG.log(logging.CRITICAL, "a consumer stops, because it met an error of its own", exc_info=True)
            self._watcher.failed(error)
        finally:
            self._core.stop()
            self._over = True
            self._end_questions()
            self._watcher.gone()

    def _end_questions(self) -> None:
        """Tell everybody who waits for the member that it has ended.  Any thread, behind the end of ``run``."""
        gone = Reply(0, "gone")
        with contextlib.suppress(queue.Empty):
            while True:
                self._asked.get_nowait()[1].set_result(gone)
        while self._waiters:
            with contextlib.suppress(KeyError):
                self._waiters.popitem()[1].set_result(gone)

    def _is_gone(self) -> bool:
        return self.member.life is Life.GONE

    def turn(self, now: float, wall_ms: int) -> float:
        """Do what is due; return the time in s until the next turn, which comes earlier behind events."""
        if self._closing:
            self.member.close(now)
        self._take_questions(now)
        for order in self.member.poll(now, wall_ms):
            self._obey(order, now)
        if self._is_gone():
            return 0.0  # nothing more comes that would end a wait
        self._ask_waiting(now)
        self._follow_rules()
        self._follow_brokers(now)
        is_member = self.member.life is Life.MEMBER
        if is_member and not self._was_member:
            self._watcher.refused(None)
        self._was_member = is_member
        self._tell_trouble(now)
        return min(max(self.member.due() - now, 0.0), 0.1 if self._waiting else _LONGEST_S)

    def _take_questions(self, now: float) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                ask, reply = self._asked.get_nowait()
                self._questions += 1
                self._waiters[self._questions] = reply
                ask(self._questions, now)

    # --- orders

    def _obey(self, order: Any, now: float) -> None:
        if isinstance(order, Ask):
            self._waiting.append((order, now + order.timeout_s))
        elif isinstance(order, Hold):
            self._hold(order, now)
        elif isinstance(order, Release):
            self._release(order, now)
        elif isinstance(order, Drop):
            number = self._numbers.get(order.partition.key)
            if number is not None:
                self._core.drop(number, order.code)
                self._forget(number, lost=True)
            elif order.partition.key in self._moving:
                self._moving.discard(order.partition.key)
                self._watcher.revoked(order.partition, lost=True)
        elif isinstance(order, Known):
            self._watcher.known(order.partitions)
        elif isinstance(order, Untaken):
            self._tell_untaken(order, now)
        elif isinstance(order, Reply):
            self._waiters.pop(order.number).set_result(order)
        elif isinstance(order, Refusal):
            _LOG.error("the master refuses this consumer with code %d: %s", order.code, order.text)
            self._watcher.refused(order)

    def _peer(self, address: Address, now: float) -> _Peer | None:
        numeric = self._names.look(address.host, now)
        return (
            (f"{address.host}:{address.port}", numeric, address.port, self._name or address.host) if numeric else None
        )

    def _ask_waiting(self, now: float) -> None:
        """Make the calls whose addresses are known."""
        waiting, self._waiting = self._waiting, []
        for ask, until in waiting:
            try:
                peer = self._peer(ask.address, now)
            except OSError as error:
                self.member.failed(ask.number, Fault(str(error), sent=False), now)
                continue
            if peer is not None:
                method = _BY_NAME[ask.name]
                self._calls[ask.number] = ask.name
                request = ask.message.SerializeToString()
                self._core.call(ask.number, peer, _SERVICE[ask.name], method.number, request, ask.timeout_s)
            elif now >= until:
                late = f"the look-up of {ask.address.host!r} takes too long"
                self.member.failed(ask.number, Fault(late, sent=False), now)
            else:
                self._waiting.append((ask, until))

    def _hold(self, order: Hold, now: float) -> None:
        partition = order.partition
        address = Address(partition.broker.host, partition.broker.port)
        peer = self._peer(address, now)
        if peer is None:  # it was known a moment ago, when the partition was registered
            self.member.lost(partition.key, 0, now)
            return
        self._next += 1
        number = self._next
        self._numbers[partition.key], self._partitions[number] = number, partition
        self._peers[address] = peer
        filters = [item.encode() for item in self._items.get(partition.topic, ())]

        def begin(paused: bool) -> None:
            place = (partition.key, order.offset, order.end)
            self._core.hold(number, peer, partition.topic, partition.id, *place, filters, paused)

        _LOG.info("partition %s is read from offset %d", partition.key, order.offset)
        moved = partition.key in self._moving
        self._moving.discard(partition.key)
        self._watcher.assigned(partition, number, begin, moved=moved)

    def _release(self, order: Release, now: float) -> None:
        key = order.partition.key
        number = self._numbers.get(key)
        if order.moves:
            self._moving.add(key)
        elif number is not None or key in self._moving:
            self._moving.discard(key)
            self._watcher.revoked(order.partition, lost=False)
        if number is None:
            self.member.released(key, False, now)
        else:
            self._core.release(number, max(order.until - now, 0.0), order.moves)

    def _forget(self, number: int, *, lost: bool) -> None:
        partition = self._partitions.pop(number)
        if self._numbers.get(partition.key) == number:
            del self._numbers[partition.key]
        self._core.forget(number)
        self._told = {known: when for known, when in self._told.items() if known[0] != partition.key}
        if lost:
            self._moving.discard(partition.key)
            self._watcher.revoked(partition, lost=True)
        if partition.key not in self._moving:
            _LOG.info("partition %s is %s", partition.key, "lost" if lost else "given back")

    def _follow_brokers(self, now: float) -> None:
        """Look whether brokers that packs are read from have other addresses by now, under the same names."""
        if now < self._follow_due:
            return
        self._follow_due = now + _FOLLOW_S
        used: dict[Address, list[int]] = {}
        for number, partition in self._partitions.items():
            used.setdefault(Address(partition.broker.host, partition.broker.port), []).append(number)
        self._peers = {address: peer for address, peer in self._peers.items() if address in used}
        for address, numbers in used.items():
            with contextlib.suppress(OSError):  # the last known address stays
                peer = self._peer(address, now)
                if peer is None or peer == self._peers.get(address):
                    continue
                self._peers[address] = peer
                _LOG.info("broker %s is at %s now", peer[0], peer[1])
                for number in numbers:
                    self._core.follow(number, peer)

    def _follow_rules(self) -> None:
        if self._rules == self.member.rules:
            return
        self._rules = dict(self.member.rules)
        for whose in self._valid:
            try:
                self._valid[whose] = read_flow_rules(self._rules.get(whose, ""))
            except ValueError as error:
                _LOG.warning("new flow rules of the %s are not followed, the ones before stay: %s", whose, error)
        self._core.rules(self._valid["group"], self._valid["cluster"])

    # --- events

    def take(self, event: tuple[str, int, int, int, bytes, bytes], now: float) -> None:
        """Take an event of the core."""
        kind, number, code, detail, data, trace = event
        if kind == "answer":
            self._answered(number, code, data, trace, now)
        elif kind == "fault":
            self._calls.pop(number, None)
            self.member.failed(number, Fault(call_fault_text(code, detail), sent=code != _CONNECT), now)
        elif number not in self._partitions:
            return  # of a partition that was dropped meanwhile
        elif kind == "released":
            key = self._partitions[number].key
            self._forget(number, lost=False)
            self.member.released(key, False, now)
        elif kind == "lost":
            key = self._partitions[number].key
            self._forget(number, lost=True)
            self.member.lost(key, code, now)
        elif kind == "broken":
            self._tell_broken(self._partitions[number], code, detail, now)
        else:
            self._tell(self._partitions[number].key, code, data, now)

    def _answered(self, number: int, status: int, data: bytes, trace: bytes, now: float) -> None:
        name = self._calls.pop(number)
        if status:
            exception = data.decode("utf-8", "replace")
            text = f"{exception}: {trace.decode('utf-8', 'replace')}"
            self.member.failed(number, Fault(foreign(text), exception.rpartition(".")[2].rpartition("$")[2]), now)
            return
        answer = read_message(_BY_NAME[name].answer, data)
        if answer is None:
            self.member.failed(number, Fault(f"the answer to {name} is broken"), now)
        else:
            self.member.answered(number, answer, now)

    def _tell(self, key: str, code: int, text: bytes, now: float) -> None:
        if self._is_new(key, code, now):
            _LOG.warning(
                "a broker gives no pack of %s, code %d: %s", key, code, foreign(text.decode("utf-8", "replace"))
            )

    def _tell_broken(self, partition: Partition, fault: int, detail: int, now: float) -> None:
        broker = partition.broker
        if self._is_new(f"{broker.host}:{broker.port}", fault, now):  # once for all partitions that it has
            _LOG.warning(
                "broker %s:%d has not answered about partition %s: %s", broker.host, broker.port, partition.key,
                call_fault_text(fault, detail),
            )  # fmt: skip

    def _tell_untaken(self, order: Untaken, now: float) -> None:
        partition, code = order.partition, order.code
        broker = partition.broker
        # Of a broker that does not answer once for all its partitions: there may be thousands.
        what = partition.key if code else f"{broker.host}:{broker.port}"
        if self._is_new(what, -code, now):
            why = _UNTAKEN.get(code, f"it answers with code {code}")
            _LOG.warning(
                "broker %s:%d does not give partition %s: %s%s", broker.host, broker.port, partition.key, why,
                f": {order.why}" if order.why else "",
            )  # fmt: skip

    def _tell_trouble(self, now: float) -> None:
        """Say that no master has given a good answer for a while: nothing else shows that no packs will come."""
        since, fault = self.member.troubled, self.member.trouble
        if since is None or fault is None or now < max(since + _PATIENT_S, self._trouble_due):
            return
        self._trouble_due = now + _MINUTE_S
        _LOG.warning(
            "no master has given a good answer for %.0f s, they are asked again and again: %s", now - since, fault.text
        )

    def _is_new(self, what: str, code: int, now: float) -> bool:
        """Return whether this was not told a moment ago."""
        new = now - self._told.get((what, code), -_QUIET_S) >= _QUIET_S
        if new:
            self._told[what, code] = now
        return new


def call_fault_text(code: int, detail: int) -> str:
    """Return why a call has no answer, by the numbers of its event."""
    if detail > TLS_FIRST:
        return f"TLS: {why(CE_CONNECT_FAILED, detail, '').replace('tcp://', 'tubemq://')}"
    if code == _CONNECT:
        return f"no connection: {os.strerror(detail) if detail > 0 else f'TLS fault {detail}'}"
    text = _FAULTS.get(code, f"fault {code}")
    return f"{text}: {os.strerror(detail)}" if detail > 0 else text
