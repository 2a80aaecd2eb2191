"""A group that proxies do not know yet: what waits for it is bounded, and other streams keep their rate.

On virtual time: one connection, a proxy that answers within a millisecond, no sockets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from dataproxy import BufferFullError, DeliveryFailed, Producer
from dataproxy._core.producer.results.dispatch import next_batch
from dataproxy.producer.results.dispatcher import EventLog
from tests.native.probe_wire import Server
from tests.sim.proxy import take_frame
from tests.unit.producer.test_linger_and_load import ROOMY, Rounds, by_hand

BUFFER = 1 << 20
SHARE = BUFFER // 4
BODY = b"x" * 996  # 1000 bytes in a pack


class Proxy:
    """Answers what one producer writes: frames of group ``strange`` with 115 until the group is approved."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.producer: Producer = rounds.producer
        self.approved = False
        self.received = bytearray()
        self.frames: dict[bytes, int] = {b"strange": 0, b"known": 0}
        self.bytes = 0

    def answer(self) -> None:
        """Answer what has come."""
        data = self.rounds.net.take(0, 0)
        self.received += data
        self.bytes += len(data)
        while (frame := take_frame(self.received)) is not None:
            server = Server()
            reply = server.serve(frame, 0)["reply"]
            group = b"strange" if b"groupId=strange" in frame else b"known"
            self.frames[group] += 1
            if group == b"strange" and not self.approved:
                reply = server.refuse(reply, 115, b"Topic not configured for groupId=(strange), streamId=(s)")
            self.rounds.net.give(0, 0, reply)

    def run(self, ms: float, each_ms: Callable[[], None] = lambda: None) -> None:
        """Let time pass, a millisecond at a time."""
        for _ in range(int(ms)):
            each_ms()
            self.rounds.pass_ms(1)
            self.answer()
            self.rounds.client.round(0)

    def held(self) -> int:
        """Return how many bytes wait for unknown streams."""
        facts = self.rounds.client.facts()
        return int(facts["unknown_bytes"] + facts["unknown_open"])


@contextmanager
def proxy(**options: object) -> Iterator[Proxy]:
    given: dict[str, object] = {
        "buffer_bytes": BUFFER, "on_full": "raise", "linger": 0.001, "heartbeat": "off", "batch_bytes": 20_000,
        **options,
    }  # fmt: skip
    with by_hand(ROOMY, **given) as rounds:
        yield Proxy(rounds)


def strange(p: Producer, times: int = 1) -> int:
    """Send to the strange group; return how many messages were accepted."""
    stream = p.stream("s", group_id="strange")
    for count in range(times):
        try:
            stream.send_nowait(BODY)
        except BufferFullError:
            return count
    return times


def test_a_group_that_is_approved_after_half_a_minute_loses_nothing() -> None:
    with proxy() as it:
        deliveries = [it.producer.send("s", b"%d" % n, group_id="strange") for n in range(50)]
        it.run(33_000)
        assert not any(delivery.done() for delivery in deliveries)
        it.approved = True
        it.run(6_000)
        assert all(delivery.done() and delivery.exception() is None for delivery in deliveries)
        assert it.held() == 0
        report = it.producer.report()
        assert (report.delivered, report.failed) == (50, 0)
        assert it.frames[b"strange"] < 30


def test_a_group_that_never_is_known_fails_when_its_time_is_over() -> None:
    with proxy(unknown_group_timeout=3.0) as it:
        delivery = it.producer.send("s", b"x", group_id="strange")
        it.run(2_900)
        assert not delivery.done()
        it.run(300)
        error = delivery.exception(0)
        assert isinstance(error, DeliveryFailed) and error.code == 115
        assert it.held() == 0


def test_what_waits_takes_a_quarter_of_the_buffer() -> None:
    with proxy() as it:
        strange(it.producer)
        it.run(5)
        accepted = 1
        for _ in range(50):
            accepted += strange(it.producer, 100)
            it.run(5)
        assert SHARE - 1100 < accepted * 1000 <= SHARE
        assert it.held() <= SHARE
        with pytest.raises(BufferFullError, match="do not know take a quarter of the buffer") as caught:
            it.producer.send("s", BODY, group_id="strange")
        assert caught.value.details["unknown_group"] is True
        it.approved = True
        it.run(6_000)
        assert it.held() == 0
        assert it.producer.report().delivered == accepted
        assert strange(it.producer, 600) == 600  # there is no such limit any more


