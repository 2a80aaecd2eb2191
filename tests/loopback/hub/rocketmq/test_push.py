"""Push sessions over sockets: messages come as they are stored, who stalls holds up nobody, and nothing is lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dataproxy.hub import Hub
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.service import Service, Settings
from dataproxy.wire.rocketmq.bodies import (
    ConsumeFrom,
    ConsumerData,
    ConsumerIds,
    ConsumeType,
    Heartbeat,
    MessageModel,
    PushSessions,
    Subscription,
)
from dataproxy.wire.rocketmq.codes import Code
from tests.native import probe_rocketmq as wire
from tests.support.remoting import Port, Remote, fields
from tests.support.waiting import eventually

Start = Callable[..., Port]
MODELS = {"shared": MessageModel.CLUSTERING, "all": MessageModel.BROADCASTING}


_open: list[Remote] = []


@pytest.fixture(autouse=True)
def close_members() -> Iterator[None]:
    """Close the connections of a test's members."""
    yield
    while _open:
        _open.pop().close()


class Member:
    """A raw client to which a hub pushes; it acknowledges when it is told to."""

    def __init__(self, port: int, client: str, queues: list[int], *, group: str = "g", model: str = "shared") -> None:
        self.remote = Remote(port)
        _open.append(self.remote)
        self.client, self.group, self.model = client, group, model
        self.got: list[tuple[int, bytes]] = []  # queue and body
        self.next: dict[int, int] = {}  # offset to be acknowledged, by queue
        self.states: list[str] = []
        self.code = self.claim(queues)

    def claim(self, queues: list[int], begins: dict[int, int] | None = None) -> int:
        """Send a heartbeat, and return what it was answered."""
        wanted = Subscription("T", queue_id_set=tuple(queues), queue_offset_table=begins or {})
        data = ConsumerData(self.group, ConsumeType.SERVER_PUSH, MODELS[self.model], ConsumeFrom.FIRST, (wanted,))
        body = Heartbeat(self.client, (), (data,)).write()
        return wire.read(self.remote.answer(self.remote.request(Code.HEART_BEAT, body)))["code"]

    def hear(self) -> None:
        """Take the next thing that the hub says."""
        frame = self.remote.hear()
        head, said = wire.read(frame), fields(frame)
        if head["code"] == Code.PUSH_STATE:
            self.states.append(said["state"])
        elif head["code"] == Code.SNODE_PUSH_MESSAGE:
            queue = int(said["queueId"])
            begin, behind = int(said["beginOffset"]), int(said["nextOffset"])
            assert self.next.setdefault(queue, begin) == begin, "a gap"
            found = wire.read_stored_messages(head["body"])
            assert [one["queueOffset"] for one in found] == list(range(begin, behind))
            self.got += [(queue, one["body"]) for one in found]
            self.next[queue] = behind

    def acknowledge(self, queue: int, offset: int | None = None) -> int:
        """Acknowledge what came of a queue, and return what that was answered."""
        at = self.next[queue] if offset is None else offset
        given = {"consumerGroup": self.group, "topic": "T", "queueId": str(queue), "commitOffset": str(at)}
        return wire.read(self.remote.answer(self.remote.request(Code.UPDATE_CONSUMER_OFFSET, **given)))["code"]

    def take(self, n: int) -> list[tuple[int, bytes]]:
        """Take and acknowledge messages until there are so many."""
        while len(self.got) < n:
            before = dict(self.next)
            self.hear()
            for queue, at in self.next.items():
                if before.get(queue) != at:
                    assert self.acknowledge(queue) == 0
        return self.got

    def committed(self, queue: int) -> int:
        """Return where the group is, as the hub knows it; -1: nowhere."""
        given = {"consumerGroup": self.group, "topic": "T", "queueId": str(queue)}
        frame = self.remote.answer(self.remote.request(Code.QUERY_CONSUMER_OFFSET, **given))
        return int(fields(frame)["offset"]) if wire.read(frame)["code"] == 0 else -1


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub:
        yield hub


def pushed(hub: Hub) -> dict[str, int]:
    """Return the hub's counts of pushes."""
    return {name: value for name, value in hub.stats()["rocketmq"].items() if name.startswith("push_")}


def fill(port: int, queue: int, n: int, size: int = 8) -> list[tuple[int, bytes]]:
    """Store messages, and return them as a member gets them."""
    bodies = [b"%08d" % i + bytes(size - 8) for i in range(n)]
    with Remote(port) as remote:
        remote.send("T", bodies[0], queueId=queue)  # while a topic is new its messages may overtake each other
        for number in [remote.post("T", body, queueId=queue) for body in bodies[1:]]:
            assert wire.read(remote.answer(number))["code"] == 0
    return [(queue, body) for body in bodies]


