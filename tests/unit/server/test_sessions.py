"""The table of connections: ids are never reused, the idle order is kept."""

import random
import socket

from tests.native.probe_hub import Sessions


def test_ids_are_never_found_again_after_removal():
    sessions = Sessions()
    seen = set()
    for _ in range(1000):
        one = sessions.add()
        assert one not in seen
        assert one >> 32 > 0, "ids are above every tag of a poller"
        seen.add(one)
        assert sessions.has(one)
        assert sessions.remove(one)
        assert not sessions.has(one)
        assert not sessions.remove(one)
    assert len({one & 0xFFFFFFFF for one in seen}) == 1, "the slot is reused, the generation is not"


def test_unknown_ids_are_not_found():
    sessions = Sessions()
    one = sessions.add()
    for other in (0, 1, one + 1, one + (1 << 32), 0xFFFFFFFFFFFFFFFF):
        assert not sessions.has(other)


def test_the_idle_order_follows_activity():
    sessions = Sessions()
    a, b, c = (sessions.add() for _ in range(3))
    sessions.touch(a, 10)
    assert sessions.idle_order() == [b, c, a]
    sessions.touch(a, 20)
    sessions.touch(c, 30)
    assert sessions.idle_order() == [b, a, c]
    sessions.remove(a)
    assert sessions.idle_order() == [b, c]
    sessions.remove(c)
    sessions.remove(b)
    assert sessions.idle_order() == []


def test_a_long_random_life_agrees_with_a_list():
    draw = random.Random(3)
    sessions = Sessions()
    order: list[int] = []
    for now in range(5000):
        kind = draw.random()
        if kind < 0.4 or not order:
            order.append(sessions.add())
        elif kind < 0.7:
            one = draw.choice(order)
            sessions.touch(one, now)
            order.remove(one)
            order.append(one)
        else:
            one = draw.choice(order)
            assert sessions.remove(one)
            order.remove(one)
    assert sessions.idle_order() == order
    assert len(sessions) == len(order)
    assert all(sessions.has(one) for one in order)


def test_replies_add_up():
    sessions = Sessions()
    one = sessions.add()
    assert sessions.reply(one, b"abc") == 3
    assert sessions.reply(one, b"") == 3
    assert sessions.reply(one, b"x" * 100_000) == 100_003


def test_replies_that_were_written_give_their_memory_back():
    """A peer that always leaves a little unread must not make the buffer grow for ever."""
    sessions = Sessions()
    near, far = socket.socketpair()
    with near, far:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        far.setblocking(False)
        one = sessions.add(near.detach())
        taken = 0
        for _ in range(3000):
            sessions.reply(one, b"r" * 4000)
            while sessions.flush(one) > 20_000:
                taken += len(far.recv(6000))
        assert taken > 11_000_000
        assert sessions.reply_memory(one) < 1 << 20
        sessions.remove(one)


def test_kept_answers_come_out_in_their_order_and_only_when_it_is_their_turn():
    draw = random.Random(5)
    for _ in range(200):
        sessions = Sessions()
        one = sessions.add()
        places = list(range(1, draw.randint(2, 30)))
        draw.shuffle(places)
        answered, given = 0, []
        for place in places:
            assert sessions.keep(one, place, b"%d" % place * draw.randint(1, 5)) > 0
            while (answer := sessions.next(one, answered)) is not None:
                answered += 1
                assert answer.startswith(b"%d" % answered)
                given.append(answered)
        assert given == sorted(places), "whatever came first, each in its turn"
        assert sessions.keep(one, 1000, b"") == sessions.keep(one, 1001, b"") / 2, "nothing else is kept"
        sessions.remove(one)
