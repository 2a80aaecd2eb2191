"""Large bodies are sent from where they lie: the same bytes arrive, and each owner is let go afterwards."""

import asyncio
import gc
import random
import sys
import threading
import time
import weakref

import numpy as np
import pyarrow as pa
import pytest

import dataproxy
from dataproxy.errors import BufferFullError, UndeliveredError
from dataproxy.hub import Hub
from tests.support.scripted import Scripted, ack, good, refusal, silent

HELD = 4096  # bytes from which on a body is not copied
SECONDS = 20


def body(n, seed=0):
    return random.Random(f"{seed} {n}").randbytes(n)


def references(thing):
    return sys.getrefcount(thing) - 2  # without the two of this call


def wait_for(condition):
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


@pytest.fixture
def quiet(server):
    """Yield the server without old frames."""
    server.frames.clear()
    return server


SIZES = [1, HELD - 1, HELD, HELD + 1, 20_000, 300_000]


@pytest.mark.parametrize("kind", ["send", "nowait", "stream", "view", "slice", "batch", "tuple", "arrow", "chunks"])
@pytest.mark.parametrize("more", [{}, {"attrs": {"a": "1"}}, {"dt": 1_700_000_000_000}], ids=["plain", "attrs", "dt"])
def test_all_ways_of_sending(quiet, kind, more):
    bodies = [body(n, i) for i, n in enumerate(SIZES + SIZES[::-1])]
    with dataproxy.Producer(quiet.target, group_id="g") as p:
        s = p.stream("s")
        if kind == "send":
            [p.send("s", one, **more) for one in bodies]
        elif kind == "nowait":
            [p.send_nowait("s", one, **more) for one in bodies]
        elif kind == "stream":
            [s.send_nowait(one, **more) for one in bodies]
        elif kind == "view":
            [s.send_nowait(memoryview(one), **more) for one in bodies]
        elif kind == "slice":
            [s.send_nowait(memoryview(b"__" + one + b"__")[2:-2], **more) for one in bodies]
        elif kind == "batch":
            s.send_batch(bodies, **more)
        elif kind == "tuple":
            s.send_batch((one for one in bodies), **more)
        elif kind == "arrow":
            s.send_arrow(pa.array(bodies, pa.binary()), **more)
        else:
            chunks = pa.chunked_array([pa.array(bodies[i : i + 5], pa.large_binary()) for i in range(0, 12, 5)])
            s.send_arrow(chunks, **more)
        report = p.flush(SECONDS)
    assert (report.delivered, report.pending) == (len(bodies), 0)
    assert sorted(quiet.bodies()) == sorted(bodies)
    assert all(attrs.get("a") == more.get("attrs", {}).get("a") for _, attrs in quiet.messages())


def test_ids_and_callbacks_of_held_bodies(quiet):
    heard = []
    bodies = [body(HELD + i, i) for i in range(40)]
    with dataproxy.Producer(quiet.target, group_id="g", on_delivery=heard.append) as p:
        p.send_batch("s", bodies, message_ids=[f"id{i}" for i in range(40)])
        p.flush(SECONDS)
    assert [one.delivered.id for one in heard] == [f"id{i}" for i in range(40)]
    assert [attrs["msgid"] for _, attrs in quiet.messages()] == [f"id{i}" for i in range(40)]
    assert quiet.bodies() == bodies


@pytest.mark.parametrize("options", [{"compression": "snappy"}, {"message_type": 3}], ids=str)
def test_bodies_that_need_one_piece_are_copied(quiet, options):
    one = bytearray(body(50_000)).replace(b"\n", b" ")
    one = bytes(one)
    quiet.react = silent
    try:
        with dataproxy.Producer(quiet.target, group_id="g", linger=0, **options) as p:
            before = references(one)
            p.send_nowait("s", one)
            quiet.wait_frames(1)
            assert references(one) == before
            quiet.react = good
            p.close(timeout=0)
    except UndeliveredError:
        pass
    finally:
        quiet.react = good
    assert quiet.bodies() == [one]