def test_a_message_comes_as_it_is_stored_without_being_asked_for(hub: Hub) -> None:
    fill(hub.rocketmq_port, 0, 1)
    member = Member(hub.rocketmq_port, "a", [0, 1])
    assert member.code == 0
    assert len(member.take(1)) == 1
    for n in range(20):
        fill(hub.rocketmq_port, n % 2, 1)
        assert len(member.take(n + 2)) == n + 2
    assert eventually(lambda: member.committed(0) == 11 and member.committed(1) == 10)


def test_who_stalls_costs_fast_members_nothing_and_loses_nothing(hub: Hub) -> None:
    """The slow-consumer test: by counts, one member that reads nothing, and two that do."""
    n, port = 1500, hub.rocketmq_port
    stored = [fill(port, 0, n, 4096), fill(port, 1, n), fill(port, 2, n)]
    slow, fast = Member(port, "a", [0]), Member(port, "b", [1, 2])
    every = Member(port, "c", [0, 1, 2], group="h", model="all")
    got = fast.take(2 * n)
    assert sorted(got) == sorted(stored[1] + stored[2])
    assert sorted(every.take(3 * n)) == sorted(stored[0] + stored[1] + stored[2])
    counts = pushed(hub)
    assert counts["push_sessions"] == 6 and counts["push_evictions"] == 0
    held = counts["push_messages"] - 5 * n
    assert 0 < held <= 1024, "the stalled one has no more than its bound"
    assert slow.committed(0) == 0
    more = fill(port, 1, 100)
    assert len(fast.take(2 * n + 100)) == 2 * n + len(more)
    assert slow.take(n) == stored[0]
    assert eventually(lambda: slow.committed(0) == n)


class Clock:
    """The clock of a port, which a test sets forward."""

    def __init__(self, port: Port) -> None:
        self._port, self.ahead_s = port, 0

    def clock_us(self) -> int:
        """Return the time in us."""
        return int(self._port.core.clock_us()) + self.ahead_s * 1_000_000


def test_who_never_reads_is_evicted_its_group_goes_on_and_its_connection_ends(start_port: Start) -> None:
    port = start_port()
    clock = Clock(port)
    limits = Limits(push_messages=10_000, push_bytes=64 << 20, push_line_bytes=12 << 20, client=1e6)
    service = Service(clock, port.remoting, port.store, Settings(limits=limits))
    thread = threading.Thread(target=service.serve)
    thread.start()
    try:
        stored = fill(port.port, 0, 40, 512 << 10)
        dead = Member(port.port, "a", [0])
        assert eventually(lambda: service.pushes.counts().messages == 24), "all that a connection may have"
        for seconds in (31, 2, 301):  # too old, told, evicted
            assert service.run(service.pushes.counts).evictions == 0
            clock.ahead_s += seconds
            service.run(lambda: service.pushes.tick(service.now))
        assert service.pushes.counts().evictions == 1
        heir = Member(port.port, "b", [0])
        assert heir.take(40) == stored
        clock.ahead_s += 6
        assert eventually(lambda: len(service.run(lambda: service.pushes._locals)) == 1), "its connection is cut"
        with contextlib.suppress(ConnectionError):
            while dead.remote.socket.recv(1 << 20):
                pass
        listed = heir.remote.answer(heir.remote.request(Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="g"))
        assert ConsumerIds.read(wire.read(listed)["body"]).consumer_id_list == ("b",)
        counts = service.pushes.counts()
        assert (counts.sessions, counts.evictions) == (1, 1)
    finally:
        service.stop()
        thread.join()


def test_wrong_acknowledgements_change_nothing(hub: Hub) -> None:
    port = hub.rocketmq_port
    fill(port, 0, 10)
    owner, other = Member(port, "a", [0]), Member(port, "b", [1])
    while len(owner.got) < 10:
        owner.hear()
    assert other.acknowledge(0, 5) == 1
    assert owner.acknowledge(0, 11) == 1
    assert owner.acknowledge(0, -1) == 1
    with Remote(port) as stranger:
        for offset in range(100):
            stranger.request(Code.UPDATE_CONSUMER_OFFSET, oneway=True, consumerGroup="g", topic="T", queueId="0",
                             commitOffset=str(offset))  # fmt: skip
        stranger.answer(stranger.request(Code.GET_BROKER_CLUSTER_INFO))
    assert owner.committed(0) == 0
    assert owner.acknowledge(0) == 0 and owner.committed(0) == 10
    assert pushed(hub)["push_refused"] == 102


def test_a_connection_has_a_bounded_number_of_sessions(hub: Hub) -> None:
    port = hub.rocketmq_port
    member = Member(port, "a", list(range(5000)))
    assert member.code == 1 and pushed(hub)["push_sessions"] == 0
    fill(port, 3, 2)
    assert member.claim(list(range(1024))) == 0
    assert pushed(hub)["push_sessions"] == 4  # the topic has no more queues
    member.group = "h"
    assert member.claim([0, 1]) == 0
    assert pushed(hub)["push_sessions"] == 4
    member.group = "g"
    assert len(member.take(2)) == 2


