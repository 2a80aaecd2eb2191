"""`dataproxy.Consumer` at a hub that pushes by RocketMQ's protocol: packs, their ends, resets, and seeks."""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import dataproxy
from dataproxy import Consumer, SeenRecords
from dataproxy._core.wire.inlong import message
from dataproxy.consumer.outcomes import UNANSWERED
from dataproxy.consumer.pushed.engine import PushedEngine
from dataproxy.errors import (
    ClosedError,
    ConfigError,
    ConfirmError,
    LocalProtocolError,
    SeekError,
)
from dataproxy.hub import Hub
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.offsets import Offsets
from dataproxy.rocketmq import Producer
from dataproxy.wire.rocketmq.codes import Answer
from dataproxy.wire.rocketmq.headers import ResetOffset
from tests.support.certificates import Authority
from tests.support.rocketpacks import balanced, committed, consume, drain, next_pack, numbers, send
from tests.support.waiting import SECONDS, eventually


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub:
        yield hub


def test_packs_come_are_confirmed_and_the_next_member_goes_on(hub: Hub) -> None:
    send(hub, *numbers(0, 500))
    with consume(hub) as consumer:
        consumer.wait_ready(SECONDS)
        assert Counter(drain(consumer, 500)) == Counter(numbers(0, 500))
        assert consumer.assignment() == [f"dataproxy:T:{n}" for n in range(4)]
        assert committed(hub) == 500  # a confirm returns when the hub has it
        assert sum(consumer.position().values()) == 500
        assert {one.messages for one in consumer.lag().values()} == {0}
        stats = consumer.stats()
        assert (stats.state, stats.trouble, stats.bytes) == ("member", "", sum(map(len, numbers(0, 500))))
        assert stats.messages == dataproxy.consumer.stats.Amounts(500, 500, 0, 0, 0) and balanced(consumer)
        assert stats.connects == 1 and min(stats.sent_bytes, stats.read_bytes) > 0
        assert consumer.poll(0.01) is None
    counts = hub.stats()["rocketmq"]
    assert counts["pulls"] == 0 and counts["push_messages"] == 500 and counts["push_sessions"] == 0
    send(hub, *numbers(500, 520))
    with consume(hub) as consumer:
        assert Counter(drain(consumer, 20)) == Counter(numbers(500, 520))
    assert consumer.stats().state == "closed"


def test_a_pack_says_where_it_is_from(hub: Hub) -> None:
    send(hub, b"first", b"second", queue=2, tag="new", keys=("k1", "k2"), properties={"a": "1,2=3"})
    with consume(hub) as consumer:
        pack = next_pack(consumer)
        assert (pack.topic, pack.partition, pack.offset, pack.max_offset) == ("T", "dataproxy:T:2", 0, 2)
        assert (len(pack), pack.outcome, pack.done, pack[-1].body, pack[1].id) == (2, "held", False, b"second", 1)
        told = pack[0].attributes
        assert (told["TAGS"], told["KEYS"], told["a"]) == ("new", "k1 k2", "1,2=3")
        pack.confirm()
        assert (pack.outcome, pack.code, pack.done) == ("confirmed", 0, True)
        with pytest.raises(LocalProtocolError, match="confirmed or rolled back before"):
            pack.rollback()
        with pytest.raises(LocalProtocolError, match="no pack of this consumer"):
            consumer.confirm("x")  # type: ignore[arg-type]


def test_columns_have_what_records_have_also_of_packed_bodies(hub: Hub) -> None:
    large = bytes(range(256)) * 40
    send(hub, b"one", large, queue=1, tag="t", properties={"p": "x,y=z"})
    with consume(hub) as consumer:
        pack = next_pack(consumer)
        batch = pa.record_batch(pack.to_arrow())
        assert batch.column("body").to_pylist() == [b"one", large] == pack.bodies() == [one.body for one in pack]
        assert batch.column("id").to_pylist() == [0, 1] and batch.column("offset").to_pylist() == [0, 0]
        assert batch.column("topic").to_pylist() == ["T", "T"]
        assert batch.column("partition").to_pylist() == ["dataproxy:T:1"] * 2
        assert [dict(one) for one in batch.column("attributes").to_pylist()] == [one.attributes for one in pack]


