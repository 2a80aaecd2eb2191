"""A member of a consumer group: who else is there, which queues it has, and the locks of orderly groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from dataproxy.errors import DataProxyError, DiscoveryError
from dataproxy.logs import logger
from dataproxy.rocketmq.group.offsets import Offsets, QueueEnds
from dataproxy.rocketmq.group.pushed import refusal_of_filters, refusal_of_push
from dataproxy.rocketmq.group.reader import QueueReader
from dataproxy.rocketmq.group.shares import average
from dataproxy.rocketmq.network.client import Client
from dataproxy.rocketmq.network.connections import answer_fault
from dataproxy.rocketmq.network.target import Address
from dataproxy.wire.rocketmq.bodies import (
    ConsumeFrom,
    ConsumerData,
    ConsumerIds,
    ConsumeType,
    MessageModel,
    Subscription,
)
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.headers import ConsumerOf, header_fields
from dataproxy.wire.rocketmq.names import RETRIES
from dataproxy.wire.rocketmq.queues import LockRequest, Queue, read_locked

__all__ = ["Begin", "Member"]

_LOG: Final = logger("rocketmq")
_REBALANCE_S: Final = 20.0
_COMMIT_S: Final = 5.0
_LOCK_S: Final = 20.0
_LOCK_VALID_S: Final = 30.0
_AGAIN_S: Final = 1.0
Begin = str | int  #: ``first``, ``last``, or a time in ms since 1970


class Member:
    """Divide queues, and read those that are this member's.  Thread: the keeper, unless a method says otherwise."""

    def __init__(
        self,
        client: Client,
        group: str,
        subscriptions: Mapping[str, Subscription],
        *,
        push: bool,
        pushed: bool = False,
        broadcasting: bool,
        orderly: bool,
        begin: Begin,
        offsets: Offsets,
        make_reader: Callable[[Queue, Subscription, int], QueueReader],
        leave: Callable[[QueueReader], bool],
        stay: Callable[[QueueReader], None] = lambda _reader: None,
    ) -> None:
        self.group, self.subscriptions = group, dict(subscriptions)
        self.readers: dict[Queue, QueueReader] = {}
        self.divided = False
        self.leaving = False  # it takes no more queues; whoever closes sets it
        self.consume_type = ConsumeType.SERVER_PUSH if pushed else ConsumeType.PUSH if push else ConsumeType.PULL
        self._client, self._broadcasting, self._orderly = client, broadcasting, orderly
        self._begin, self._offsets, self._make_reader, self._leave = begin, offsets, make_reader, leave
        self._stay = stay
        self.on_divided: Callable[[bool], None] = lambda _good: None  # whether all is as it should be
        #: There is no member: brokers do not push, or (True) cannot read an expression.
        self.on_refused: Callable[[str, bool], None] = lambda _why, _pushes: None
        self._ends = QueueEnds(client)
        self._written: dict[Queue, int] = {}
        self._over = False
        self._chosen: frozenset[Queue] | None = None  # by a caller, who is no member then
        self._pushed = pushed
        self._admitted = not pushed  # else it has to be asked first whether brokers push
        self._refused = False  # one does not, or cannot
        self._asked: set[Address] = set()  # brokers that push
        self._troubles: dict[str, str] = {}  # by topic; "": of all
        self._claimed: frozenset[Queue] | None = frozenset()  # queues that hubs were told to push, None: not all heard
        self._begins: dict[Queue, int] = {}  # where these began
        self._unread: set[Queue] = set()  # of which a broker was asked for the lock, and may have given it
        client.consumer, client.admits = self.data, self._may_hear
        client.on_routes = lambda _topics: client.keeper.soon(self.rebalance)

    @property
    def trouble(self) -> str:
        """Return why there are no queues, or not all, or no messages; empty without a known reason.  Any thread."""
        unheard = self._client.unheard if self._pushed else ""
        refused = [reader.refused for reader in list(self.readers.values())]
        return "; ".join(dict.fromkeys(filter(None, [*list(self._troubles.values()), unheard, *refused])))

    def start(self) -> None:
        """Begin: join the group and take queues.  Any thread."""
        keeper = self._client.keeper
        keeper.soon(self._join)
        keeper.every(_REBALANCE_S, self.rebalance)
        keeper.every(_COMMIT_S, self.commit)
        if self._orderly and not self._broadcasting:
            keeper.every(_LOCK_S, self._renew_locks)

    def data(self, broker: str) -> ConsumerData | None:
        """Return what a heartbeat says of this member to a broker.  Any thread."""
        if self._over or self._chosen is not None or not self._admitted:
            return None
        wanted = tuple(self._claim(one, broker) if self._pushed else one for one in self.subscriptions.values())
        begin = {"first": ConsumeFrom.FIRST, "last": ConsumeFrom.LAST}.get(str(self._begin), ConsumeFrom.TIMESTAMP)
        return ConsumerData(
            self.group,
            self.consume_type,
            MessageModel.BROADCASTING if self._broadcasting else MessageModel.CLUSTERING,
            begin,
            wanted,
        )

    def _claim(self, wanted: Subscription, broker: str) -> Subscription:
        """Return what is wanted of a topic, with the queues that a broker is to push."""
        begins: dict[int, int] = {}
        for queue, reader in list(self.readers.items()):
            if (queue.broker_name, queue.topic) == (broker, wanted.topic) and not reader.parked:
                begins[queue.queue_id] = self._begins.get(queue, 0)
                if self._broadcasting:  # nobody else knows where it is
                    with reader.lock:
                        begins[queue.queue_id] = reader.backlog.done
        return msgspec.structs.replace(wanted, queue_id_set=tuple(sorted(begins)), queue_offset_table=begins)

    def rejoin(self) -> None:
        """Connect again to hubs whose connections have ended, for sessions end with them; a heartbeat follows."""
        if self._over:
            return
        again = False
        for address in [one for places in self._client.routes.brokers().values() for one in places.values()]:
            try:
                self._client.connections.open(address)
            except DataProxyError as error:
                if error.fatal:
                    return
                again = True
        if again:
            self._client.keeper.soon(self.rejoin, _AGAIN_S)

    def choose(self, queues: Mapping[Queue, int | None]) -> None:
        """Read these queues and no others, from these offsets (None: the group's), without the group's division."""
        starts = {
            queue: self._start(queue) if offset is None else offset
            for queue, offset in queues.items()
            if queue not in self.readers
        }  # before anything changes: a broker may not say it
        self._chosen = frozenset(queues)
        for queue in [one for one in self.readers if one not in queues]:
            self._give_back(queue)
        for queue, offset in queues.items():
            if queue in starts:
                self._add(queue, starts[queue])
            elif offset is not None:
                self.readers[queue].seek(offset)
        self.divided = True

    def _join(self) -> None:
        if self._over:
            return
        try:
            self._client.learn_brokers()
            self._troubles[""] = ""
        except DiscoveryError as error:
            self._troubles[""] = error.message
        for topic in self.subscriptions:
            try:
                self._client.find(topic)
            except DiscoveryError as error:
                self._troubles[""] = error.message
                self._client.keeper.soon(self._join, _AGAIN_S)
                self._client.warnings.warning("%s", error.message)
                return
        self._troubles[""] = ""
        if self._chosen is None:
            if not self._admitted and not self._admit():
                return
            self._client.heartbeat()
            self.rebalance()

    def _admit(self) -> bool:
        """Ask whether queues can be pushed; without a broker that can be asked this is done again."""
        brokers = self._client.routes.brokers()
        if not brokers:
            for topic in self.subscriptions:
                self._tell_missing(topic)
            self._client.keeper.soon(self._join, _AGAIN_S)
            return False
        try:
            for name, places in brokers.items():
                for address in places.values():
                    if not self._may_hear(name, address):
                        return False
        except DataProxyError as error:
            self._troubles[""] = error.message
            if not error.fatal:
                self._client.keeper.soon(self._join, _AGAIN_S)
            return False
        self._admitted = True
        return True

    def _may_hear(self, name: str, address: Address) -> bool:
        """Return whether a broker may hear of this member: it pushes what is wanted, or need not.  A no is final.

        Raises DataProxyError.
        """
        if not self._pushed or address in self._asked:
            return True
        refusal = refusal_of_push(self._client, self.group, name, address)
        pushes = not refusal
        if pushes:
            refusal = refusal_of_filters(self._client, self.group, self.subscriptions.values(), address)
        if not refusal:
            self._asked.add(address)
            return True
        self._admitted, self._refused = False, True
        self._troubles[""] = refusal
        _LOG.error("%s", refusal)
        self.on_refused(refusal, pushes)
        return False

    def _tell_missing(self, topic: str) -> None:
        if not topic.startswith(RETRIES) and self._client.routes.known(topic) is None:
            self._troubles[topic] = f"topic {topic!r} does not exist"

    def rebalance(self) -> None:
        """Divide the queues anew; a member that leaves only gives back."""
        if self._over or self._chosen is not None or not self._admitted:
            return
        if self.leaving:
            self._give_back_all()
            return
        again = False
        for topic, subscription in self.subscriptions.items():
            try:
                again |= not self._divide(topic, subscription)
            except DataProxyError as error:
                if error.fatal:
                    return
                self._troubles[topic] = error.message
                self._client.warnings.warning("queues of topic %r: %s", topic, error.message)
                again = True
        self.divided = True
        if self._pushed and self._claimed != self._claims() and self.claim():
            again |= bool(self._client.unheard)
        if self._refused:  # by a broker that is new
            return
        self.on_divided(not again)
        if again:
            self._client.keeper.soon(self._again, _AGAIN_S)

    def _give_back_all(self) -> None:
        """Give back the queues that can be."""
        for queue in list(self.readers):
            self._give_back(queue)
        if self._pushed and self._claimed != self._claims():
            self.claim()

    def _claims(self) -> frozenset[Queue]:
        return frozenset(queue for queue, reader in self.readers.items() if not reader.parked)

    def claim(self, to: Collection[Address] | None = None) -> frozenset[Address]:
        """Tell hubs which queues they are to push: ``to`` these, None: all.  Returns those that have not heard it."""
        claims = self._claims()
        untold = self._client.heartbeat(to)
        self._claimed = None if untold or to is not None else claims
        return untold

    def _again(self) -> None:
        self.rebalance()

    def _divide(self, topic: str, subscription: Subscription) -> bool:
        """Divide the queues of a topic; False: not all is as it should be."""
        route = self._client.routes.known(topic)
        if route is None:
            self._client.find(topic)
            route = self._client.routes.known(topic)
        if route is None:
            self._tell_missing(topic)
            return topic.startswith(RETRIES)
        queues = sorted(route.readable)
        mine: list[Queue] | None = queues
        if not self._broadcasting:
            members = self._members(topic, [one.broker_name for one in queues])
            mine = None if members is None else average(queues, members, self._client.id)
            if mine is None:
                self._client.heartbeat()
                return False
        assert mine is not None
        good = True
        for queue in [one for one in self.readers if one.topic == topic and one not in mine]:
            good &= self._give_back(queue)
        for queue in mine:
            if queue in self.readers and self.readers[queue].paused:
                self._stay(self.readers[queue])
        self._unlock([one for one in self._unread if one.topic == topic and one not in mine])
        new = [queue for queue in mine if queue not in self.readers]
        if self._orderly and not self._broadcasting and new:
            locked = self._lock(new)
            good &= len(locked) == len(new)
            new = locked
        trouble = ""
        for queue in new:
            if self.leaving:
                break
            try:
                self._add(queue, self._start(queue))
            except DataProxyError as error:
                if error.fatal:
                    raise
                trouble, good = error.message, False
        self._troubles[topic] = trouble
        return good

    def _members(self, topic: str, brokers: list[str]) -> list[str] | None:
        """Return the ids of all members, in order; None: no broker knows."""
        for broker in dict.fromkeys(brokers):
            address = self._client.routes.address(broker)
            if address is None:
                continue
            fields = header_fields(ConsumerOf(self.group))
            try:
                answer = self._client.connections.call(address, Code.GET_CONSUMER_LIST_BY_GROUP, fields)
            except DataProxyError as error:
                if error.fatal:
                    raise
                self._client.warnings.warning("members of group %r: %s", self.group, error.message)
                continue  # another broker knows them, too
            if answer.code == Answer.SUCCESS:
                return sorted(ConsumerIds.read(answer.body).consumer_id_list)
        return None

    def _add(self, queue: Queue, offset: int) -> None:
        subscription = self.subscriptions.get(queue.topic, Subscription(queue.topic))
        reader = self._make_reader(queue, subscription, offset)
        if self._orderly:
            reader.locked_until = time.monotonic() + _LOCK_VALID_S
        self._begins[queue] = offset
        self.readers[queue] = reader
        self._unread.discard(queue)
        _LOG.info("%r is read from offset %d", reader, offset)
        reader.pull()

    def _give_back(self, queue: Queue) -> bool:
        """Give a queue back, with its offset; False: it is still worked on, and stays for a moment."""
        reader = self.readers[queue]
        if not self._leave(reader):
            return False
        del self.readers[queue]
        self._part(reader)
        return True

    def _start(self, queue: Queue) -> int:
        """Return where to begin.  Raises DataProxyError."""
        found = self._offsets.read(queue)
        if found is not None:
            return found
        if queue.topic.startswith(RETRIES):
            return 0
        if self._begin == "first":
            return self._ends.first(queue)
        if self._begin == "last":
            return self._ends.last(queue)
        return self._ends.at(queue, int(self._begin))

    def commit(self) -> None:
        """Write the offsets that have changed; to a hub that pushes this is an acknowledgement."""
        if self._pushed and self._broadcasting:  # whose offsets are kept elsewhere
            for reader in list(self.readers.values()):
                reader.report()
        moved = {}
        for queue, reader in list(self.readers.items()):
            if reader.parked:
                continue  # no session says that the group was moved meanwhile; its confirms have told what is done
            done = self._done(reader)
            if done is not None and self._written.get(queue) != done:
                moved[queue] = done
        self._write(moved)

    def _done(self, reader: QueueReader) -> int | None:
        """Return the offset to write for a queue; None: a caller who polls has not said that anything is done."""
        with reader.lock:
            polled = self.consume_type is ConsumeType.PULL and not reader.backlog.finished
            return None if polled else reader.backlog.done

    def _part(self, reader: QueueReader, *, unlock: bool = True) -> None:
        """Drop a queue, and write its offset; with ``unlock`` other members may have it at once."""
        reader.drop()
        done = self._done(reader)
        self._write({} if done is None else {reader.queue: done})
        self._written.pop(reader.queue, None)
        self._begins.pop(reader.queue, None)
        if unlock and self._orderly and not self._broadcasting:
            self._unlock([reader.queue])
        _LOG.info("%r is given back, at offset %s", reader, done)

    def _write(self, offsets: Mapping[Queue, int]) -> None:
        if not offsets:
            return
        try:
            self._offsets.write(offsets)
            self._written |= offsets
        except (DataProxyError, OSError) as error:
            self._client.warnings.warning("offsets of group %r were not written: %s", self.group, error)

    def _lock(self, queues: list[Queue]) -> list[Queue]:
        """Return those of the queues that this member alone may read now."""
        found: list[Queue] = []
        for broker in dict.fromkeys(one.broker_name for one in queues):
            address = self._client.routes.address(broker)
            if address is None:
                continue
            wanted = tuple(one for one in queues if one.broker_name == broker)
            body = LockRequest(self._client.id, self.group, wanted).write()
            self._unread.update(one for one in wanted if one not in self.readers)
            try:
                answer = self._client.connections.call(address, Code.LOCK_BATCH_MQ, {}, body, 1.0)
                if answer.code != Answer.SUCCESS:
                    raise answer_fault(address, "a lock of queues", answer)
                locked = [one for one in read_locked(answer.body) if one in wanted]
                self._unread.difference_update(one for one in wanted if one not in locked)
                found += locked
            except DataProxyError as error:  # the other brokers' queues do not suffer from it
                if error.fatal:
                    raise
                self._client.warnings.warning("queues of broker %r were not locked: %s", broker, error.message)
        return found

    def _unlock(self, queues: list[Queue]) -> None:
        """Let other members have queues; a broker reads this behind the request for a lock that it has not answered."""
        self._unread.difference_update(queues)
        for broker in dict.fromkeys(one.broker_name for one in queues):
            address = self._client.routes.address(broker)
            if address is None:
                continue
            given = tuple(one for one in queues if one.broker_name == broker)
            try:
                body = LockRequest(self._client.id, self.group, given).write()
                self._client.connections.tell(address, Code.UNLOCK_BATCH_MQ, {}, body)
            except DataProxyError as error:
                _LOG.info("queues stay locked until their time is over: %s", error.message)

    def _renew_locks(self) -> None:
        queues = list(self.readers)
        try:
            for queue in self._lock(queues) if queues else ():
                reader = self.readers.get(queue)
                if reader is not None:
                    reader.locked_until = time.monotonic() + _LOCK_VALID_S
        except DataProxyError as error:
            self._client.warnings.warning("locks of queues were not renewed: %s", error.message)

    def reset(self, offsets: Mapping[Queue, int]) -> None:
        """Go on at these offsets, which are written at once; queues of others are left aside."""
        own = {queue: offset for queue, offset in offsets.items() if queue in self.readers}
        for queue, offset in own.items():
            _LOG.warning("%r: its offset was reset to %d", self.readers[queue], offset)
            self.readers[queue].seek(offset)
        self._write(own)

    def leave(self) -> None:
        """Write offsets, give all queues back, and leave the group.

        An orderly queue that a listener still works on stays locked, until the broker's time for that is over; then the
        end of the connection tells that the member is gone, as a hub frees all that a member has that takes its leave.
        A queue that was asked for and is not read is unlocked: the broker may have given it.
        """
        self._over = True
        keeps = False
        for queue in list(self.readers):
            reader = self.readers.pop(queue)
            left = self._leave(reader)
            keeps |= not left and not self._broadcasting
            self._part(reader, unlock=left)
        self._unlock(sorted(self._unread))
        self._client.unregister("" if keeps else self.group)
