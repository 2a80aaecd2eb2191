"""The hub's broker in a simulated run, in the place of the model: its server loop, calls of control, and its store.

Loop, committer and store are the hub's own, on virtual time and real descriptors.  What a broker answers comes when
it is there: at once, when the store has a position, or when a message comes in.
"""

from __future__ import annotations

import itertools
import select
import socket
import tempfile
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dataproxy._core.server.core import HubCore
from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.server.tubemq.callcore import CallsCore, PendingCall
from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.hub.tubemq.broker import Broker
from dataproxy.hub.tubemq.calls import SUCCESS, Calls, Outcome
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.cluster.rules import Tokens
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.calls import METHODS
from dataproxy.wire.tubemq.texts import Broker as BrokerText
from dataproxy.wire.tubemq.texts import Partition
from tests.native import probe_tubemq as wire
from tests.native.probe_brokerloop import BrokerLoop
from tests.simgroup.hosts import GROUP, AnyBroker, true_ms
from tests.simgroup.plan import S
from tests.support.tubeserver.store import INDEX_BYTES

if TYPE_CHECKING:
    from tests.simgroup.lines import Line
    from tests.simgroup.world import World

__all__ = ["HubBrokerHost"]

_MOST_BYTES: Final = 16 << 20
_AGAIN_US: Final = S // 4  # until a message that could not be stored is sent again
_LONG_BODY: Final = 330_000  # bytes of a message that is a pack by itself
_WAITS: Final = (0.0, 0.2, 0.6)  # how long a request for messages waits, in limits of a call
_GET, _REGISTER = "GetMessageRequestC2B", "RegisterRequestC2B"
_SEND: Final = 13
_RESERVE: Final = 4 << 20  # bytes of a store's reserve for full disks
_FOLDER: Final = next((one for one in ("/dev/shm",) if Path(one).is_dir()), None)  # a disk that is fast

_RECEIVED: Final = memoryview(bytearray(1 << 22))  # what was read last

_Key = tuple[str, int]  # topic, partition


@lru_cache(256)
def _message(topic: str, partition: int, body: bytes, item: str, least: int) -> bytes:
    """Return the frame that sends a message, whose body has so many bytes at least."""
    flag, data = wire.payload(b"$msgType$=" + item.encode() if item else b"", body.ljust(least, b"."))
    request = messages.SendMessageRequestP2B(
        clientId="producer", topicName=topic, partitionId=partition, data=data, flag=flag, sentAddr=0x7F000001,
        checkSum=wire.checksum(data), msgType=item, msgTime="",
    ).SerializeToString()  # fmt: skip
    return wire.frame(1, wire.call(3, 3, _SEND, 10_000, request))


class _Peer:
    """The client's end of a connection to the loop; ``line`` is None for the producer."""

    def __init__(self, line: Line | None, number: int) -> None:
        self.line, self.number = line, number
        self._socket, server = socket.socketpair()
        self.server = server.detach()
        self._socket.setblocking(False)
        self._stream = wire.Stream()
        self.asked: dict[int, Any] = {}  #: requests for packs that have no answer

    def fileno(self) -> int:
        """Return the descriptor of this end."""
        return self._socket.fileno()

    def send(self, serial: int, payload: bytes) -> memoryview:
        """Write a request; return what did not go out."""
        return self.write(memoryview(wire.frame(serial, payload)))

    def write(self, data: memoryview) -> memoryview:
        """Write bytes; return what did not go out."""
        try:
            return data[self._socket.send(data) :]
        except BlockingIOError:
            return data

    def read(self) -> tuple[list[tuple[int, bytes]], bool]:
        """Return the frames that are there, and whether there may be more."""
        try:
            n = self._socket.recv_into(_RECEIVED)
        except BlockingIOError:
            return [], False
        return self._stream.push(bytes(_RECEIVED[:n])), bool(n)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