def test_a_rollback_brings_the_same_messages_first(hub: Hub) -> None:
    send(hub, *numbers(0, 300), queue=0)
    with consume(hub) as consumer:
        pack = next_pack(consumer)
        before = pack.bodies()
        pack.rollback()
        assert pack.outcome == "rolled_back" and balanced(consumer)
        again = next_pack(consumer)
        assert again.bodies() == before and again.offset == pack.offset == 0
        assert consumer.poll(0.05) is None  # one pack of a partition is out at a time
        again.confirm()
        assert before + drain(consumer, 300 - len(before)) == numbers(0, 300)
        stats = consumer.stats()
        assert stats.packs.rolled_back == 1 and stats.messages.confirmed == 300 and balanced(consumer)


def test_a_pack_that_is_out_for_too_long_comes_again(hub: Hub) -> None:
    send(hub, b"a", b"b", queue=0)
    with consume(hub, confirm_timeout=1) as consumer:
        late = next_pack(consumer)
        again = next_pack(consumer)
        assert again.bodies() == late.bodies() == [b"a", b"b"]
        with pytest.raises(ConfirmError) as caught:
            late.confirm()
        assert caught.value.code == "CONFIRM_LATE" and late.done
        again.confirm()
        assert consumer.stats().packs.expired == 1 and balanced(consumer)
    assert committed(hub) == 2


def test_records_confirm_packs_and_copies_are_told(hub: Hub) -> None:
    send(hub, *numbers(0, 40))
    with consume(hub) as consumer:
        found = [record.body for _, record in zip(range(40), consumer.records(), strict=False)]
        assert Counter(found) == Counter(numbers(0, 40))
    container = message.encode(
        1, [({"groupId": "b", "streamId": "s", "msgid": f"m{n}", "dt": "1767225600000"}, [b"%d" % n]) for n in range(3)]
    )
    send(hub, container, container, topic="C", queue=0)
    seen = SeenRecords(100)
    with consume(hub, topics=["C"]) as consumer:
        pack = next_pack(consumer)
        assert [one.body for one in dataproxy.inlong_records(pack, dedupe=seen)] == numbers(0, 3)
        assert seen.duplicates == 3
        pack.rollback()
        records = consumer.inlong_records()
        assert [next(records).message_id for _ in range(6)] == ["m0", "m1", "m2"] * 2


def test_auto_confirm_confirms_what_its_thread_got(hub: Hub) -> None:
    send(hub, *numbers(0, 400), queue=0)
    with consume(hub, auto_confirm=True) as consumer:
        found = 0
        while found < 400:
            found += len(next_pack(consumer))
        assert consumer.poll(0.01) is None
        assert eventually(lambda: committed(hub) == 400)


def test_tags_are_filter_items(hub: Hub) -> None:
    for n in range(30):
        send(hub, b"%d" % n, tag="abc"[n % 3], queue=0)
    with consume(hub, topics={"T": ["a", "c"]}) as consumer:
        assert drain(consumer, 20) == [b"%d" % n for n in range(30) if n % 3 != 1]
    assert eventually(lambda: committed(hub) == 30)


def test_a_paused_queue_is_not_pushed(hub: Hub) -> None:
    send(hub, *numbers(0, 10), queue=0)
    with consume(hub) as consumer:
        pack = next_pack(consumer)
        consumer.pause(pack.partition)
        assert eventually(lambda: hub.stats()["rocketmq"]["push_sessions"] == 3)
        send(hub, *numbers(10, 20), queue=0)
        pack.confirm()  # what is out can be confirmed all the same
        assert committed(hub) == 10
        assert consumer.poll(0.1) is None and hub.stats()["rocketmq"]["push_messages"] == 10
        send(hub, b"other", queue=1)
        assert drain(consumer, 1) == [b"other"]
        consumer.resume()
        assert drain(consumer, 10) == numbers(10, 20)
        consumer.pause()
        consumer.resume()
        send(hub, b"last", queue=0)
        assert drain(consumer, 1) == [b"last"] and balanced(consumer)
        with pytest.raises(ConfigError, match="is not assigned"):
            consumer.pause("b:T:9")


def test_what_waits_of_a_paused_queue_comes_again_after_it(hub: Hub) -> None:
    send(hub, *numbers(0, 300), queue=0)  # several frames: one is out, the others wait
    with consume(hub) as consumer:
        pack = next_pack(consumer)
        assert eventually(lambda: consumer.stats().packs.held > 1)
        consumer.pause()
        assert consumer.stats().packs.held == 1
        consumer.resume()  # it is not claimed again before the end of what is out
        found = pack.bodies()
        pack.confirm()
        assert found + drain(consumer, 300 - len(found)) == numbers(0, 300)
        assert balanced(consumer)
    assert committed(hub) == 300


