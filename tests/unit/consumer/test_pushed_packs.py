"""The account of packs that a hub pushes: who gets which, what becomes of them, and that all of them are counted."""

from __future__ import annotations

import random
import select
import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from dataproxy._core.consumer.pack import Pack
from dataproxy._core.consumer.pushedpack import CONFIRMED, EXPIRED, ask_end
from dataproxy._core.remoting.messages import read_messages
from dataproxy.consumer.outcomes import CLOSED, LATE, RENEWED, UNANSWERED
from dataproxy.consumer.pushed.packs import Packs
from dataproxy.consumer.pushed.reader import PackReader
from dataproxy.rocketmq.group.reader import Bounds
from dataproxy.wire.rocketmq.bodies import Subscription
from dataproxy.wire.rocketmq.headers import Pushed
from dataproxy.wire.rocketmq.messages import StoredMessage
from dataproxy.wire.rocketmq.queues import Queue


class Bench:
    """An account, and queues that frames come for."""

    def __init__(self, confirm_s: float = 1000.0, *, awaited: bool = False) -> None:
        self.ends: list[PackReader] = []
        self.due: list[float] = []
        self.packs = Packs(confirm_s, awaited=awaited, on_end=self.ends.append, on_due=self.due.append)
        self.owner = object()

    def _chunk_size(self) -> int:
        return 1 << 30

    def _take(self, reader: Any, chunks: Any) -> None:
        self.packs.put(reader, chunks)

    def _moved(self, reader: PackReader) -> None:
        self.packs.expire(RENEWED, (reader,))

    def queue(self, number: int = 0) -> PackReader:
        client: Any = SimpleNamespace()
        place = Queue("b", number, "T")
        return PackReader(client, "g", place, Subscription("T"), 0, bounds=Bounds(1, 1, 1), sink=self, commits=True)

    def push(self, reader: PackReader, n: int, session: int = 1, begin: int | None = None) -> bool:
        first = reader.backlog.next if begin is None else begin
        return self.push_stored(reader, [(b"%d" % (first + i), 0) for i in range(n)], session, begin)

    def push_stored(
        self, reader: PackReader, bodies: list[tuple[bytes, int]], session: int = 1, begin: int | None = None
    ) -> bool:
        """Let a frame come with bodies as they are stored, each with its marks."""
        first = reader.backlog.next if begin is None else begin
        stored = b"".join(
            StoredMessage("T", reader.queue.queue_id, body, sys_flag=sys_flag, queue_offset=first + i).write()
            for i, (body, sys_flag) in enumerate(bodies)
        )
        frame = Pushed(
            queue_offset=first, queue_id=reader.queue.queue_id, topic="T", consumer_group="g", session=session,
            begin_offset=first, next_offset=first + len(bodies), max_offset=100,
        )  # fmt: skip
        return reader.take(frame, read_messages(stored, "b")[0])

    def take(self) -> Pack:
        pack = self.packs.take(self.owner, 0)
        assert pack is not None
        return pack

    def confirm(self, pack: Pack) -> int | None:
        """Confirm a pack, as if the hub had answered at once; return the offset that is acknowledged."""
        assert ask_end(pack, True)
        out = self.packs.begin_confirm(pack, 10)
        assert out is not None
        self.packs.end(out, CONFIRMED)
        return out.offset

    def counts(self) -> tuple[int, ...]:
        found = self.packs.tally()
        for kind in ("packs", "messages"):
            one = found[kind]
            assert one["fetched"] == one["confirmed"] + one["rolled_back"] + one["expired"] + one["held"]
            assert min(one.values()) >= 0
        return tuple(found["packs"][name] for name in ("fetched", "confirmed", "rolled_back", "expired", "held"))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_one_pack_of_a_queue_is_out_at_a_time_and_queues_take_turns(bench: Bench) -> None:
    one, two = bench.queue(1), bench.queue(2)
    for reader in (one, one, two, two):
        bench.push(reader, 2)
    first, second = bench.take(), bench.take()
    assert (first.partition, second.partition) == ("b:T:1", "b:T:2")
    assert bench.packs.take(bench.owner, 0) is None
    assert bench.confirm(first) == 2 and first.outcome == "confirmed" and first.max_offset == 100
    third = bench.take()
    assert (third.partition, third.offset, third.bodies()) == ("b:T:1", 2, [b"2", b"3"])
    assert bench.counts() == (4, 1, 0, 0, 3)
    assert bench.confirm(third) == 4 and bench.confirm(second) == 2
    assert one.place() == (4, 100) and two.place() == (2, 100)


def test_the_next_pack_goes_out_while_a_confirm_is_under_way(bench: Bench) -> None:
    reader = bench.queue()
    bench.push(reader, 1)
    bench.push(reader, 1)
    first = bench.take()
    ask_end(first, True)
    out = bench.packs.begin_confirm(first, 10)
    assert out is not None and bench.packs.begin_confirm(first, 10) is None
    second = bench.take()
    assert bench.packs.open_of(reader) == bench.packs.open_of() == (1, 1)
    assert bench.packs.open_of(bench.queue(2)) == (0, 0)
    bench.packs.expire(CLOSED)
    assert (first.code, second.code) == (UNANSWERED, CLOSED)
    bench.packs.end(out, CONFIRMED)  # an answer that comes too late
    assert first.outcome == "expired" and bench.ends == [reader, reader]
    assert bench.counts() == (2, 0, 0, 2, 0)