def test_a_connection_that_ends_hands_its_queues_over_at_once(hub: Hub) -> None:
    port = hub.rocketmq_port
    stored = fill(port, 0, 30)
    first, second = Member(port, "a", [0]), Member(port, "b", [0])
    while len(first.got) < 30:
        first.hear()
    assert first.acknowledge(0, 12) == 0
    first.remote.close()
    assert second.take(18) == stored[12:]


def test_a_client_that_comes_by_another_connection_goes_on_there(hub: Hub) -> None:
    port = hub.rocketmq_port
    stored = fill(port, 0, 5)
    old = Member(port, "a", [0])
    while len(old.got) < 5:
        old.hear()
    assert Member(port, "a", [0]).take(5) == stored
    assert old.acknowledge(0) == 1


def test_half_an_acknowledgement_is_none(hub: Hub) -> None:
    port = hub.rocketmq_port
    stored = fill(port, 0, 10)
    owner, heir = Member(port, "a", [0]), Member(port, "b", [0])
    while len(owner.got) < 10:
        owner.hear()
    pairs = [(b"consumerGroup", b"g"), (b"topic", b"T"), (b"queueId", b"0"), (b"commitOffset", b"10")]
    frame = wire.write(owner.remote.head(Code.UPDATE_CONSUMER_OFFSET) | {"fields": pairs, "body": b"of it"})
    owner.remote.socket.sendall(frame[:-1])
    owner.remote.close()
    assert heir.take(10) == stored


def test_two_connections_of_one_id_that_take_turns_lose_nothing(hub: Hub) -> None:
    port = hub.rocketmq_port
    stored = fill(port, 0, 8)
    twins = [Member(port, "a", [0]), Member(port, "a", [0])]
    for turn in range(4):
        owner, other = twins[turn % 2], twins[1 - turn % 2]
        for one in twins:
            assert one.claim([]) == 0
            one.remote.requests.clear()  # what was pushed before
        assert [one.claim([0]) for one in (other, owner)] == [0, 0]  # the last one that says so has it
        owner.next.clear()
        owner.got.clear()
        while len(owner.got) < 8 - 2 * turn:
            owner.hear()
        assert owner.got == stored[2 * turn :]
        assert owner.acknowledge(0, 2 * turn + 2) == 0 and other.acknowledge(0, 8) == 1
    assert owner.committed(0) == 8


def test_offsets_are_there_after_a_restart(tmp_path: Path) -> None:
    with Hub(rocketmq_port=0, store=str(tmp_path / "store")) as hub:
        stored = fill(hub.rocketmq_port, 0, 10)
        member = Member(hub.rocketmq_port, "a", [0])
        while len(member.got) < 10:
            member.hear()
        assert member.acknowledge(0, 7) == 0
    with Hub(rocketmq_port=0, store=str(tmp_path / "store")) as hub:
        assert Member(hub.rocketmq_port, "a", [0]).take(3) == stored[7:]


def test_an_offset_of_a_group_is_created_once_whoever_comes_second(start_port: Start) -> None:
    port = start_port()
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(port.remoting.create("g", "T", 0, n))) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1 and port.remoting.committed("g", "T", 0) == found[0]
    assert port.remoting.commit("g", "T", 0, 50) and port.remoting.create("g", "T", 0, 3) == 50


def test_only_what_is_followed_wakes_the_thread(port: Port) -> None:
    remote = port.connect()
    bucket = port.remoting.follow("T", 0)
    port.remoting.news()
    remote.send("T", b"a")
    assert eventually(lambda: port.remoting.news() == [bucket])
    assert port.remoting.take(0) is None and port.remoting.news() == []  # it was woken once
    waiter: list[object] = []
    thread = threading.Thread(
        target=lambda: waiter.append(port.remoting.take(time.monotonic_ns() // 1000 + 60_000_000))
    )
    thread.start()
    remote.send("T", b"b")
    thread.join()
    assert waiter == [None] and port.remoting.news() == [bucket]
    port.remoting.unfollow(bucket)
    remote.send("T", b"c")
    assert port.remoting.news() == []
    with pytest.raises(ValueError, match="no bucket 256"):
        port.remoting.unfollow(256)


def test_a_hub_tells_what_it_has_pushed(hub: Hub) -> None:
    fill(hub.rocketmq_port, 0, 3)
    member = Member(hub.rocketmq_port, "a", [0])
    while len(member.got) < 3:
        member.hear()
    answer = wire.read(member.remote.answer(member.remote.request(Code.PUSH_STATE, consumerGroup="g")))
    [found] = PushSessions.read(answer["body"]).sessions
    assert (found.queue_id, found.commit_offset, found.next_offset, found.messages, found.state) == (
        0,
        0,
        3,
        3,
        "flowing",
    )