@pytest.mark.parametrize("how", ["batch", "attrs", "own ids", "many streams"])
def test_every_way_of_sending_keeps_to_the_quarter(how: str) -> None:
    with proxy() as it:
        p = it.producer
        streams = [p.stream(f"s{n}", group_id="strange") for n in range(600 if how == "many streams" else 3)]
        for stream in streams:
            stream.send_nowait(b"first")
        it.run(5)
        for turn in range(60):
            for stream in streams:
                try:
                    if how == "batch":
                        stream.send_batch([BODY] * 7)
                    elif how == "attrs":
                        stream.send_nowait(BODY, attrs={"a": str(turn)})
                    elif how == "own ids":
                        stream.send(BODY, message_id=f"id{turn}")
                    else:
                        stream.send_nowait(BODY)
                except BufferFullError:
                    break
            assert it.held() <= SHARE
            it.run(2)
        assert it.held() > SHARE // 2


def paced(it: Proxy) -> list[int]:
    """Send 20 messages a millisecond to a known group for a second; return how many were accepted and delivered."""
    p = it.producer
    stream = p.stream("s", group_id="known")
    before = it.frames[b"known"]
    accepted = [0]

    def send() -> None:
        for _ in range(20):
            stream.send_nowait(BODY)
            accepted[0] += 1

    it.run(1_000, send)
    it.run(5)
    return [accepted[0], it.frames[b"known"] - before]


def test_other_streams_keep_their_rate() -> None:
    """The same messages are accepted, in as many frames, and the wire carries next to nothing else."""
    with proxy(batch_messages=10) as it:
        alone = paced(it)
        sent = it.bytes
    with proxy(batch_messages=10) as it:
        strange(it.producer)
        it.run(5)
        while strange(it.producer, 100):
            it.run(5)
        before, refused = it.bytes, it.frames[b"strange"]
        assert paced(it) == alone
        assert it.bytes - before < sent * 1.01
        assert it.frames[b"strange"] - refused < 5
        report = it.producer.report()
        assert (report.delivered, report.failed) == (alone[0], 0)


def test_messages_accepted_before_the_first_refusal_give_way_when_others_need_the_room() -> None:
    with proxy() as it:
        first = strange(it.producer, 2000)
        assert first > 1000  # nothing has been refused yet: they fill the buffer
        with pytest.raises(BufferFullError):
            it.producer.send_nowait("s", BODY, group_id="known")
        it.run(20)
        assert it.producer.report().failed == 0  # nobody has needed the room since they were refused
        with pytest.raises(BufferFullError):
            it.producer.send_nowait("s", BODY, group_id="known")
        it.run(2)
        assert it.held() <= SHARE
        assert it.producer.report().errors.keys() == {115}
        for _ in range(700):
            it.producer.send_nowait("s", BODY, group_id="known")
        it.run(20)
        assert it.producer.report().delivered == 700


@pytest.mark.parametrize("on_full", ["drop_newest", "drop_oldest"])
def test_a_producer_that_drops_drops_what_comes_for_that_group_alone(on_full: str) -> None:
    with proxy(on_full=on_full) as it:
        stream = it.producer.stream("s", group_id="strange")
        stream.send_nowait(b"first")
        it.run(5)
        stream.send_batch([BODY] * 500)
        known = it.producer.stream("s", group_id="known").send_batch([BODY] * 500)
        it.run(10)
        report = it.producer.report()
        assert known.done()
        assert report.delivered == 500
        assert 500 - SHARE // 1000 <= report.dropped <= 500 - SHARE // 1000 + 21
        assert it.held() <= SHARE


def test_one_warning_names_the_group(caplog: pytest.LogCaptureFixture) -> None:
    log = EventLog()
    with caplog.at_level(logging.WARNING, "dataproxy"), proxy() as it:
        for n in range(5):
            it.producer.send_nowait(f"s{n}", b"x", group_id="strange")
        for _ in range(10):
            it.run(1_000)
            batch = next_batch(it.producer, 0.0)
            assert batch is not None
            for event in batch[2]:
                log.write(*event)
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.name == "dataproxy.route"
    for words in ("'strange'", "127.0.0.1:46801", "115", "unknown_group_timeout", "approved"):
        assert words in record.getMessage()
