"""Order by key over real sockets: several proxies that refuse, freeze, lose connections and store late."""

import contextlib
import random
import threading

import pytest

import dataproxy
from dataproxy._core.producer.accumulate.keys import bucket_of
from dataproxy._core.wire.inlong.message import records
from dataproxy.hub import Hub
from tests.native.probe_wire import Server
from tests.support.scripted import Peer, Scripted, ack, refusal

MOODS = ("store", "store", "store", "store", "refuse", "silent", "lose", "reset", "late", "twice")


class Cluster:
    """Proxies that share one log and misbehave from a seed; ``log`` has the bodies in the order of storing."""

    def __init__(self, seed: int, proxies: int) -> None:
        self.rng = random.Random(seed)
        self.lock = threading.Lock()
        self.log: list[bytes] = []
        self.late: list[bytes] = []
        self.calm = False
        self.servers = [Scripted(self.react) for _ in range(proxies)]

    def store(self, frame: bytes) -> None:
        self.log += [body for body, _ in records(Server().serve(frame, 0)["entry"])]

    def react(self, peer: Peer, frame: bytes) -> None:
        with self.lock:
            mood = "store" if self.calm else self.rng.choice(MOODS)
            if mood in ("store", "twice", "silent", "reset"):
                self.store(frame)
            if mood == "twice":
                self.store(frame)
            if mood == "late":  # taken now, stored when others have been stored since
                self.late.append(frame)
            elif self.late and self.rng.random() < 0.5:
                self.store(self.late.pop(0))
        if mood in ("store", "twice"):
            peer.send(ack(frame))
        elif mood == "refuse":
            peer.send(refusal(frame, 114))
        elif mood == "lose":
            peer.close()
        elif mood == "reset":
            peer.reset()

    def close(self) -> None:
        for server in self.servers:
            server.close()


def check(log: list[bytes], delivered: dict[bytes, bool]) -> int:
    """Judge the first copies of delivered bodies ``key:number``; return how many there were."""
    last: dict[bytes, int] = {}
    seen = set()
    for body in log:
        if body in seen or not delivered[body]:
            continue
        seen.add(body)
        key, number = body.split(b":")
        assert last.get(key, -1) < int(number), f"{body!r} was stored after number {last[key]}"
        last[key] = int(number)
    assert seen == {body for body, good in delivered.items() if good}
    return len(seen)


def good(delivery: dataproxy.Delivery) -> bool:
    with contextlib.suppress(dataproxy.DeliveryError):
        delivery.result()
        return True
    return False


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("executors", [1, 2])
def test_order_holds_through_faults(seed, executors):
    rng = random.Random(seed)
    cluster = Cluster(seed, 3)
    target = "tcp://" + ",".join(server.target.removeprefix("tcp://") for server in cluster.servers)
    sent = {}
    with contextlib.closing(cluster), dataproxy.Producer(
        target, group_id="g", ordering="key", key_buckets=rng.choice((1, 3, 16)), executors=executors, connections=4,
        linger=0.001, ack_timeout=0.05, retry_backoff=0.005, retry_backoff_max=0.02, reconnect_backoff=0.005,
        reconnect_backoff_max=0.02, retry_budget=100_000, delivery_timeout=20, batch_messages=7,
    ) as p:  # fmt: skip
        streams = [p.stream("s"), p.stream("s", attrs={"env": "x"})]  # one order for both
        for i in range(400):
            key = f"k{rng.randrange(8)}"
            body = f"{key}:{i}".encode()
            extra = rng.choice(({}, {}, {"dt": 1_700_000_000_000 + i}, {"attrs": {"a": "1"}}, {"message_id": f"m{i}"}))
            sent[body] = rng.choice(streams).send(body, key=key, **extra)
            if i == 300:
                cluster.calm = True
        p.flush()
    assert check(cluster.log, {body: good(delivery) for body, delivery in sent.items()}) == 400