def test_members_share_and_hear_of_it_and_nothing_comes_twice(hub: Hub) -> None:
    told: list[tuple[str, str, bool]] = []
    first = consume(
        hub, release_wait=SECONDS, on_assigned=lambda key: told.append(("has", key, False)),
        on_revoked=lambda key, lost: told.append(("lost", key, lost)),
    )  # fmt: skip
    send(hub, *numbers(0, 8))
    packs = []
    while sum(map(len, packs)) < 8:
        packs.append(next_pack(first))
    assert eventually(lambda: len(told) == 4)
    with consume(hub) as second:
        assert eventually(lambda: sum(what == "lost" for what, _, _ in told) == 2)
        assert not any(lost for _, _, lost in told)
        assert second.poll(0.1) is None and len(second.assignment()) <= 2
        for pack in packs:
            pack.confirm()  # the queues are given back behind this
        assert eventually(lambda: len(first.assignment()) == len(second.assignment()) == 2)
        assert eventually(lambda: hub.stats()["rocketmq"]["push_sessions"] == 4)
        send(hub, *numbers(8, 40))
        found: list[bytes] = []
        while len(found) < 32:
            for consumer in (first, second):
                pack = consumer.poll(0.05)
                if pack is not None:
                    found += pack.bodies()
                    pack.confirm()
        assert Counter(found) == Counter(numbers(8, 40))
    assert eventually(lambda: len(first.assignment()) == 4)
    first.close()
    assert eventually(lambda: sum(what == "lost" for what, _, _ in told) == 6)
    assert committed(hub) == 40 and balanced(first)


def test_a_pack_that_keeps_its_queue_too_long_expires(hub: Hub) -> None:
    send(hub, *numbers(0, 8))
    first = consume(hub)
    packs = []
    while sum(map(len, packs)) < 8:
        packs.append(next_pack(first))
    with consume(hub) as second:
        taken = drain(second, 4)  # two queues go to it, with what was not confirmed
        kept = set(first.assignment())
        for pack in [one for one in packs if one.partition in kept]:
            pack.confirm()
        lost = [one for one in packs if one.partition not in kept]
        assert Counter(body for one in lost for body in one.bodies()) == Counter(taken)
        for pack in lost:
            with pytest.raises(ConfirmError) as caught:
                pack.confirm()
            assert caught.value.code == "CONFIRM_REVOKED"
    first.close()


def test_a_lost_connection_ends_what_is_out_and_nothing_is_lost(hub: Hub) -> None:
    wanted = send(hub, *numbers(0, 100), queue=0)
    listener = hub.rocketmq_listener
    assert listener is not None
    with consume(hub) as consumer:
        pack = next_pack(consumer)
        listener.kill()
        assert eventually(lambda: hub.stats()["rocketmq"]["push_sessions"] == 0)
        listener.restart()
        assert eventually(lambda: pack.outcome == "expired")  # by the first frame of the new session
        with pytest.raises(ConfirmError, match="began anew") as caught:
            pack.confirm()
        assert caught.value.code == "CONFIRM_REVOKED"
        assert drain(consumer, len(wanted)) == wanted
        assert consumer.stats().connects == 2 and balanced(consumer)


def test_a_reset_by_an_administrator_begins_the_queue_anew(hub: Hub) -> None:
    send(hub, *numbers(0, 10), queue=0)
    service = hub._rocketmq
    assert service is not None
    with consume(hub) as consumer:
        assert drain(consumer, 10) == numbers(0, 10)
        send(hub, b"more", queue=0)
        pack = next_pack(consumer)

        def reset() -> None:
            service.offsets.stored.store("g", "T", {0: 4})
            service.pushes.reset("g", "T", {0: 4}, time.monotonic())

        service.run(reset)
        assert drain(consumer, 7) == [*numbers(4, 10), b"more"]
        with pytest.raises(ConfirmError, match="began anew"):
            pack.confirm()
        assert committed(hub) == 11 and balanced(consumer)


def test_a_busy_hub_is_asked_again_and_a_refusal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [Answer.SYSTEM_BUSY, Answer.SYSTEM_BUSY]
    real = Offsets.commit

    def commit(self: Offsets, request: Any, header: Any) -> Any:
        if left and header.commit_offset:
            raise RefusedError(left.pop(), "not now")
        return real(self, request, header)

    monkeypatch.setattr(Offsets, "commit", commit)
    with Hub(rocketmq_port=0) as hub:
        send(hub, b"a", queue=0)
        with consume(hub) as consumer:
            assert drain(consumer, 1) == [b"a"] and not left and committed(hub) == 1
            left.append(Answer.SYSTEM_ERROR)
            send(hub, b"b", queue=0)
            pack = next_pack(consumer)
            with pytest.raises(ConfirmError) as caught:
                pack.confirm()
            assert (caught.value.code, pack.code) == ("CONFIRM_REFUSED", 1) and balanced(consumer)


