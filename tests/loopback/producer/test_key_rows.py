"""Record batches with a column of keys: rows of one key keep their order, and a bad key is the fault of its row."""

import contextlib
import random
import threading
from collections import defaultdict

import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.accumulate.keys import bucket_of
from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy._core.wire.inlong.message import records
from tests.loopback.producer.test_key_order import Cluster, check
from tests.native.probe_wire import Server
from tests.support.scripted import Peer, Scripted, ack

KINDS = [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()]


def batch_of(keys, bodies, kind=None, **columns):
    """Return a record batch of bodies, keys and other columns, and where they are."""
    arrays = {"value": pa.array(bodies, pa.binary()), "key": pa.array(keys, kind or pa.string()), **columns}
    return pa.record_batch(arrays), {name: at for at, name in enumerate(arrays)}


def send(producer, keys, bodies, kind=None, *, columns=None, **options):
    """Send rows with keys to the stream s."""
    batch, places = batch_of(keys, bodies, kind, **(columns or {}))
    return send_record_batch(producer, batch, **places, group="g", stream="s", **options)


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_rows_holds_through_faults(seed):
    rng = random.Random(seed)
    cluster = Cluster(seed, 3)
    target = "tcp://" + ",".join(server.target.removeprefix("tcp://") for server in cluster.servers)
    sent = {}
    with contextlib.closing(cluster), dataproxy.Producer(
        target, group_id="g", ordering="key", key_buckets=rng.choice((1, 3, 16)), executors=rng.choice((1, 2)),
        connections=4, linger=0.001, ack_timeout=0.05, retry_backoff=0.005, retry_backoff_max=0.02,
        reconnect_backoff=0.005, reconnect_backoff_max=0.02, retry_budget=100_000, delivery_timeout=20,
        batch_messages=7,
    ) as p:  # fmt: skip
        for number in range(8):
            keys = [f"k{rng.randrange(8)}" for _ in range(50)]
            bodies = [f"{key}:{50 * number + row}".encode() for row, key in enumerate(keys)]
            times = [rng.choice((None, 1_700_000_000_000 + row)) for row in range(50)]
            columns = rng.choice(({}, {"dt": pa.array(times, pa.int64())}))
            send(p, keys, bodies, columns=columns, row_ids=rng.choice((None, b"run.")), first_row=256 * number)
            sent.update(dict.fromkeys(bodies, True))
            if number == 5:
                cluster.calm = True
        p.flush()
        assert p.report().delivered == 400
    assert check(cluster.log, sent) == 400


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_frame_has_rows_of_one_bucket_in_their_order_and_rows_without_a_key_have_their_own(kind):
    keys = [None if row % 5 == 0 else f"key {row % 9}" for row in range(300)]
    with Scripted() as server:
        with dataproxy.Producer(server.target, group_id="g", ordering="key", key_buckets=4, linger=5) as p:
            batch, places = batch_of(keys, [b"%d" % row for row in range(300)], kind)
            for part in (batch.slice(0, 130), batch.slice(130)):  # offsets count
                assert send_record_batch(p, part, **places, group="g", stream="s")[0] == part.num_rows
            p.flush()
        frames = [[int(body) for body, _ in records(Server().serve(frame, 0)["entry"])] for _, frame in server.frames]
    assert sorted(row for rows in frames for row in rows) == list(range(300))
    found = defaultdict(list)
    for rows in frames:
        buckets = {None if keys[row] is None else bucket_of(keys[row], 4) for row in rows}
        assert len(buckets) == 1
        found[buckets.pop()] += rows
    assert set(found) == {None, *(bucket_of(f"key {n}", 4) for n in range(9))}
    assert all(rows == sorted(rows) for bucket, rows in found.items() if bucket is not None)


BAD = [
    ("", "a key is empty (item 1); give bytes or text of 1 to 1024 bytes, or leave"),
    ("k" * 1025, "a key of 1025 bytes is over the limit of 1024 bytes (item 1); give a digest of it"),
]


@pytest.mark.parametrize(("key", "words"), BAD)
def test_a_bad_key_is_the_fault_of_its_row(key, words):
    with Scripted() as server, dataproxy.Producer(server.target, group_id="g", ordering="key") as p:
        with pytest.raises(dataproxy.InvalidMessageError) as caught:
            send(p, ["a", key, None], [b"1", b"2", b"3"])
        assert words in str(caught.value)
        assert (caught.value.code, caught.value.details["item"]) == ("BAD_KEY", 1)
        assert p.report().accepted == 0
        refused = []
        assert send(p, ["a", key, None], [b"1", b"2", b"3"], refused=refused)[0] == 2
        assert [(row, code) for row, code, _ in refused] == [(1, "BAD_KEY")]
        p.flush()
        assert p.report().delivered == 2


def test_skipped_bodies_and_bodies_that_are_made_of_columns_have_keys_too():
    with Scripted() as server, dataproxy.Producer(
        server.target, group_id="g", ordering="key", null_value="skip", empty_value="skip"
    ) as p:  # fmt: skip
        assert send(p, ["a", "b", None, "b"], [None, b"1", b"", b"2"])[:3] == (2, 1, 1)
        batch = pa.record_batch({"n": pa.array([1, 2, 3]), "key": pa.array(["a", "b", None])})
        encoder = BodyEncoder("json", [0], zone_table=lambda name: b"")
        assert send_record_batch(p, batch, encoder=encoder, key=1, group="g", stream="s")[0] == 3
        p.flush()
        frames = [[body for body, _ in records(Server().serve(frame, 0)["entry"])] for _, frame in server.frames]
    assert sorted(body for bodies in frames for body in bodies) == [b"1", b"2", b'{"n":1}', b'{"n":2}', b'{"n":3}']


def test_keys_need_ordering():
    with Scripted() as server, dataproxy.Producer(server.target, group_id="g") as p:
        with pytest.raises(dataproxy.ConfigError, match="ordering is 'none'"):
            send(p, ["a"], [b"x"])
        assert p.report().accepted == 0


def test_rows_behind_an_unanswered_one_of_their_key_wait_and_others_do_not():
    other = next(key for key in map(str, range(99)) if bucket_of(key, 16) != bucket_of("k", 16))

    def body(frame: bytes) -> bytes:
        return next(records(Server().serve(frame, 0)["entry"]))[0]

    def react(peer: Peer, frame: bytes) -> None:
        if body(frame) == b"1":
            held.append((peer, frame))
            arrived.set()
        else:
            peer.send(ack(frame))

    held: list[tuple[Peer, bytes]] = []
    arrived = threading.Event()
    with Scripted(react) as server, dataproxy.Producer(
        server.target, group_id="g", ordering="key", linger=0, batch_messages=1, ack_timeout=60, delivery_timeout=300
    ) as p:  # fmt: skip
        send(p, ["k", "k", other], [b"1", b"2", b"3"])
        assert sorted(map(body, server.wait_frames(2))) == [b"1", b"3"]
        assert arrived.wait(60)
        peer, first = held[0]
        peer.send(ack(first))
        p.flush()
        assert p.report().delivered == 3
