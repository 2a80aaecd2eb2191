"""What was not delivered can be had back, with all it takes to send it again."""

import asyncio
import gc
from collections.abc import Mapping

import pytest

import dataproxy
from tests.loopback.producer.test_delivery import moody, producer
from tests.native.probe_streams import spoil_undelivered
from tests.support.scripted import Peer, Scripted, refusal, silent


@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize("message_type", [7, 6, 5, 3, 2])
def test_bodies_come_back_whole(message_type: int, compression: str) -> None:
    bodies = [b"bad-%d-" % i + bytes([65 + i % 20]) * (i * 7 % 300) for i in range(100)]
    with Scripted(moody if compression == "none" else lambda peer, frame: peer.send(refusal(frame, 110))) as server:
        p = producer(server.target, message_type=message_type, compression=compression, batch_messages=30)
        batch = p.send_batch("s", bodies)
        assert batch.result(20).delivered == 0
        before = p.stats()
        assert before.undelivered_bytes > 0
        got = list(p.undelivered())
        assert [m.body for m in got] == bodies
        assert {(m.group_id, m.stream_id, m.attempts, m.error.code) for m in got} == {("g", "s", 1, 110)}
        assert len({m.id for m in got}) == 100
        assert [m.id for m in got] == [m.error.details["id"] for m in got]
        assert p.stats().undelivered_bytes == 0
        assert list(p.undelivered()) == []
        assert p.close().not_kept == 0


def test_attributes_and_times_come_back() -> None:
    with Scripted(moody) as server:
        p = producer(server.target, exact_time=True)
        handle = p.stream("s", attrs={"k": "frame"})
        handle.send_nowait(b"bad", attrs={"own": "1"}, dt=1_700_000_000_123)
        handle.send_nowait(b"bad too")
        p.close()
        first, second = sorted(p.undelivered(), key=lambda m: m.body)
    assert (first.attrs, first.dt_ms) == ({"k": "frame", "own": "1"}, 1_700_000_000_123)
    assert second.attrs == {"k": "frame"}
    assert isinstance(first.attrs, Mapping)


def test_what_a_close_cuts_off_comes_back_wherever_it_was() -> None:
    with Scripted(silent) as server:
        p = producer(server.target, linger=60, batch_messages=5)
        p.send_batch("s", [b"sent"] * 5)
        server.wait_frames(1)
        p.send_nowait("s", b"in the open pack")
        report = p.close(0)
        got = {m.body: m for m in p.undelivered()}
    assert (report.failed, report.errors) == (6, {"CLOSED": 6})
    assert got[b"sent"].error.details["maybe_delivered"]
    assert got[b"sent"].attempts == 1
    late = got[b"in the open pack"]
    assert late.error.details["maybe_delivered"] == (late.attempts > 0)


def test_expired_messages_come_back() -> None:
    with Scripted(silent) as server:
        p = producer(server.target, delivery_timeout=0.05)
        assert isinstance(p.send("s", b"slow").exception(20), dataproxy.DeliveryExpired)
        (message,) = p.undelivered()
        assert isinstance(message.error, dataproxy.DeliveryExpired)
        assert message.body == b"slow"
        p.close()


def test_the_oldest_are_kept_up_to_the_limit_and_the_rest_is_counted() -> None:
    with Scripted(moody) as server:
        p = producer(server.target, batch_messages=10, undelivered_bytes=8192)
        for i in range(20):
            assert not p.send_batch("s", [b"bad %d %d" % (i, j) for j in range(10)]).result(20).ok
        stats = p.stats()
        assert 0 < stats.undelivered_bytes <= 8192
        got = [m.body for m in p.undelivered()]
        assert got == [b"bad %d %d" % (i, j) for i in range(20) for j in range(10)][: len(got)]
        assert 0 < len(got) == 200 - p.report().not_kept == 200 - stats.not_kept
        p.send_batch("s", [b"bad again"] * 10).result(20)  # there is room again
        assert len(list(p.undelivered())) == 10
        p.close()


def test_nothing_is_kept_when_nothing_is_asked_for() -> None:
    with Scripted(moody) as server:
        p = producer(server.target, undelivered_bytes=0)
        p.send_nowait("s", b"bad")
        assert p.close().not_kept == 1
        assert list(p.undelivered()) == []


def test_an_iteration_that_is_given_up_loses_nothing() -> None:
    with Scripted(moody) as server:
        p = producer(server.target, batch_messages=10)
        p.send_batch("s", [b"bad %d" % i for i in range(30)])
        p.close()
        got = []
        while len(got) < 30:
            messages = p.undelivered()
            got += [next(messages).body for _ in range(3)]
            del messages
            gc.collect()
        assert sorted(got) == sorted(b"bad %d" % i for i in range(30))
        assert list(p.undelivered()) == []