def test_what_expired_does_not_stop_its_key():
    """A proxy swallows two frames: one expires, so does what waited as long behind it; what comes later goes on."""
    swallowed = []

    def react(peer: Peer, frame: bytes) -> None:
        body = next(records(Server().serve(frame, 0)["entry"]))[0]
        if body in (b"k:0", b"k:1"):
            swallowed.append(body)
        else:
            peer.send(ack(frame))

    other = next(key for key in map(str, range(99)) if bucket_of(key, 16) != bucket_of("k", 16))
    with Scripted(react) as server:
        p = dataproxy.Producer(
            server.target, group_id="g", ordering="key", linger=0, ack_timeout=0.05, delivery_timeout=1,
            batch_messages=1,
        )  # fmt: skip
        first = p.send("s", b"k:0", key="k")
        behind = p.send("s", b"k:1", key="k")
        assert p.send("s", b"x", key=other).result()
        maybe = {}
        for body, delivery in ((b"k:0", first), (b"k:1", behind)):
            with pytest.raises(dataproxy.DeliveryExpired) as caught:
                delivery.result()
            maybe[body] = caught.value.details["maybe_delivered"]
        assert maybe[b"k:0"]
        # Where the two calls were far apart, the second may have gone out between the ends of both.
        assert maybe[b"k:1"] or b"k:1" not in swallowed
        assert p.send("s", b"k:2", key="k").result()
        report = p.close()
    assert (report.accepted, report.delivered, report.expired) == (4, 2, 2)
    assert report.errors == {"EXPIRED": 2}


def test_a_busy_key_queue_grows_its_pack():
    """While a frame is unanswered the next pack goes on growing instead of being sealed for its age."""
    arrived, answer = threading.Event(), threading.Event()
    counts = []

    def react(peer: Peer, frame: bytes) -> None:
        counts.append(Server().serve(frame, 0)["records"])
        arrived.set()
        answer.wait(20)
        peer.send(ack(frame))

    with Scripted(react) as server, dataproxy.Producer(server.target, group_id="g", ordering="key", linger=0) as p:
        s = p.stream("s")
        s.send_nowait(b"first", key="k")
        assert arrived.wait(20)
        for _ in range(500):
            s.send_nowait(b"more", key="k")
        assert p.stats().pending == 501
        answer.set()
        p.flush()
    assert counts[0] == 1
    assert sum(counts) == 501
    assert len(counts) <= 3


@pytest.mark.parametrize("when", ["flush", "close"])
def test_held_packs_are_in_the_accounting(when):
    with Scripted(lambda peer, frame: None) as server:
        p = dataproxy.Producer(server.target, group_id="g", ordering="key", batch_messages=2, linger=0)
        deliveries = [p.send("s", b"%d" % i, key="k") for i in range(9)]
        server.wait(lambda: len(server.frames) == 1)
        if when == "flush":
            with pytest.raises(dataproxy.FlushTimeout) as caught:
                p.flush(0.05)
            assert caught.value.report.pending == 9
        report = p.close(0)
    assert (report.accepted, report.failed, report.pending) == (9, 9, 0)
    assert report.errors == {"CLOSED": 9}
    assert [d.exception().code for d in deliveries] == ["CLOSED"] * 9
    sent = Server().serve(server.frames[0][1], 0)["records"]  # one or two, as the linger of the first found it
    assert [d.exception().details["maybe_delivered"] for d in deliveries] == [True] * sent + [False] * (9 - sent)


def test_order_at_a_hub_with_many_keys():
    with (
        Hub() as hub,
        dataproxy.Producer(hub.target, group_id="g", ordering="key", executors=2, connections=4, batch_bytes=4096) as p,
    ):
        s = p.stream("s")
        rng = random.Random(5)
        for i in range(20_000):
            key = b"%d" % rng.randrange(1000)
            s.send_nowait(b"%b:%d" % (key, i), key=key)
        batch = s.send_batch([b"b:%d" % i for i in range(3000)], key="b")
        p.flush()
        assert batch.result().ok
        last: dict[bytes, int] = {}
        n = 0
        for record in hub.records("g", "s"):
            key, _, number = record.body.partition(b":")
            assert last.get(key, -1) < int(number)
            last[key] = int(number)
            n += 1
        assert n == 23_000


def test_ids_ascend_within_a_key() -> None:
    """So a reader behind a message queue that mixes frames can bring the messages of a key in order again."""
    with (
        Hub() as hub,
        dataproxy.Producer(hub.target, group_id="g", ordering="key", executors=2, connections=4, batch_bytes=256) as p,
    ):
        rng = random.Random(7)
        for i in range(5000):
            key = b"%d" % rng.randrange(40)
            p.send_nowait("s", b"%b:%d" % (key, i), key=key, attrs={"a": "b"} if rng.random() < 0.1 else None)
        p.flush()
        mixed = list(hub.records("g", "s"))
    rng.shuffle(mixed)

    def place(text: str) -> tuple[int, int]:
        frame, _, index = text.rpartition("-")[2].partition(".")
        return int(frame, 16), int(index)

    last: dict[bytes, int] = {}
    for record in sorted(mixed, key=lambda record: place(record.message_id)):
        key, _, number = record.body.partition(b":")
        assert last.get(key, -1) < int(number)
        last[key] = int(number)
    assert len(mixed) == 5000 and len(last) == 40