def test_the_first_of_two_packs_is_counted_first_whenever_their_confirms_are_sent(bench: Bench) -> None:
    reader = bench.queue()
    bench.push(reader, 2)
    bench.push(reader, 3)
    begun = [bench.packs.begin_confirm(bench.take(), 10) for _ in range(2)]
    assert [one.offset for one in begun if one is not None] == [2, 5] and reader.backlog.done == 5


def test_a_confirm_that_is_interrupted_before_it_counts_ends_in_a_pack_that_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    bench = Bench()
    reader = bench.queue()
    bench.push(reader, 2)
    bench.push(reader, 2)
    pack = bench.take()

    def interrupt(_chunk: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as signals:
        signals.setattr(reader, "consume", interrupt)
        with pytest.raises(KeyboardInterrupt):
            bench.packs.begin_confirm(pack, 10)
    assert bench.packs.take(bench.owner, 0) is None, "the next pack of the queue is not confirmed in its place"
    now[0] += 10
    bench.packs.expire_late()
    assert (pack.outcome, pack.code, reader.backlog.done) == ("expired", UNANSWERED, 0)
    again = bench.take()
    assert again.bodies() == [b"0", b"1"] and bench.confirm(again) == 2 and bench.confirm(bench.take()) == 4
    assert bench.counts() == (3, 2, 0, 1, 0)


class Cut(deque[Any]):
    """A queue behind whose first end a signal handler raises, once."""

    armed = True

    def popleft(self) -> Any:
        found = super().popleft()
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt
        return found


@pytest.mark.parametrize("where", ["waiting", "line"])
def test_a_poll_that_is_interrupted_leaves_a_pack_that_expires_and_a_queue_that_goes_on(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    bench = Bench(60.0)
    reader = bench.queue()
    if where == "waiting":
        reader.waiting = Cut()
    else:
        bench.packs._ready = Cut()
    for _ in range(2):
        bench.push(reader, 1)
    with pytest.raises(KeyboardInterrupt):
        bench.packs.take(bench.owner, 0)
    assert bench.packs.take(bench.owner, 0) is None, "one pack of the queue is out, although nobody has it"
    assert bench.due == [60.0] and bench.packs.open_of(reader) == (1, 0)
    now[0] += 60
    bench.packs.expire_late()
    assert bench.confirm(bench.take()) == 1 and bench.confirm(bench.take()) == 2
    assert bench.counts() == (3, 2, 0, 1, 0)


def test_what_is_rolled_back_is_the_first_to_come_again(bench: Bench) -> None:
    reader = bench.queue()
    bench.push(reader, 1)
    bench.push(reader, 1)
    pack = bench.take()
    ask_end(pack, False)
    bench.packs.roll_back(pack)
    assert pack.outcome == "rolled_back" and bench.take().bodies() == [b"0"]
    assert bench.counts() == (3, 0, 1, 0, 2)


@pytest.mark.parametrize("state", ["parked", "paused", "dropped"])
def test_a_queue_that_is_given_up_gives_nothing_out_and_takes_nothing(bench: Bench, state: str) -> None:
    reader = bench.queue()
    for _ in range(3):
        bench.push(reader, 1)
    pack = bench.take()
    setattr(reader, state, True)
    bench.packs.close_queue(reader)
    assert bench.push(reader, 1) and bench.packs.take(bench.owner, 0) is None
    bench.packs.roll_back(pack)
    assert bench.packs.take(bench.owner, 0) is None
    assert bench.counts() == (3, 0, 3, 0, 0) and reader.backlog.done == 0


def test_another_session_ends_what_is_of_the_one_before(bench: Bench) -> None:
    reader = bench.queue()
    for _ in range(3):
        bench.push(reader, 1)
    confirming = bench.take()
    ask_end(confirming, True)
    under_way = bench.packs.begin_confirm(confirming, 10)
    assert under_way is not None
    pack = bench.take()
    assert not bench.push(reader, 1, begin=9)  # a gap
    bench.push(reader, 2, session=2, begin=0)
    assert (pack.outcome, pack.code, confirming.outcome) == ("expired", RENEWED, "held")
    assert reader.consume(under_way.waited.chunk) is None
    bench.packs.end(under_way, EXPIRED, UNANSWERED)
    again = bench.take()
    assert again.bodies() == [b"0", b"1"] and bench.confirm(again) == 2
    assert bench.counts() == (4, 1, 0, 3, 0)


def test_a_parked_queue_begins_behind_what_was_confirmed(bench: Bench) -> None:
    reader = bench.queue()
    bench.push(reader, 2)
    bench.push(reader, 2)
    pack = bench.take()
    reader.parked = True
    bench.packs.close_queue(reader)
    assert bench.confirm(pack) == 2 and reader.place() == (2, 100)
    reader.begin_anew()
    reader.parked = False
    assert reader.place() == (2, -1)
    bench.push(reader, 2, session=7, begin=2)
    assert bench.take().offset == 2
    reader.begin_anew(50)
    assert reader.place() == (50, -1)


def test_a_reset_moves_a_queue_that_no_hub_pushes_and_leaves_a_session_alone(bench: Bench) -> None:
    reader = bench.queue()
    reader.seek(3)
    assert reader.place() == (3, -1)
    bench.push(reader, 2)
    pack = bench.take()
    reader.seek(1)
    assert pack.outcome == "held" and reader.place() == (5, 100)
    reader.parked = True
    reader.seek(1)
    assert (pack.code, reader.place()) == (RENEWED, (1, -1)) and bench.counts() == (1, 0, 0, 1, 0)


def test_packs_that_are_out_for_too_long_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    bench = Bench(60.0)
    one, two = bench.queue(1), bench.queue(2)
    bench.push(one, 1)
    bench.push(two, 1)
    first = bench.take()
    now[0] += 10
    second = bench.take()
    assert bench.due == [60.0]
    ask_end(second, True)
    assert bench.packs.begin_confirm(second, 15) is not None and bench.due == [60.0, 15.0]
    now[0] += 15
    bench.packs.expire_late()
    assert (first.outcome, second.code, bench.due[-1]) == ("held", UNANSWERED, 35.0)
    now[0] += 35
    bench.packs.expire_late()
    assert first.code == LATE and bench.packs.begin_confirm(first, 10) is None
    assert bench.take().bodies() == [b"0"] and bench.counts() == (3, 0, 0, 2, 1)


def test_timers_do_not_grow_in_number_with_the_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    timers: list[float] = []
    bench = Bench(60.0)
    bench.packs._on_due = lambda seconds: timers.append(now[0] + seconds)
    reader = bench.queue()
    most = 0
    for _ in range(1200):
        bench.push(reader, 1)
        pack = bench.take()
        now[0] += 0.25
        bench.confirm(pack)
        now[0] += 0.25
        for due in [one for one in timers if one <= now[0]]:
            timers.remove(due)
            bench.packs.expire_late()
        most = max(most, len(timers))
    assert most <= 10


def test_waits_end_with_an_outcome_or_with_time(bench: Bench) -> None:
    reader = bench.queue()
    bench.push(reader, 1)
    pack = bench.take()
    assert not bench.packs.wait(pack, 0.01)
    bench.confirm(pack)
    assert bench.packs.wait(pack, 0) and bench.packs.open_of(reader) == bench.packs.open_of() == (0, 0)
    bench.packs.stop()
    assert bench.packs.take(bench.owner, 1000) is None and bench.packs.ended


def test_behind_the_end_nothing_is_taken_or_comes_again(bench: Bench) -> None:
    reader = bench.queue()
    bench.push(reader, 1)
    pack = bench.take()
    bench.packs.stop()
    bench.push(reader, 3)
    bench.packs.roll_back(pack)
    assert pack.outcome == "rolled_back" and not reader.waiting and bench.counts() == (1, 0, 1, 0, 0)


def test_the_descriptor_can_be_read_when_there_is_news() -> None:
    bench = Bench(awaited=True)
    look = select.poll()
    look.register(bench.packs.fileno(), select.POLLIN)
    bench.packs.look()
    assert look.poll(0) == []
    reader = bench.queue()
    bench.push(reader, 1)
    assert look.poll(0)
    bench.packs.look()
    assert look.poll(0) == []
    bench.confirm(bench.take())
    assert look.poll(0)


def test_whatever_happens_everything_is_counted_and_acknowledged_in_order() -> None:
    chance = random.Random(5)
    for _ in range(60):
        bench = Bench()
        reader = bench.queue()
        session, stored, kept, out = 1, 200, 0, []
        pushed = 0  # by the session that goes on
        for _ in range(120):
            step = chance.randrange(6)
            if step == 0 and pushed < stored:
                n = min(chance.randrange(1, 6), stored - pushed)
                assert bench.push(reader, n, session, pushed)
                pushed += n
            elif step == 1 and (pack := bench.packs.take(bench.owner, 0)) is not None:
                out.append(pack)
            elif step in (2, 3) and out:
                pack = out.pop(chance.randrange(len(out)))
                if pack.outcome != "held":
                    continue
                if step == 2:
                    ask_end(pack, False)
                    bench.packs.roll_back(pack)
                elif (offset := bench.confirm(pack)) is not None:
                    assert offset == kept + len(pack), "packs are confirmed one behind the other"
                    assert pack.bodies() == [b"%d" % n for n in range(kept, offset)]
                    kept = offset
            elif step == 4 and chance.random() < 0.2 and kept < stored:
                session, pushed = session + 1, kept + 1  # it begins where the group is
                assert bench.push(reader, 1, session, kept)
            bench.counts()