@pytest.mark.parametrize("make", [bytearray, np.frombuffer, lambda one: memoryview(bytearray(one)).toreadonly()])
def test_memory_that_may_change_is_copied(quiet, make):
    one = body(HELD)
    thing = bytearray(one) if make is bytearray else make(bytearray(one)) if make is np.frombuffer else None
    if make is np.frombuffer:
        thing = np.frombuffer(bytearray(one), np.uint8)
    elif thing is None:
        thing = make(one)
    with dataproxy.Producer(quiet.target, group_id="g", linger=10) as p:
        before = references(thing)
        p.send_nowait("s", thing)
        assert references(thing) == before
        if isinstance(thing, bytearray):
            thing[:] = bytes(HELD)
        p.flush(SECONDS)
    assert quiet.bodies() == [one]


def test_owners_are_let_go_by_the_dispatcher_when_nothing_else_comes(quiet):
    """By handle: names of calls are looked through now and then, and that lets owners go as well."""
    one = body(HELD)
    with dataproxy.Producer(quiet.target, group_id="g") as p:
        stream = p.stream("s")
        before = references(one)
        stream.send_nowait(one)
        wait_for(lambda: references(one) == before)  # no further call
        many = [body(HELD, i) for i in range(100)]
        stream.send_batch(many)
        wait_for(lambda: all(references(each) == 1 + 1 for each in many))


def test_owners_are_let_go_by_the_next_call_and_by_flush(quiet):
    bodies = [body(HELD, i) for i in range(10)]
    with dataproxy.Producer(quiet.target, group_id="g") as p:
        before = [references(one) for one in bodies]
        for i in range(10):
            p.send("s", bodies[i]).result(SECONDS)
        p.flush(SECONDS)
        wait_for(lambda: [references(one) for one in bodies] == before)


def test_owners_are_kept_until_the_answer(quiet):
    quiet.react = silent
    one = body(HELD)
    p = dataproxy.Producer(quiet.target, group_id="g", linger=0, delivery_timeout="60s")
    try:
        before = references(one)
        p.send_nowait("s", one)
        quiet.wait_frames(1)
        assert references(one) == before + 1
        peer, frame = quiet.peers[-1], quiet.frames[0][1]
        quiet.react = good
        peer.send(ack(frame))
        p.flush(SECONDS)
        wait_for(lambda: references(one) == before)
    finally:
        quiet.react = good
        p.close()


def test_an_arrow_chunk_lives_as_long_as_its_bodies(quiet):
    class Chunks:
        def __init__(self, chunks):
            self.chunks = chunks

        def __arrow_c_stream__(self, requested=None):
            return pa.RecordBatchReader.from_batches(self.chunks[0].schema, self.chunks).__arrow_c_stream__(requested)

    before = pa.total_allocated_bytes()
    bodies = [body(HELD, i) for i in range(64)]
    quiet.react = silent
    p = dataproxy.Producer(quiet.target, group_id="g", linger=0)
    try:
        data = Chunks([pa.record_batch({"value": bodies[i : i + 16]}) for i in range(0, 64, 16)])
        p.send_arrow("s", data)
        del data
        gc.collect()
        assert pa.total_allocated_bytes() - before >= 64 * HELD
        quiet.react = good
        for number, frame in list(quiet.frames):
            quiet.peers[number].send(ack(frame))
        p.flush(SECONDS)
        wait_for(lambda: pa.total_allocated_bytes() == before)
    finally:
        quiet.react = good
        p.close()
    assert set(quiet.bodies()) == set(bodies)


def test_lost_connections_send_the_same_bytes_again():
    tries = []

    def react(peer, frame):
        tries.append(frame)
        if len(tries) % 3 == 1:
            peer.reset()
        else:
            good(peer, frame)

    bodies = [body(n, i) for i, n in enumerate([100, HELD, 50_000] * 30)]
    with (
        Scripted(react) as server,
        dataproxy.Producer(server.target, group_id="g", retry_backoff="1ms", reconnect_backoff="1ms") as p,
    ):
        p.send_batch("s", bodies)
        report = p.flush(SECONDS)
        assert (report.delivered, report.failed) == (90, 0)
        assert set(server.bodies()) == set(bodies)
        by_number = {}
        for frame in tries:
            by_number.setdefault(frame[4:40], set()).add(frame)
        assert all(len(same) == 1 for same in by_number.values())


