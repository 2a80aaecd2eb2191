"""Groups that a proxy does not know yet, over real sockets: nothing is lost, and nobody is held up."""

import asyncio
import threading

import pytest

import dataproxy
from tests.support.scripted import Peer, Scripted, ack, refusal

BODY = b"x" * 996


class Approving:
    """A proxy that refuses frames of group ``strange`` until ``approve`` was called."""

    def __init__(self) -> None:
        self.known = threading.Event()
        self.refused = threading.Semaphore(0)

    def __call__(self, peer: Peer, frame: bytes) -> None:
        if b"groupId=strange" in frame and not self.known.is_set():
            peer.send(refusal(frame, 115))
            self.refused.release()
        else:
            peer.send(ack(frame))


@pytest.fixture
def proxy():
    reaction = Approving()
    with Scripted(reaction) as server:
        yield server, reaction


def test_messages_of_a_new_group_are_delivered_when_it_is_known(proxy) -> None:
    server, reaction = proxy
    with dataproxy.Producer(server.target, group_id="strange", retry_backoff="1ms") as p:
        deliveries = [p.send("s", b"%d" % n) for n in range(100)]
        for _ in range(3):
            assert reaction.refused.acquire(timeout=20)
        assert p.stats().pending == 100
        reaction.known.set()
        assert [delivery.result(20).id for delivery in deliveries] == [delivery.id for delivery in deliveries]
        assert p.stats().retries_held_back == 0


def test_without_a_time_they_fail_at_once(proxy) -> None:
    server, _ = proxy
    p = dataproxy.Producer(server.target, group_id="strange", unknown_group_timeout=0)
    error = p.send("s", b"x").exception(20)
    p.close()
    assert isinstance(error, dataproxy.DeliveryFailed)
    assert (error.code, error.details["attempts"]) == (115, 1)


def test_a_task_that_waits_for_room_of_an_unknown_group_holds_nobody_up(proxy) -> None:
    """Tasks get room in turn; this one has no turn to give away."""
    server, reaction = proxy

    async def main() -> None:
        async with dataproxy.AsyncProducer(
            server.target, group_id="known", buffer_bytes=64_000, linger=0.001, max_block=30
        ) as p:
            strange = p.stream("s", group_id="strange")
            strange.send_nowait(BODY)
            for _ in range(2):  # the second refusal is that of a frame which was sent because of the first
                assert await asyncio.to_thread(reaction.refused.acquire, timeout=20)
            waiting = [asyncio.ensure_future(strange.send(BODY)) for _ in range(40)]
            for _ in range(200):
                assert (await p.send("s", BODY)).attempts == 1
            assert not any(task.done() for task in waiting)
            assert 1 < p.stats().pending <= 16
            reaction.known.set()
            assert len(await asyncio.gather(*waiting)) == 40

    asyncio.run(main())


def test_a_blocked_thread_goes_on_when_the_group_is_known(proxy) -> None:
    server, reaction = proxy
    with dataproxy.Producer(server.target, group_id="strange", buffer_bytes=64_000, linger=0.001) as p:
        p.send_nowait("s", BODY)
        assert reaction.refused.acquire(timeout=20)
        done = threading.Event()

        def send() -> None:
            for _ in range(40):
                p.send_nowait("s", BODY)
            done.set()

        thread = threading.Thread(target=send)
        thread.start()
        for _ in range(50):
            assert p.send("s", BODY, group_id="known").result(20)
        assert not done.is_set()
        reaction.known.set()
        thread.join(20)
        assert done.is_set()
        assert p.flush(20).ok
