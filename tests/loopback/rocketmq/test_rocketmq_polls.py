"""What a consumer that polls counts as done: iterators that are left in the middle, and calls that Ctrl-C ends."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

import pytest

from dataproxy.rocketmq import PullConsumer, ReceivedMessage
from tests.support.interrupting import interrupted_at
from tests.support.rocketserver import RocketServer

OFFSET = ("g", "t", 0)


@contextlib.contextmanager
def filled(n: int = 40) -> Iterator[RocketServer]:
    """Yield a server whose one queue has messages."""
    with RocketServer({"t": 1}) as server:
        for i in range(n):
            server.put("t", 0, b"%d" % i)
        yield server


def first_of(messages: Iterator[ReceivedMessage], n: int) -> list[int]:
    return [int(next(messages).body) for _ in range(n)]


def test_an_iterator_that_is_left_in_the_middle_leaves_its_last_message_and_those_behind_it() -> None:
    with filled() as server, PullConsumer(server.target, "g", "t", begin="first") as consumer:
        for message in consumer:
            if message.offset == 2:
                break
        assert [int(one.body) for one in consumer.poll(20)] == list(range(2, 32))
        assert [int(one.body) for one in consumer.poll(20)] == list(range(32, 40))


def test_an_iterator_that_is_left_in_the_middle_commits_what_is_before_its_last_message() -> None:
    with filled() as server, PullConsumer(server.target, "g", "t", begin="first") as consumer:
        for message in consumer:
            if message.offset == 20:
                break
        server.wait(lambda: server.offsets.get(OFFSET) == 20)  # nobody asks for more, or commits


@pytest.mark.parametrize("auto_commit", [False, True])
def test_messages_that_no_iterator_has_come_to_are_not_committed(auto_commit: bool) -> None:
    def work(consumer: PullConsumer) -> None:
        for message in consumer:
            consumer.commit()  # of what `poll` has returned, which is nothing
            if message.offset == 2:
                raise ZeroDivisionError

    with filled() as server:
        with PullConsumer(server.target, "g", "t", begin="first", auto_commit=auto_commit) as consumer:
            with pytest.raises(ZeroDivisionError) as raised:
                work(consumer)
            del raised
        assert server.offsets[OFFSET] == 2


@pytest.mark.parametrize("left_first", [0, 1])
def test_iterators_of_one_queue_that_are_left_give_their_rests_back_in_order(left_first: int) -> None:
    with filled(100) as server, PullConsumer(server.target, "g", "t", begin="first") as consumer:
        iterators = [iter(consumer), iter(consumer)]
        assert [first_of(one, 3) for one in iterators] == [[0, 1, 2], [32, 33, 34]]
        server.wait(lambda: consumer._ready)  # what is behind both
        iterators.pop(left_first)
        iterators.pop()
        assert [int(consumer.poll(20)[0].body) for _ in range(4)] == [2, 34, 64, 96]


def test_an_iterator_commits_nothing_of_another_one() -> None:
    with filled(70) as server, PullConsumer(server.target, "g", "t", begin="first") as consumer:
        slow, fast = iter(consumer), iter(consumer)
        assert first_of(slow, 1) == [0]
        assert first_of(fast, 33) == list(range(32, 65))
        consumer.close()
        assert server.offsets.get(OFFSET, 0) == 0


def test_an_iterator_commits_nothing_of_a_poll() -> None:
    with filled(70) as server, PullConsumer(server.target, "g", "t", begin="first") as consumer:
        assert len(consumer.poll(20)) == 32
        assert first_of(iter(consumer), 33) == list(range(32, 65))
        consumer.close()
        assert server.offsets.get(OFFSET, 0) == 0


def test_an_iterator_commits_each_list_that_it_has_come_to_the_end_of() -> None:
    with filled() as server, PullConsumer(server.target, "g", "t", begin="first") as consumer:
        messages = iter(consumer)
        assert first_of(messages, 33) == list(range(33))
        server.wait(lambda: server.offsets.get(OFFSET) == 32)
        assert first_of(messages, 7) == list(range(33, 40))
        del messages
        consumer.close()
        assert server.offsets[OFFSET] == 39


def test_what_is_left_of_a_queue_that_was_moved_does_not_come_again() -> None:
    with filled() as server, PullConsumer(server.target, "g") as consumer:
        (queue,) = consumer.queues("t")
        consumer.assign({queue: 0})
        messages = iter(consumer)
        assert first_of(messages, 2) == [0, 1]
        consumer.seek(queue, 38)
        del messages
        assert [int(one.body) for one in consumer.poll(20)] == [38, 39]


def poll(consumer: PullConsumer) -> list[ReceivedMessage]:
    return consumer.poll(20)


def commit(consumer: PullConsumer) -> list[ReceivedMessage]:
    consumer.commit()
    return []


def seek(consumer: PullConsumer) -> list[ReceivedMessage]:
    """Seek to where it is."""
    consumer.seek(consumer.assignment[0], 32)
    return []


@pytest.mark.parametrize(("call", "left"), [(poll, False), (poll, True), (commit, False), (seek, False)])
def test_a_call_that_a_signal_handler_ends_loses_no_messages(
    call: Callable[[PullConsumer], list[ReceivedMessage]], left: bool
) -> None:
    """The queue may hold no more than one list, so that nothing comes if the consumer has not asked for more."""
    interrupted, place = True, 0
    while interrupted:
        with filled(96) as server:
            with PullConsumer(server.target, "g", "t", begin="first", max_messages=32) as consumer:
                seen = [one.offset for one in consumer.poll(20)]
                if left:
                    next(iter(consumer))
                found, interrupted = interrupted_at(place, functools.partial(call, consumer))
                seen += [one.offset for one in found or ()]
                while len(seen) < 96:
                    found = consumer.poll(20)
                    assert found, f"nothing comes after an interrupt at place {place}"
                    seen += [one.offset for one in found]
                consumer.commit()
            assert (sorted(seen), server.offsets[OFFSET]) == (list(range(96)), 96), f"an interrupt at place {place}"
        place += 1
    assert place > 10