def test_a_slow_reader_gets_frames_in_many_small_writes():
    bodies = [body(n, i) for i, n in enumerate([10, HELD, 200_000, 5_000, 70_000] * 20)]
    with Scripted(receive_buffer=2048) as server, dataproxy.Producer(server.target, group_id="g") as p:
        p.send_batch("s", bodies)
        assert p.flush(SECONDS).delivered == 100
        assert server.bodies() == bodies


def test_more_pieces_than_one_write_takes(quiet):
    bodies = [body(HELD, i) for i in range(3000)]
    with dataproxy.Producer(quiet.target, group_id="g", linger=1, batch_bytes=100_000) as p:
        p.send_batch("s", bodies)
        report = p.flush(SECONDS)
        assert (report.delivered, report.retries) == (3000, 0)
    assert quiet.bodies() == bodies
    assert max(len(frame) for _, frame in quiet.frames) <= 100_000 + 200


def test_refused_for_one_message(quiet):
    """A pack with held bodies is divided like any other."""
    bad = body(HELD, "bad")
    bodies = [body(HELD, i) for i in range(7)]
    bodies.insert(3, bad)

    def react(peer, frame):
        peer.send(refusal(frame, 123) if bad[:200] in frame else ack(frame))

    with Scripted(react) as server:
        p = dataproxy.Producer(server.target, group_id="g")
        results = [p.send("s", one) for one in bodies]
        assert p.flush(SECONDS).failed == 1
        assert [one.exception(SECONDS) is None for one in results] == [one is not bad for one in bodies]
        assert [m.body for m in p.undelivered()] == [bad]
        p.close()


def test_undelivered_bodies_are_copies(quiet):
    bodies = [body(HELD, i) for i in range(30)]
    quiet.react = silent
    try:
        p = dataproxy.Producer(quiet.target, group_id="g", delivery_timeout="300ms", linger=0)
        before = [references(one) for one in bodies]
        p.send_batch("s", bodies[:20])
        [p.send_nowait("s", one, attrs={"k": "v"}) for one in bodies[20:]]
        assert p.flush(SECONDS).expired == 30
        wait_for(lambda: [references(one) for one in bodies] == before)
        assert sorted(m.body for m in p.undelivered()) == sorted(bodies)
        p.close()
    finally:
        quiet.react = good


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_newest", "raise"])
def test_full_buffers(policy):
    bodies = [body(40_000, i) for i in range(40)]
    before = [references(one) for one in bodies]
    refused = 0
    with Scripted(silent) as server:
        p = dataproxy.Producer(
            server.target, group_id="g", buffer_bytes=400_000, batch_bytes=100_000, on_full=policy, linger=0,
            delivery_timeout="60s",
        )  # fmt: skip
        for i in range(40):
            try:
                p.send_nowait("s", bodies[i])
            except BufferFullError:
                refused += 1
        stats = p.stats()
        assert stats.accepted == 40 - refused
        assert stats.accepted == stats.delivered + stats.failed + stats.expired + stats.dropped + stats.pending
        assert 0 < stats.pending * 40_000 <= 400_000
        assert (refused > 0) == (policy == "raise")
        # What was dropped is let go by the dispatcher, but for less than an eighth of the buffer.
        wait_for(lambda: sum(references(one) for one in bodies) - sum(before) <= stats.pending + 1)
        p.close(timeout=0)
        wait_for(lambda: [references(one) for one in bodies] == before)


