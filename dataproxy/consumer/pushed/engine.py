"""A member of a group to which a hub pushes, with the names that a consumer calls its core and its driver by."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dataproxy._core.consumer.pushedpack import CONFIRMED, EXPIRED, ask_end, is_of
from dataproxy.consumer.group.asking import EARLIEST, LATEST, Refusal, Reply
from dataproxy.consumer.outcomes import BAD_FILTER, CLOSED, NO_PUSH, RENEWED, REVOKED, SOUGHT, UNANSWERED
from dataproxy.consumer.places import no_choice
from dataproxy.consumer.pushed.options import check_options, target_of, tls_of, wanted_of
from dataproxy.consumer.pushed.packs import Out, Packs
from dataproxy.consumer.pushed.reader import PackReader
from dataproxy.errors import ClosedError, DataProxyError, ForkedError
from dataproxy.process.changes import Asked
from dataproxy.rocketmq.group.member import Member
from dataproxy.rocketmq.group.offsets import BrokerOffsets, QueueEnds
from dataproxy.rocketmq.group.pushed import serve_pushes
from dataproxy.rocketmq.group.reader import Bounds, QueueReader
from dataproxy.rocketmq.group.served import serve
from dataproxy.rocketmq.network.client import Client
from dataproxy.rocketmq.network.connections import Answered
from dataproxy.rocketmq.sending.messages import check_group
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.headers import UpdateOffset, header_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataproxy._core.consumer.pack import Pack
    from dataproxy.config import ConsumerConfig
    from dataproxy.consumer.state import ConsumerState
    from dataproxy.rocketmq.group.backlog import Chunk
    from dataproxy.rocketmq.network.target import Address
    from dataproxy.wire.rocketmq.bodies import Subscription
    from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["PushedEngine"]

_ALL: Final = 1 << 30  # messages of a frame, which are one pack
_ANSWER_S: Final = 5.0
_AGAIN_S: Final = 1.0
_BUSY_S: Final = 0.05
_REJOIN_S: Final = 0.2
_PATIENCE_S: Final = 0.3  # of a member, for a connection
_BEGINS: Final = {"earliest": "first", "latest": "last"}


class _Confirm(Answered):
    """A commit that a pack's outcome waits for.  Thread: the one that reads."""

    __slots__ = ("engine", "offset", "out")

    def __init__(self, engine: PushedEngine, out: Out, offset: int) -> None:
        self.engine, self.out, self.offset = engine, out, offset

    def _answered(self, answer: Any) -> None:
        self.engine._confirmed(self.out, self.offset, answer)

    def _lost(self, error: DataProxyError) -> None:
        self.engine._packs.end(self.out, EXPIRED, UNANSWERED)


