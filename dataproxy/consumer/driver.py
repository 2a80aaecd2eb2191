"""The thread that drives a member: it turns what a member asks into calls, and their ends into the member's.

Threads.  ``run`` is the body of one thread, and all methods without a word about threads belong to it.  The compiled
loop makes the calls and reads the packs; the application meets it alone, not the driver.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any, Final

from dataproxy.consumer.group.asking import Address, Ask, Drop, Fault, Hold, Refusal, Release
from dataproxy.consumer.group.member import Life, Member
from dataproxy.lasterror import why
from dataproxy.logs import logger
from dataproxy.numbers import CE_CONNECT_FAILED, TLS_FIRST
from dataproxy.wire.tubemq.calls import METHODS
from dataproxy.wire.tubemq.flow import FlowRules, read_flow_rules
from dataproxy.wire.tubemq.reading import read_message

if TYPE_CHECKING:
    from dataproxy._core.consumer.core import ConsumerCore
    from dataproxy.consumer.names import Names
    from dataproxy.wire.tubemq.texts import Partition

__all__ = ["Driver", "Watcher", "call_fault_text"]

_LOG: Final = logger("consumer")
_MASTER, _READ = 1, 2
_BY_NAME: Final = {one.request: one for one in METHODS.values()}
_SERVICE: Final = {name: _READ if name.endswith("C2B") else _MASTER for name in _BY_NAME}
_LONGEST_S: Final = 60.0
_QUIET_S: Final = 10.0  # between two log records about the same broker's refusals
_CONNECT, _LOST, _TIMEOUT, _PROTOCOL, _CLOSED, _MEMORY = range(1, 7)
_FAULTS: Final = {
    _LOST: "the connection ended",
    _TIMEOUT: "no answer in time",
    _PROTOCOL: "the answer is none of TubeMQ's protocol",
    _CLOSED: "the consumer was closed",
    _MEMORY: "no memory for the call",
}


class Watcher:
    """What a driver tells its consumer; each method is called on the driver's thread and must not wait."""

    def assigned(self, partition: Partition, number: int) -> None:
        """Take the news that packs of a partition are read from now on."""

    def revoked(self, partition: Partition, number: int, *, lost: bool) -> None:
        """Take the news that no more packs of a partition are given out; ``lost``: nothing can be confirmed."""

    def refused(self, refusal: Refusal | None) -> None:
        """Take a master's refusal of this member, or None: it is a member now."""

    def failed(self, error: Exception) -> None:
        """Take the error that ends the driver."""

    def gone(self) -> None:
        """Take the end of the driver."""