def test_end_without_an_answer_lets_go_of_everything():
    bodies = [body(HELD, i) for i in range(50)]
    before = [references(one) for one in bodies]
    with Scripted(silent) as server:
        p = dataproxy.Producer(server.target, group_id="g", linger=10)
        p.send_batch("s", bodies[:25])
        p.send_nowait("s", bodies[30])
        assert p.close(timeout=0).failed == 26
        assert len(list(p.undelivered())) == 26
        seen = weakref.ref(p)
        del p
        gc.collect()
        wait_for(lambda: seen() is None)
        wait_for(lambda: [references(one) for one in bodies] == before)


def test_calls_that_fail_take_no_references(quiet):
    one, other = body(HELD), body(HELD, 1)
    with dataproxy.Producer(quiet.target, group_id="g", max_frame_bytes=100_000) as p:
        before = references(one), references(other)
        with pytest.raises(dataproxy.errors.InvalidMessageError):
            p.send_batch("s", [one, other, b""])
        with pytest.raises(dataproxy.errors.InvalidMessageError):
            p.send_batch("s", [one, other, bytes(200_000)])
        with pytest.raises(dataproxy.errors.InvalidMessageError):
            p.send_batch("s", [one, other, "text"])
        with pytest.raises(dataproxy.errors.InvalidMessageError):
            p.send_nowait("s", one, dt="yesterday")
        assert (references(one), references(other)) == before
    assert quiet.bodies() == []


def test_await_and_asynchronous_sending(quiet):
    bodies = [body(HELD + i, i) for i in range(50)]
    before = [references(one) for one in bodies]

    async def run():
        async with dataproxy.AsyncProducer(quiet.target, group_id="g") as p:
            await asyncio.gather(*(p.send("s", one) for one in bodies[:40]))
            await p.send_batch("s", bodies[40:])

    asyncio.run(run())
    assert sorted(quiet.bodies()) == sorted(bodies)
    gc.collect()
    assert [references(one) for one in bodies] == before


def test_threads_that_send_and_drop_their_bodies(quiet):
    """The only reference to a body is the pack's."""

    def send(thread):
        for i in range(200):
            s.send_nowait(body(HELD + i, thread))
            s.send_batch([body(HELD + i, f"{thread} {k}") for k in range(3)])

    with dataproxy.Producer(quiet.target, group_id="g", buffer_bytes="1MiB") as p:
        s = p.stream("s")
        threads = [threading.Thread(target=send, args=(i,)) for i in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert p.flush(SECONDS).delivered == 4 * 200 * 4
    wanted = [body(HELD + i, t) for t in range(4) for i in range(200)]
    wanted += [body(HELD + i, f"{t} {k}") for t in range(4) for i in range(200) for k in range(3)]
    assert sorted(quiet.bodies()) == sorted(wanted)


@pytest.mark.parametrize("seed", range(30))
def test_drawn_mixtures(seed):
    rng = random.Random(seed)
    options = {
        "batch_bytes": rng.choice([5_000, 40_000, 262_144]),
        "linger": rng.choice([0, 0.005, 1]),
        "executors": rng.choice([1, 2]),
        "batch_messages": rng.choice([1, 3, 65535]),
        "message_type": rng.choice([7, 7, 5]),
    }
    sent = []
    with Hub() as hub:
        with dataproxy.Producer(hub.target, group_id="g", **options) as p:
            for _ in range(rng.randrange(1, 15)):
                bodies = [
                    rng.randbytes(rng.choice([1, 50, HELD - 1, HELD, 9_000, 60_000]))
                    for _ in range(rng.choice([1, 2, 9, 40]))
                ]
                more = {"attrs": {"a": "b"}} if options["message_type"] == 7 and rng.random() < 0.3 else {}
                way = rng.randrange(4)
                if way == 0:
                    [p.send_nowait("s", one, **more) for one in bodies]
                elif way == 1:
                    p.send_batch("s", bodies, **more)
                elif way == 2:
                    p.send_arrow("s", pa.array(bodies, rng.choice([pa.binary(), pa.binary_view()])), **more)
                else:
                    [p.send("s", memoryview(one), **more) for one in bodies]
                sent += bodies
        assert sorted(r.body for r in hub.records("g", "s")) == sorted(sent)