def test_leaving_a_block_says_what_stayed_behind() -> None:
    with Scripted(moody) as server:
        with pytest.raises(dataproxy.UndeliveredError) as caught, producer(server.target) as p:
            p.send_nowait("s", b"bad")
        assert caught.value.report.failed == 1
        assert [m.body for m in p.undelivered()] == [b"bad"]


def test_an_error_of_the_block_stays_the_error(caplog: pytest.LogCaptureFixture) -> None:
    def work(target: str) -> None:
        with producer(target) as p:
            p.send_nowait("s", b"bad")
            raise KeyError("mine")

    with Scripted(moody) as server:
        with pytest.raises(KeyError) as caught:
            work(server.target)
        (note,) = caught.value.__notes__
        assert "1 of 1 accepted messages was not delivered: 1 failed, by code {110: 1}" in note
        assert "1 failed" in caplog.text


def test_an_error_of_an_async_block_stays_the_error(caplog: pytest.LogCaptureFixture) -> None:
    async def work(target: str) -> None:
        async with dataproxy.AsyncProducer(target, group_id="g") as p:
            p.send_nowait("s", b"bad")
            raise KeyError("mine")

    with Scripted(moody) as server:
        with pytest.raises(KeyError) as caught:
            asyncio.run(work(server.target))
        (note,) = caught.value.__notes__
        assert "1 of 1 accepted messages was not delivered: 1 failed, by code {110: 1}" in note
        assert "1 failed" in caplog.text


def test_an_error_inside_a_batch_block_says_what_was_accepted() -> None:
    async def work(target: str) -> None:
        async with dataproxy.AsyncProducer(target, group_id="g") as p:
            async with p.batch("s"):
                pass
            async with p.batch("s") as batch:
                for _ in range(3):
                    await batch.add(b"x")
                raise KeyError("mine")

    with Scripted() as server:
        with pytest.raises(KeyError) as caught:
            asyncio.run(work(server.target))
        assert caught.value.__notes__ == [
            (
                "in addition, the batch had accepted 3 messages, which are still delivered; "
                "0 more waited for room and were not accepted"
            )
        ]


def test_what_had_its_result_first_comes_first() -> None:
    held: list[bytes] = []

    def answers_the_second_first(peer: Peer, frame: bytes) -> None:
        held.append(frame)
        if b"second" in frame:
            peer.send(b"".join(refusal(one, 110) for one in reversed(held)))

    with Scripted(answers_the_second_first) as server:
        p = producer(server.target, executors=1)
        p.send_nowait("s", b"first")
        server.wait_frames(1)
        p.send_nowait("s", b"second")
        p.close()
        assert [m.body for m in p.undelivered()] == [b"second", b"first"]


def test_nobody_makes_the_iterator_of_a_closed_thing_by_hand() -> None:
    from dataproxy._core.producer.results.drain import UndeliveredMessages

    with pytest.raises(TypeError):
        UndeliveredMessages(None)


def test_ids_of_the_caller_come_back_everywhere() -> None:
    ids = [f"id-{i}" for i in range(20)]
    mine: list[str] = []
    everybody: list[str] = []

    def note(into: list[str]):
        return lambda result: into.append(result.error.details["id"])

    with Scripted(moody) as server:
        p = producer(server.target, on_delivery=note(everybody))
        batch = p.send_batch("s", [b"bad"] * 20, message_ids=ids, on_delivery=note(mine))
        single = p.send("s", b"bad", message_id="alone", on_delivery=note(mine))
        p.close()
        assert (batch.ids(), single.id) == (ids, "alone")
        assert mine == everybody == [*ids, "alone"]
        assert [(m.id, m.attrs) for m in p.undelivered()] == [(i, {}) for i in [*ids, "alone"]]


def test_a_pack_that_cannot_be_unpacked_is_counted_and_the_next_come_back() -> None:
    with Scripted(lambda peer, frame: peer.send(refusal(frame, 110))) as server:
        p = producer(server.target, compression="snappy", batch_messages=10)
        for turn in range(3):
            assert p.send_batch("s", [b"%d" % turn * 200] * 10).result(20).delivered == 0
        assert spoil_undelivered(p) == 10
        before = p.stats().undelivered_bytes
        got = [m.body for m in p.undelivered()]
        assert got == [b"%d" % turn * 200 for turn in (1, 2) for _ in range(10)]
        assert before > p.stats().undelivered_bytes == 0
        assert p.close().not_kept == 10