def test_a_reset_of_a_paused_queue_stays(hub: Hub) -> None:
    send(hub, *numbers(0, 10), queue=0)
    service = hub._rocketmq
    assert service is not None
    with consume(hub) as consumer:
        assert drain(consumer, 10) == numbers(0, 10)
        send(hub, b"more", queue=0)
        pack = next_pack(consumer)
        consumer.pause(pack.partition)
        assert eventually(lambda: hub.stats()["rocketmq"]["push_sessions"] == 3)
        service.run(lambda: service.registry.move(ResetOffset("T", "g", 0, True), {0: 4}, time.monotonic()))
        assert eventually(lambda: pack.outcome == "expired")
        with pytest.raises(ConfirmError, match="began anew"):
            pack.confirm()
        engine = consumer._core
        assert isinstance(engine, PushedEngine)
        done = threading.Event()
        engine._client.keeper.soon(engine._member.commit)
        engine._client.keeper.soon(done.set)
        assert done.wait(SECONDS) and committed(hub) == 4 and consumer.position()[pack.partition] == 4
        consumer.resume()
        assert drain(consumer, 7) == [*numbers(4, 10), b"more"] and balanced(consumer)
    assert committed(hub) == 11


def test_a_confirm_that_overtakes_the_one_before_it_tells_the_hub_of_both(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, waits = threading.Event(), threading.Event()
    real = PushedEngine._acknowledge

    def late(self: PushedEngine, out: Any) -> None:
        if out.waited.chunk.first == 0:
            waits.set()
            gate.wait(SECONDS)
        real(self, out)

    monkeypatch.setattr(PushedEngine, "_acknowledge", late)
    send(hub, b"a", queue=0)
    with consume(hub) as consumer:
        first = next_pack(consumer)
        send(hub, b"b", queue=0)
        thread = threading.Thread(target=first.confirm)
        thread.start()
        assert waits.wait(SECONDS)
        second = next_pack(consumer)
        second.confirm()
        assert (second.outcome, committed(hub)) == ("confirmed", 2)
        gate.set()
        thread.join(SECONDS)
        assert (first.outcome, committed(hub)) == ("confirmed", 2) and balanced(consumer)


def test_an_answer_to_an_offset_before_a_pack_does_not_confirm_it(hub: Hub) -> None:
    send(hub, b"a", queue=0)
    with consume(hub) as consumer:
        pack = next_pack(consumer)
        engine = consumer._core
        assert isinstance(engine, PushedEngine)
        out = engine._packs.begin_confirm(pack, SECONDS)
        assert out is not None
        engine._confirmed(out, 0, SimpleNamespace(code=Answer.SUCCESS))
        assert (pack.outcome, pack.code) == ("expired", UNANSWERED)


def test_a_hub_that_does_not_answer_leaves_the_outcome_open(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    real = Offsets.commit

    def commit(self: Offsets, request: Any, header: Any) -> Any:
        if header.commit_offset:
            gate.wait(SECONDS)
        return real(self, request, header)

    monkeypatch.setattr(Offsets, "commit", commit)
    with Hub(rocketmq_port=0) as hub:
        send(hub, b"a", queue=0)
        with consume(hub, call_timeout=3) as consumer:
            pack = next_pack(consumer)
            with pytest.raises(ConfirmError) as caught:
                pack.confirm()
            assert caught.value.code == "CONFIRM_UNANSWERED" and consumer.stats().packs.expired == 1
            begun = time.monotonic()
            consumer.close(0.5)
            assert time.monotonic() - begun < SECONDS / 2
            gate.set()


def test_a_seek_reads_from_another_place(hub: Hub) -> None:
    send(hub, *numbers(0, 10), queue=0)
    with consume(hub) as consumer:
        key = "dataproxy:T:0"
        pack = next_pack(consumer)
        assert consumer.seek(key, 7) == 7
        with pytest.raises(ConfirmError) as caught:
            pack.confirm()
        assert caught.value.code == "CONFIRM_SOUGHT"
        assert drain(consumer, 3) == numbers(7, 10)
        assert consumer.seek(key, "earliest") == 0
        assert drain(consumer, 10) == numbers(0, 10)
        assert consumer.seek(key, "latest") == 10
        with pytest.raises(SeekError) as beyond:
            consumer.seek(key, 11)
        assert beyond.value.code == "SEEK_BEYOND" and beyond.value.details["end"] == 10
        send(hub, b"next", queue=0)
        assert drain(consumer, 1) == [b"next"] and balanced(consumer)
        for wrong in ("x", -1, 1.5):
            with pytest.raises(ConfigError, match="offset"):
                consumer.seek(key, wrong)  # type: ignore[arg-type]
    assert committed(hub) == 11


def test_start_says_where_a_group_without_offsets_begins(hub: Hub) -> None:
    send(hub, *numbers(0, 5), queue=0)
    service = hub._rocketmq
    assert service is not None
    service.run(lambda: setattr(service.topics, "is_young", lambda *_: False))
    with consume(hub, start="latest") as consumer:
        assert eventually(lambda: hub.stats()["rocketmq"]["push_sessions"] == 4)
        send(hub, b"new", queue=0)
        assert drain(consumer, 1) == [b"new"]


def test_a_close_waits_for_confirms_and_no_longer(hub: Hub) -> None:
    send(hub, b"a", queue=0)
    consumer = consume(hub, release_wait=SECONDS)
    pack = next_pack(consumer)
    closer = threading.Thread(target=consumer.close, args=(SECONDS,))
    closer.start()
    assert eventually(lambda: consumer._closed)
    with pytest.raises(ClosedError):
        consumer.poll()
    pack.confirm()
    closer.join(SECONDS)
    assert not closer.is_alive() and committed(hub) == 1 and consumer.stats().state == "closed"
    send(hub, b"b", queue=0)
    with consume(hub) as other:
        left = next_pack(other)
    with pytest.raises(ConfirmError) as caught:
        left.confirm()
    assert caught.value.code == "CONFIRM_REVOKED"
    assert list(iter(other)) == [] and balanced(other)


def test_confirms_that_are_under_way_at_a_close_get_their_answers(hub: Hub) -> None:
    send(hub, *numbers(0, 400), queue=0)
    with consume(hub) as consumer:
        packs = []
        while sum(map(len, packs)) < 400:
            packs.append(next_pack(consumer))
            consumer.confirm(packs[-1], wait=False)
    assert {one.outcome for one in packs} == {"confirmed"} and committed(hub) == 400


def test_what_is_not_closed_is_closed_when_nobody_has_it(hub: Hub) -> None:
    send(hub, b"a")
    consumer = consume(hub)
    threads = consumer._threads
    pack = next_pack(consumer)
    left = [consumer, pack]
    del consumer, pack
    gc.collect()
    with pytest.warns(ResourceWarning, match="was not closed"):
        left.clear()
    assert eventually(lambda: not any(one.is_alive() for one in threads))
    assert hub.stats()["rocketmq"]["push_sessions"] == 0


def test_packs_come_over_tls(tmp_path: Any) -> None:
    authority = Authority(tmp_path)
    identity = authority.identity()
    with Hub(rocketmq_port=0, tls_certificate=str(identity.certificate), tls_key=str(identity.key)) as hub:
        address, ca = f"127.0.0.1:{hub.rocketmq_port}", str(authority.ca)
        with Producer(f"rocketmqs://{address}", "p", tls_ca=ca) as producer:
            producer.send("T", b"secret").result(SECONDS)
        for scheme, tls in (("rocketmqs", None), ("rocketmq", True)):
            with Consumer(f"{scheme}://{address}", group=scheme, topics=["T"], tls_ca=ca, tls=tls) as consumer:
                assert drain(consumer, 1) == [b"secret"]


def test_many_threads_confirm_and_roll_back_and_all_is_accounted_for(hub: Hub) -> None:
    wanted = send(hub, *numbers(0, 2000))
    found: list[bytes] = []
    lock = threading.Lock()
    with consume(hub) as consumer:

        def work(seed: int) -> None:
            n = seed
            while len(found) < len(wanted):
                pack = consumer.poll(0.05)
                if pack is None:
                    continue
                n += 1
                if n % 3 == 0:
                    pack.rollback()
                else:
                    pack.confirm()
                    with lock:
                        found.extend(pack.bodies())
                assert balanced(consumer)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(SECONDS)
        assert Counter(found) == Counter(wanted)
        stats = consumer.stats()
        assert stats.messages.confirmed == 2000 and stats.packs.held == 0
    assert committed(hub) == 2000