class PushedEngine:
    """Take part in a group, and hand out what hubs push.  Any thread, unless a method says otherwise.

    Raises ConfigError, InvalidMessageError.
    """

    offset_unit: Final = 1  #: of offsets, for one message
    server: Final = "broker"  #: by whom a member is taken

    def __init__(self, config: ConsumerConfig, state: ConsumerState, *, awaited: bool) -> None:
        check_options(config)
        group = check_group(config.group)
        wanted = wanted_of(config, time.time_ns() // 1_000_000)
        self._state, self._release_s, self._call_s = state, config.release_wait, config.call_timeout
        self._packs = Packs(
            config.confirm_timeout, awaited=awaited, on_end=self._settled,
            on_due=lambda seconds: self._client.connections.later(seconds, self._packs.expire_late),
        )  # fmt: skip
        self._readers: dict[int, PackReader] = {}
        self._numbers = iter(range(1, 1 << 62))
        self._broken = 0  # messages of queues that were given back
        self._seeks: set[Future[Reply]] = set()
        self._left_at: float | None = None
        self._unheard: set[Address] = set()  # hubs that have not heard that queues are to go on; thread: the keeper
        self._closing = self._over = False
        self._ending = threading.RLock()
        self._client = Client(
            target_of(config), instance="", connect_s=config.connect_timeout, call_s=config.call_timeout,
            stream=False, at_exit=_nothing, tls=tls_of(config),
        )  # fmt: skip
        with self._client.made_whole():
            self._offsets, self._ends = BrokerOffsets(self._client, group), QueueEnds(self._client)
            self._make = partial(
                PackReader, self._client, group, bounds=Bounds(_ALL, _ALL, _ALL), sink=self, commits=True
            )  # fmt: skip
            self._member = Member(
                self._client, group, wanted, push=True, pushed=True, broadcasting=False, orderly=False,
                begin=_BEGINS[config.start], offsets=self._offsets, make_reader=self._make_reader, leave=self._leave,
                stay=self._stay,
            )  # fmt: skip
            self._member.on_divided = self._divided
            self._member.on_refused = lambda why, pushes: state.refused(Refusal(BAD_FILTER if pushes else NO_PUSH, why))
            self._client.on_failed = self._failed
            self._client.on_parted = lambda _address, _error: self._client.keeper.soon(self._member.rejoin, _REJOIN_S)
            serve(self._client, self._member, None, lambda _run: None)
            serve_pushes(self._client, self._member)
            self._member.start()

    # --- what a consumer calls its core by

    @property
    def client_id(self) -> str:
        """Return the name by which brokers know this consumer."""
        return self._client.id

    @property
    def threads(self) -> tuple[threading.Thread, ...]:
        """Return the threads of the client."""
        return self._client.connections._thread, self._client.keeper._thread

    @property
    def inherited(self) -> bool:
        """Tell whether it was made before a fork."""
        return self._client.inherited

    def check_own(self) -> None:
        """Raise ForkedError in a forked child: threads and connections belong to the parent."""
        if self._client.inherited:
            raise ForkedError(
                "this consumer was opened before the process was forked; its threads, connections and partitions "
                "belong to the parent",
                hint="open one in the child process",
            )

    @property
    def ended(self) -> bool:
        """Tell whether no more packs will come, and none gets an outcome."""
        return self._over

    def take(self, consumer: object, seconds: float) -> Pack | None:
        """Return the next pack, None: none came within the time, or none will come.  Raises ForkedError."""
        self.check_own()
        return self._packs.take(consumer, seconds)

    def made_for(self, consumer: object, pack: object) -> bool:
        """Tell whether something is a pack that this consumer gave."""
        return is_of(pack, consumer)

    def end_pack(self, pack: Pack, consumed: bool) -> bool:
        """Ask for a pack's confirm, or give it back; False: this was done before."""
        self.check_own()
        if not ask_end(pack, consumed):
            return False
        if not consumed:
            self._packs.roll_back(pack)
            return True
        out = self._packs.begin_confirm(pack, self._call_s + _ANSWER_S)
        if out is not None:
            self._acknowledge(out)
        return True

    def _acknowledge(self, out: Out) -> None:
        """Tell the hub what is done of a pack's queue; the answer is the pack's outcome."""
        queue, connections = out.reader.queue, self._client.connections
        address = self._client.routes.address(queue.broker_name)
        link = None if address is None else connections.get(address)
        with out.reader.lock:  # a seek is before the frame or behind it: no older offset comes behind the new one
            if out.offset is None or not out.reader.is_current(out.waited.chunk):
                link = None
            if link is not None:
                at = out.reader.backlog.done  # of what was confirmed meanwhile, too
                header = UpdateOffset(self._member.group, queue.topic, queue.queue_id, at)
                request = _Confirm(self, out, at)
                connections.watch(request, self._call_s)
                try:
                    link.call(request, Code.UPDATE_CONSUMER_OFFSET, header_fields(header), b"")
                except ClosedError:
                    link = None
        if link is None:  # the session has ended
            self._packs.end(out, EXPIRED, RENEWED)
            return
        connections.look_by(request._until)
        connections.push(link)

    def _confirmed(self, out: Out, offset: int, answer: Any) -> None:
        """Take a hub's answer to a commit; one that is too busy is asked again.  Thread: the one that reads."""
        if answer.code == Answer.SUCCESS and out.is_behind(offset):
            self._packs.end(out, CONFIRMED)
        elif answer.code == Answer.SYSTEM_BUSY and time.monotonic() < out.until - _ANSWER_S:
            self._client.connections.later(_BUSY_S, lambda: self._acknowledge(out))
        else:
            self._packs.end(out, EXPIRED, answer.code or UNANSWERED)

    def wait_pack(self, pack: Pack, seconds: float) -> bool:
        """Wait for a pack's outcome; False: it has none yet."""
        return self._packs.wait(pack, seconds)

    def fileno(self) -> int:
        """Return the descriptor that can be read when there may be a pack, or an outcome."""
        return self._packs.fileno()

    def look(self) -> None:
        """Clear the descriptor, before packs and outcomes are looked for."""
        self._packs.look()

    def pause(self, number: int, paused: bool) -> None:
        """Let the hub push a queue no more, or again."""
        reader = self._readers.get(number)
        if reader is None:
            return
        reader.held_back = paused
        if paused and not reader.parked:
            self._park(reader)
        self._client.keeper.soon(self._settle_claims)

    def tally(self) -> dict[str, Any]:
        """Return the counts of messages and packs as a dictionary, all of one moment.  Raises ForkedError."""
        self.check_own()
        sent, read = self._client.connections.traffic()
        broken = self._broken + sum(one.broken for one in list(self._readers.values()))
        return self._packs.tally() | {
            "broken": broken, "filtered": 0, "empty": 0, "refused": 0, "sent_bytes": sent, "read_bytes": read,
            "connects": self._client.connections.connects,
        }  # fmt: skip

    def partitions(self) -> list[tuple[str, int, int, int]]:
        """Return (key, offset, end, -1) of each queue that is read; below 0: not known.  Raises ForkedError."""
        self.check_own()
        return [(one.key, *one.place(), -1) for one in list(self._readers.values())]

    def stop(self) -> None:
        """Let nobody wait for packs any more."""
        self._packs.stop()

    # --- what a consumer calls its driver by

    @property
    def stage(self) -> str:
        """Return where the member is: ``joining``, ``member``, ``leaving``, ``closed``."""
        if self._over:
            return "closed"
        if self._closing:
            return "leaving"
        return "member" if self._state.member.is_set() else "joining"

    @property
    def trouble(self) -> str:
        """Return why there are no queues, empty without a known reason."""
        return self._client.trouble or self._member.trouble

    def seek(self, key: str, offset: int) -> Asked[Reply]:
        """Read a queue from another place."""
        reply: Asked[Reply] = Asked()
        reply.set_running_or_notify_cancel()  # nobody who waits can take it back
        with self._ending:
            if self._over:
                reply.set_result(Reply(0, "gone"))
                return reply
            self._seeks.add(reply)
        self._client.keeper.soon(lambda: self._seek(key, offset, reply))
        return reply

    def assign(self, _starts: Mapping[str, int | None]) -> Asked[Reply]:
        """Raise LocalProtocolError: members divide queues among themselves."""
        raise no_choice()

    def close(self) -> None:
        """Let the member leave its group."""
        self._closing = self._member.leaving = True
        self._client.keeper.soon(self._go)

    def abandon(self) -> None:
        """End, whatever the member still waits for; this waits for nothing, as event loops need it."""
        self._end()

    # --- queues: the keeper's thread, unless a method says otherwise

    def _make_reader(self, queue: Queue, subscription: Subscription, offset: int) -> QueueReader:
        reader: PackReader = self._make(queue, subscription, offset)
        reader.number = next(self._numbers)
        self._readers[reader.number] = reader
        self._state.assigned(reader, reader.number, lambda _paused: None, moved=False)
        return reader

    def _chunk_size(self) -> int:
        """Return how many messages of a frame are one pack.  Thread: the one that reads."""
        return _ALL

    def _take(self, reader: QueueReader, chunks: list[Chunk]) -> None:
        """Take messages that came.  Thread: the one that reads."""
        assert isinstance(reader, PackReader)
        self._packs.put(reader, chunks)

    def _moved(self, reader: PackReader) -> None:
        """Let nothing of the place before count: a group was moved in a queue that no hub pushes now."""
        self._packs.close_queue(reader, EXPIRED)
        self._packs.expire(RENEWED, (reader,))

    def _divided(self, good: bool) -> None:
        """Take the news that queues were divided: from now on a hub that is away holds up nobody."""
        self._client.connections.patience_s = _PATIENCE_S
        if good and not self._state.member.is_set():
            self._state.refused(None)

    def _settled(self, reader: PackReader) -> None:
        """Go on with what has waited for the end of a pack.  Any thread."""
        soon = self._client.keeper.soon
        if self._closing:
            soon(self._go)
        elif reader.paused:
            soon(self._member.rebalance)
        elif reader.parked:
            soon(self._settle_claims)

    def _leave(self, reader: QueueReader) -> bool:
        """Return whether a queue can be given back: nothing of it is out, or `release_wait` is over."""
        assert isinstance(reader, PackReader)
        self._revoke(reader)
        if self._waits(reader.left_at, reader):
            return False
        self._packs.expire(REVOKED, (reader,))
        self._readers.pop(reader.number, None)
        self._broken += reader.broken
        return True

    def _waits(self, since: float, reader: PackReader | None = None) -> bool:
        """Return whether packs of a queue that is given up, or of all, may still be confirmed, or are just now."""
        out, confirming = self._packs.open_of(reader)
        gone = time.monotonic() - since
        return bool(out and gone < self._release_s) or bool(confirming and gone < self._call_s)

    def _revoke(self, reader: PackReader) -> None:
        """Give out nothing more of a queue."""
        if not reader.paused:
            reader.paused = True
            reader.left_at = time.monotonic()
            self._packs.close_queue(reader)
            self._state.revoked(reader, lost=False)

    def _stay(self, reader: QueueReader) -> None:
        """Go on with a queue that was to be given back; what was left aside comes by a new session."""
        if self._closing:
            return
        assert isinstance(reader, PackReader)
        reader.held_back = False
        self._park(reader)
        reader.paused = False
        self._state.assigned(reader, reader.number, lambda _paused: None, moved=False)
        self._client.keeper.soon(self._settle_claims)

    def _park(self, reader: PackReader, code: int | None = None) -> None:
        """Let a queue's session end; with ``code`` packs that are out expire.  Any thread."""
        reader.told, reader.parked = False, True
        self._packs.close_queue(reader)
        if code is not None:
            self._packs.expire(code, (reader,))

    def _settle_claims(self) -> None:
        """Tell hubs which queues are parked, then claim those again that are to go on; what they do not hear, again.

        A hub that is away holds up its own queues alone.
        """
        if self._over:
            return
        heard = False
        try:
            heard = self._claim()
        finally:
            if not heard:
                self._client.keeper.soon(self._settle_claims, _AGAIN_S)

    def _claim(self) -> bool:
        """Do so once, at each hub for itself; False: not all have heard it."""
        parked: dict[Address, list[PackReader]] = {address: [] for address in self._unheard}
        for reader in self._readers.values():
            if reader.parked:
                parked.setdefault(self._address(reader), []).append(reader)
        heard = [self._claim_at(one, parked[one]) for one in sorted(parked, key=self._client.is_away)]
        return all(heard)

    def _claim_at(self, address: Address, parked: list[PackReader]) -> bool:
        """Do so at one hub; False: it has not heard it."""
        new = [one for one in parked if not one.told]
        if new:
            if self._member.claim((address,)):
                return False
            for reader in new:
                reader.told = True
        again = [one for one in parked if not (one.held_back or one.paused or one.n_open)]
        for reader in again:
            reader.begin_anew()
            reader.parked = False
            if reader.held_back:  # since a moment: who has paused it may have seen it parked
                self._park(reader)
        if again or address in self._unheard:
            self._unheard.add(address)
            if self._member.claim((address,)):
                return False
            self._unheard.discard(address)
        return True

    def _address(self, reader: PackReader) -> Address:
        """Return where the hub of a queue is, which was known when the queue was taken."""
        found = self._client.routes.address(reader.queue.broker_name)
        assert found is not None, "what is known of a broker is never forgotten"
        return found

    def _seek(self, key: str, offset: int, reply: Future[Reply]) -> None:
        """Move the group to another place of a queue."""
        try:
            found = next((one for one in self._readers.values() if one.key == key and not one.paused), None)
            answer = Reply(0, "revoked") if found is None or self._closing else self._move(found, offset)
        except Exception as error:  # noqa: BLE001 - who waits for it gets it
            self._finish_seek(reply, error)
        else:
            self._finish_seek(reply, answer)
        self._settle_claims()

    def _move(self, reader: PackReader, offset: int) -> Reply:
        first, last = self._ends.first(reader.queue), self._ends.last(reader.queue)
        if offset > last:
            self._park(reader, SOUGHT)
            return Reply(0, "beyond", reader.backlog.done, last)
        place = {EARLIEST: first, LATEST: last}.get(offset, max(offset, first))
        self._park(reader, SOUGHT)
        reader.begin_anew()
        if self._member.claim((self._address(reader),)):
            raise DataProxyError(f"the broker could not be told of the seek of {reader.key}", retriable=True)
        reader.told = True
        self._offsets.set(reader.queue, place)
        reader.begin_anew(place)
        return Reply(0, "", place, last)

    def _finish_seek(self, reply: Future[Reply], found: Reply | Exception) -> None:
        with self._ending:
            if reply not in self._seeks:
                return
            self._seeks.discard(reply)
        if isinstance(found, Reply):
            reply.set_result(found)
        else:
            reply.set_exception(found)

    # --- ends

    def _go(self) -> None:
        """Leave the group: at once, or when what is out was confirmed, at most `release_wait` later."""
        if self._over:
            return
        now = time.monotonic()
        if self._left_at is None:
            self._left_at = now
            for reader in list(self._readers.values()):
                self._revoke(reader)
        if self._waits(self._left_at):
            gone = now - self._left_at
            self._client.keeper.soon(self._go, (self._release_s if gone < self._release_s else self._call_s) - gone)
            return
        try:
            self._member.leave()
        finally:
            self._end()

    def _failed(self, error: DataProxyError) -> None:
        """Take the end of the thread that reads.  Thread: that one."""
        self._state.failed(error)
        self._finish()

    def _finish(self) -> None:
        """End every wait, once.  Any thread."""
        with self._ending:
            if self._over:
                return
            self._over = True
            seeks, self._seeks = self._seeks, set()
        self._packs.stop()  # first: the end of a pack would let the next one of its queue go out
        for reader in list(self._readers.values()):
            self._packs.close_queue(reader)
        self._packs.expire(CLOSED)
        for reply in seeks:
            reply.set_result(Reply(0, "gone"))
        self._state.gone()

    def _end(self) -> None:
        """End every wait, and let connections and threads end: whoever closes the consumer waits for these."""
        self._finish()
        self._client.end()


def _nothing() -> None:
    """Leave the end of the process to `dataproxy.consumer.ending`."""