class Driver:
    """Drive a member until it is gone."""

    def __init__(
        self,
        core: ConsumerCore,
        member: Member,
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
        self._told: dict[tuple[str, int], float] = {}
        self._closing = False  # plain values: a finalizer sets them, which may run inside of any lock
        self._abandoned = False
        self._was_member = False

    def close(self) -> None:
        """Let the member leave its group.  Any thread."""
        self._closing = True
        self._core.wake()

    def abandon(self) -> None:
        """Let the thread end, whatever the member still waits for, and the loop with it.  Any thread."""
        self._abandoned = True
        self._core.wake()

    def run(self) -> None:
        """Work until the member is gone; then the loop ends."""
        try:
            self.member.start(time.monotonic())
            while not self._is_gone() and not self._abandoned:
                self._turn()
        except Exception as error:  # noqa: BLE001 - the application gets it
            _LOG.log(logging.CRITICAL, "a consumer stops, because it met an error of its own", exc_info=True)
            self._watcher.failed(error)
        finally:
            self._core.stop()
            self._watcher.gone()

    def _is_gone(self) -> bool:
        return self.member.life is Life.GONE

    def _turn(self) -> None:
        now = time.monotonic()
        if self._closing:
            self.member.close(now)
        for order in self.member.poll(now, int(time.time() * 1000)):
            self._obey(order, now)
        if self._is_gone():
            return  # nothing more comes that would end the wait below
        self._ask_waiting(now)
        self._follow_rules()
        is_member = self.member.life is Life.MEMBER
        if is_member and not self._was_member:
            self._watcher.refused(None)
        self._was_member = is_member
        pause = 0.1 if self._waiting else _LONGEST_S
        for event in self._core.events(min(max(self.member.due() - now, 0.0), pause)):
            self._take(*event)

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
        elif isinstance(order, Refusal):
            _LOG.error("the master refuses this consumer with code %d: %s", order.code, order.text)
            self._watcher.refused(order)

    def _peer(self, address: Address, now: float) -> tuple[str, str, int, str] | None:
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
                self.member.failed(ask.number, Fault(str(error)), now)
                continue
            if peer is not None:
                method = _BY_NAME[ask.name]
                self._calls[ask.number] = ask.name
                request = ask.message.SerializeToString()
                self._core.call(ask.number, peer, _SERVICE[ask.name], method.number, request, ask.timeout_s)
            elif now >= until:
                self.member.failed(ask.number, Fault(f"the look-up of {ask.address.host!r} takes too long"), now)
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
        self._numbers[partition.key], self._partitions[self._next] = self._next, partition
        filters = [item.encode() for item in self._items.get(partition.topic, ())]
        self._core.hold(self._next, peer, partition.topic, partition.id, partition.key, order.offset, filters)
        _LOG.info("partition %s is read from offset %d", partition.key, order.offset)
        self._watcher.assigned(partition, self._next)

    def _release(self, order: Release, now: float) -> None:
        number = self._numbers.get(order.partition.key)
        if number is None:
            self.member.released(order.partition.key, False, now)
            return
        self._watcher.revoked(order.partition, number, lost=False)
        self._core.release(number, max(order.until - now, 0.0))

    def _forget(self, number: int, *, lost: bool) -> None:
        partition = self._partitions.pop(number)
        if self._numbers.get(partition.key) == number:
            del self._numbers[partition.key]
        self._core.forget(number)
        self._told = {known: when for known, when in self._told.items() if known[0] != partition.key}
        _LOG.info("partition %s is %s", partition.key, "lost" if lost else "given back")
        if lost:
            self._watcher.revoked(partition, number, lost=True)

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

    def _take(self, kind: str, number: int, code: int, detail: int, data: bytes, trace: bytes) -> None:
        now = time.monotonic()
        if kind == "answer":
            self._answered(number, code, data, trace, now)
        elif kind == "fault":
            self._calls.pop(number, None)
            self.member.failed(number, Fault(call_fault_text(code, detail)), now)
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
        else:
            self._tell(self._partitions[number].key, code, data, now)

    def _answered(self, number: int, status: int, data: bytes, trace: bytes, now: float) -> None:
        name = self._calls.pop(number)
        if status:
            exception = data.decode("utf-8", "replace")
            text = f"{exception}: {trace.decode('utf-8', 'replace')}"
            self.member.failed(number, Fault(text, exception.rpartition(".")[2].rpartition("$")[2]), now)
            return
        answer = read_message(_BY_NAME[name].answer, data)
        if answer is None:
            self.member.failed(number, Fault(f"the answer to {name} is broken"), now)
        else:
            self.member.answered(number, answer, now)

    def _tell(self, key: str, code: int, text: bytes, now: float) -> None:
        last = self._told.get((key, code), -_QUIET_S)
        if now - last >= _QUIET_S:
            self._told[key, code] = now
            _LOG.warning("a broker gives no pack of %s, code %d: %s", key, code, text.decode("utf-8", "replace")[:200])


def call_fault_text(code: int, detail: int) -> str:
    """Return why a call has no answer, by the numbers of its event."""
    if detail > TLS_FIRST:
        return f"TLS: {why(CE_CONNECT_FAILED, detail, '').replace('tcp://', 'tubemq://')}"
    if code == _CONNECT:
        return f"no connection: {os.strerror(detail) if detail > 0 else f'TLS fault {detail}'}"
    text = _FAULTS.get(code, f"fault {code}")
    return f"{text}: {os.strerror(detail)}" if detail > 0 else text