class HubBrokerHost(AnyBroker):
    """One broker: what it has answered as confirmed survives its process, however that ends."""

    def __init__(self, text: BrokerText, world: World) -> None:
        super().__init__(text, world.plan)
        self._world = world
        self._key = bytes(range(16))
        self._folder = tempfile.TemporaryDirectory(prefix="simgroup", dir=_FOLDER)
        self._logs: dict[_Key, list[bytes]] = {}  # bodies, in the order of the store
        self._unsent: list[tuple[str, int, bytes, str]] = []
        self._sends_again = False
        self._peers: dict[Line | None, _Peer] = {}
        self._poll = select.epoll()
        self._ends: dict[int, _Peer] = {}  # by their descriptors
        self._before: dict[_Key, int] = {}
        self._used: dict[_Key, tuple[str, int]] = {}  # who has a partition, and when it has called last
        self._goes_back: set[_Key] = set()  # who asked for it has reset these positions since they were looked at
        self._numbers = itertools.count()
        self._address = BrokerText(text.id, "127.0.0.1", 1)
        self._open()

    # --- its life

    def _open(self) -> None:
        plan = self.plan
        self._calls, self._taken = CallsCore(1024, _MOST_BYTES), 0
        store = Path(self._folder.name) / "store"
        store.mkdir(exist_ok=True)
        with (store / "reserve").open("ab") as reserve:  # without pages, which would take as long as all the rest
            reserve.truncate(_RESERVE)
        self._store = StoreCore(str(store), map_bytes=1 << 26)
        core = HubCore(
            self._store, host="127.0.0.1", port=0, threads=1, max_frame=1 << 20, max_connections=1000, read_idle=1e9,
            reply_bytes=8 << 20, queue_bytes=64 << 20, compat=False, compress_entries=False, node_ip="127.0.0.1",
            partitions=1, topics=(), calls=self._calls, tubemq_port=0, tubemq_message=1 << 20,
            tubemq_partitions=max(plan.topics.values()),
        )  # fmt: skip
        core.open()
        core.close_listener()  # connections come as descriptors
        self.registrations = RegistrationsCore(self._key, int(plan.times.lock_limit * S), _MOST_BYTES)
        self.registrations.attach(self._store, int(_WAITS[plan.seed % 3] * plan.times.call * S))
        core.serve_data(self.registrations)
        self._loop = BrokerLoop(core, self._store, self.registrations)
        layout = Layout()
        layout.put(self._address, {topic: TopicAt(n) for topic, n in plan.topics.items()})
        self.control = Broker(self._address, layout, self.registrations, self._extent, Access(), Tokens(1, 300.0, 0.0))
        self._work = Calls({15: self.control.answer, 16: self.control.answer})
        self._before = self._positions()
        self._rows: list[Any] | None = None  # of registrations, when they were looked at last
        self._wake_at = self._commit_at = 0
        self._used.clear()

    def _extent(self, topic: str, partition: int) -> tuple[int, int]:
        return 0, len(self._logs.get((topic, partition), ())) * INDEX_BYTES

    def end(self) -> None:
        """End its process as a kill does, and forget its store."""
        self._stop()
        self._poll.close()
        self._folder.cleanup()

    def _stop(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()
        self._ends.clear()
        self._loop.end()

    def restart(self, now: int, *, crash: bool) -> None:
        """End its process and begin anew with what it has stored; what it had not answered yet may be lost."""
        if not crash:
            self._loop.commit(self.bad_disk)
        before = self._positions()
        self._stop()
        self._open()
        for (topic, partition), position in before.items():
            kept = self._before.get((topic, partition), 0)
            if kept < position:
                self._world.laws.lost(self, topic, partition, kept, position)

    # --- messages and what is known of them

    def put(self, topic: str, partition: int, body: bytes, item: str) -> None:
        """Send a message, again and again until it is stored."""
        self._unsent.append((topic, partition, body, item))
        self._send()

    def _send(self) -> None:
        while self._unsent and self.up and not self.bad_disk and self._world.now >= self.frozen_until:
            self._send_first()
        if self._unsent and not self._sends_again:
            self._sends_again = True
            self._world.at(self._world.now + _AGAIN_US, self._send_again)

    def _send_again(self) -> None:
        self._sends_again = False
        self._send()

    def _send_first(self) -> None:
        topic, partition, body, item = self._unsent.pop(0)
        request = _message(topic, partition, body, item, _LONG_BODY if self.plan.pack_bytes == 1 else 0)
        peer = self._peer(None)
        rest = peer.write(memoryview(request))
        self._round()
        while rest:
            rest = peer.write(rest)
            self._round()
        self._logs.setdefault((topic, partition), []).append(body)
        self._loop.commit()
        self._round()

    def take_producers(self, frames: list[tuple[int, bytes]]) -> None:
        """Take answers to messages: what is sent here is stored."""
        for _, payload in frames:
            sent = messages.SendMessageResponseB2P.FromString(wire.read_answers(payload)["data"])
            if sent.errCode != 200:
                self._world.laws.broken("seen", f"is {sent.errCode} for a message, {sent.errMsg}")

    def between(self, topic: str, partition: int, begin: int, end: int) -> list[bytes]:
        """Return the bodies of a partition's messages between two offsets."""
        return self._logs.get((topic, partition), [])[begin // INDEX_BYTES : end // INDEX_BYTES]

    def end_of(self, topic: str, partition: int) -> int:
        """Return the offset behind a partition's last message."""
        return self._extent(topic, partition)[1] + len(self._unsent)

    def confirmed(self, topic: str, partition: int) -> int:
        """Return the group's offset."""
        return self._positions().get((topic, partition), 0)

    def _positions(self) -> dict[_Key, int]:
        return {
            (topic.decode(), number): position
            for _, topic, number, _, position, _ in self.registrations.found()
            if position >= 0
        }

    def owner(self, partition: Partition, now: int) -> str | None:
        """Return who has registered a partition."""
        self.control.tick(now / S)
        return self._owner(partition.topic, partition.id)

    def _owner(self, topic: str, partition: int) -> str | None:
        for _, of, number, owner, *_ in self.registrations.found():
            if (of.decode(), number) == (topic, partition) and owner:
                return str(owner.decode())
        return None

    def rewind(self, partition: Partition) -> None:
        """Let the group begin a partition anew, as administration does."""
        if not self.up:
            return
        self._goes_back.add((partition.topic, partition.id))
        self._world.laws.rewound(partition.key)
        self.registrations.reset(GROUP.encode(), partition.topic.encode(), partition.id, 0)
        self._round()

    # --- calls

    def exchange(self, line: Line, serial: int, payload: bytes) -> list[bytes]:
        """Take a request; return the frames that a connection gets now."""
        call = wire.read_calls(payload)
        method = METHODS[call["method"]]
        request: Any = getattr(messages, method.request).FromString(call["request"])
        refusal = self.refused(method.request, request, self._world.now)
        if refusal is not None:
            return [wire.frame(serial, wire.answer(method.number, refusal.SerializeToString()))]
        peer = self._peer(line)
        if method.request == _GET:
            peer.asked[serial] = request
        self._note_use(request)
        if peer.send(serial, payload):
            self._world.laws.broken("calm", f"{line.node.client} has too much under way")
        return self._round(line)

    def left(self, line: Line) -> None:
        """Take the end of a connection."""
        peer = self._peers.pop(line, None)
        if peer is not None:
            del self._ends[peer.fileno()]
            peer.close()
            self._go_on(self._loop)

    def _peer(self, line: Line | None) -> _Peer:
        peer = self._peers.get(line)
        if peer is None:
            peer = self._peers[line] = _Peer(line, next(self._numbers))
            self._ends[peer.fileno()] = peer
            self._poll.register(peer, select.EPOLLIN)
            self._loop.adopt(peer.server, self._world.now)
        return peer

    def _round(self, asking: Line | None = None) -> list[bytes]:
        """Let the loop and the thread of control do what is due; give every connection its answers but who asks."""
        world, found = self._world, []
        while True:
            due = self._loop.round(world.now, true_ms(world.now))
            taken = self._control()
            read = False
            for peer in self._readable():
                frames, more = peer.read()
                read |= more
                made = self._answers(peer, frames)
                if peer.line is not None and peer.line is asking:
                    found += made
                elif peer.line is not None and made:
                    peer.line.push(made)
            if not taken and not read:
                break
        self._look()
        if self._loop.holds and self._commit_at <= world.now:
            slow = world.random.uniform(0, self.slow_disk_s) if self.slow_disk_s else 0.0
            self._commit_at = world.now + world.random.randrange(50, 3000) + int(slow * S)
            world.at(self._commit_at, partial(self._go_on, self._loop, commits=True))
        if 0 <= due < 100 * S and not world.now < self._wake_at <= world.now + due:
            self._wake_at = world.now + max(due, 1)
            world.at(self._wake_at, partial(self._go_on, self._loop))
        return found

    def _readable(self) -> list[_Peer]:
        """Return the connections on which something is there, the oldest first."""
        found = [self._ends[descriptor] for descriptor, _ in self._poll.poll(0)]
        return sorted(found, key=lambda one: one.number) if len(found) > 1 else found

    def _go_on(self, loop: BrokerLoop, *, commits: bool = False) -> None:
        """Work while nobody calls, unless the process is another one by now; a frozen one does it later."""
        if loop is not self._loop:
            return
        if self._world.now < self.frozen_until:
            self._world.at(self.frozen_until, partial(self._go_on, loop, commits=commits))
            return
        if commits and not loop.holds:
            return  # what was to be committed is, and a deadline of the loop has a time of its own
        if commits:
            loop.commit(self.bad_disk)
        self._round()

    def _control(self) -> bool:
        """Answer calls of control, as the hub's thread does."""
        answered: list[tuple[PendingCall, Outcome]] = []
        came = self._calls.stats()["calls"]
        while self._taken < came and (call := self._calls.take(0)) is not None:
            self._taken += 1
            answered.append((call, self._answer(call)))
        if answered:
            self._loop.commit(self.bad_disk)
            self.registrations.flush()
        for call, outcome in answered:
            if outcome.status == SUCCESS:
                call.give(outcome.data)
            else:
                call.fail(outcome.status, outcome.exception.encode(), outcome.trace.encode())
        return bool(answered)

    def _answer(self, call: PendingCall) -> Outcome:
        now = self._world.now
        outcome = self._work.answer(
            call.version, call.service, call.method, call.request, call.peer, now / S, true_ms(now)
        )
        if METHODS[call.method].request == _REGISTER and outcome.status == SUCCESS:
            request = messages.RegisterRequestC2B.FromString(call.request)
            answer = messages.RegisterResponseB2C.FromString(outcome.data)
            if request.opType == 31 and request.HasField("currOffset") and request.currOffset >= 0:
                self._goes_back.add((request.topicName, request.partitionId))
            self._look()
            if answer.errCode == 200:
                self._registered(request)
        return outcome

    def _note_use(self, request: Any) -> None:
        """Note that a client has called for a partition, which it keeps then for its time limit."""
        named = [Partition.read(text) for text in getattr(request, "partitionInfo", ())]
        keys = [(one.topic, one.id) for one in named]
        if not keys and hasattr(request, "partitionId"):
            keys = [(request.topicName, request.partitionId)]
        for key in keys:
            if self._owns(key) == request.clientId:
                self._used[key] = (request.clientId, self._world.now)

    def _owns(self, key: _Key) -> str:
        """Return who has registered a partition, and has called within the time limit since."""
        client, called = self._used.get(key, ("", 0))
        return client if self._world.now - called < self.plan.times.lock_limit * S else ""

    def _registered(self, request: Any) -> None:
        """Take a registration, or its end: who has called within the limit, and has not left, keeps its partition."""
        world, key = self._world, (request.topicName, request.partitionId)
        text = f"{self.text.id}:{request.topicName}:{request.partitionId}"
        if request.opType != 31:
            self._used.pop(key, None)
            world.laws.left(text, request.clientId)
            return
        if self._owns(key) not in ("", request.clientId):
            owner, called = self._used[key]
            ago = (world.now - called) / S
            world.laws.broken("owner", f"{text} is given to {request.clientId}, {owner} called {ago:.1f} s ago")
        self._used[key] = (request.clientId, world.now)
        world.laws.granted(text, request.clientId)

    def _answers(self, peer: _Peer, frames: list[tuple[int, bytes]]) -> list[bytes]:
        """Return frames for a client, after a look at them: packs go to who has registered their partition."""
        line = peer.line
        if line is None:
            self.take_producers(frames)
            return []
        for serial, payload in frames:
            request = peer.asked.pop(serial, None)
            if request is None:
                continue
            answer = messages.GetMessageResponseB2C.FromString(wire.read_answers(payload)["data"])
            owner = self._owner(request.topicName, request.partitionId)
            if answer.errCode == 200 and owner != request.clientId:
                key = f"{self.text.id}:{request.topicName}:{request.partitionId}"
                self._world.laws.broken("owner", f"{key} belongs to {owner}, and {request.clientId} gets a pack of it")
            if line.node.world.traced:
                where = f"{request.topicName}:{request.partitionId}"
                line.node.world.note(
                    f"{self.label} {_GET} of {request.clientId} {where} {request.lastPackConsumed} -> "
                    f"{answer.errCode} {answer.currOffset} {len(answer.messages)}"
                )
        return [wire.frame(serial, payload) for serial, payload in frames]

    def _look(self) -> None:
        """Compare positions with those before."""
        rows = self.registrations.found()
        if rows == self._rows:
            self._goes_back.clear()
            return
        self._rows = rows
        laws, after = self._world.laws, self._positions()
        for (topic, partition), position in after.items():
            before = self._before.get((topic, partition), 0)
            if position > before and (topic, partition) not in self._goes_back:
                laws.moved(self, topic, partition, before, position)
            elif position < before and (topic, partition) not in self._goes_back:
                laws.broken("back", f"goes {self.text.id}:{topic}:{partition} from {before} to {position}")
        self._before = after
        self._goes_back.clear()
