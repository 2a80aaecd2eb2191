"""Push sessions by themselves: who has a queue, what is paused, told, evicted, and laws of random runs."""

import random

import pytest

from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.push.sessions import EVICTED, PAUSED, RESUMED, Place, Sessions
from tests.support.rocketclients import refusal

LIMITS = Limits(
    push_messages=8, push_bytes=1000, push_age=30.0, push_tell=1.0, push_grace=60.0, push_line_bytes=1500, pushes=6,
    all_pushes=20,
)  # fmt: skip
P = Place("g", "t", 0)


def began(sessions, connection=1, client="a", place=P, *, broadcasting=False, at=0):
    sessions.wish(connection, place.group, client, broadcasting, [(place.topic, place.queue)])
    [wish] = [one for one in sessions.fresh() if one.place == place]
    return sessions.open(wish, at)


def push(sessions, session, n, now, size=10):
    at = session.cursor
    sessions.pushed(session, [(at + i + 1, size) for i in range(n)], at + n, now)


def play(sessions, now, until, step=0.25):
    found = []
    while now <= until:
        sessions.tick(now)
        found += [(round(now, 2), event.what) for event in sessions.events()]
        now += step
    return found


@pytest.fixture
def sessions():
    return Sessions(LIMITS, 100)


# --- who has a queue


def test_a_queue_that_members_share_is_of_the_first_until_it_gives_it_up(sessions):
    session = began(sessions)
    sessions.wish(2, "g", "b", False, [("t", 0)])
    assert sessions.fresh() == () and sessions.holder(P) is session
    sessions.wish(1, "g", "a", False, [])
    assert sessions.ended == [session]
    [wish] = sessions.fresh()
    assert (wish.connection, wish.client_id) == (2, "b")


def test_each_member_of_a_broadcasting_group_has_the_queue(sessions):
    first, second = (began(sessions, n, "a", broadcasting=True) for n in (1, 2))
    assert first.number != second.number and len(sessions) == 2 and sessions.holder(P) is None


def test_the_newest_connection_of_a_client_takes_over_at_once(sessions):
    old = began(sessions)
    new = began(sessions, 2)
    assert sessions.ended == [old] and sessions.holder(P) is new
    assert sessions.find(1, "g") == ()


def test_whoever_stays_keeps_its_session_and_its_number(sessions):
    session = began(sessions)
    assert sessions.wish(1, "g", "a", False, [("t", 0), ("t", 1)]) == 0
    assert sessions.session(1, P) is session and [one.place.queue for one in sessions.fresh()] == [1]


def test_another_client_id_or_another_model_is_another_session(sessions):
    session = began(sessions)
    assert began(sessions, client="b") is not session
    assert began(sessions, client="b", broadcasting=True).wish.is_broadcasting
    assert len(sessions) == 1


def test_a_connection_has_a_limit_and_so_has_the_hub(sessions):
    assert sessions.wish(1, "g", "a", False, [("t", n) for n in range(10)]) == 4
    assert sessions.wish(1, "h", "a", False, [("t", 0)]) == 1
    for n in (2, 3):
        assert sessions.wish(n, f"g{n}", "a", False, [("t", m) for m in range(6)]) == 0
    assert sessions.wish(4, "g4", "a", False, [("t", m) for m in range(6)]) == 4
    for n in range(1, 5):
        sessions.part(n)
    assert sessions.vacant() == sessions.fresh() == ()
    assert sessions._wishes == sessions._groups == sessions._claims == sessions._counts == sessions._lines == {}


# --- pauses


@pytest.mark.parametrize(("n", "size"), [(8, 1), (1, 1000), (2, 600)])
def test_too_many_messages_or_bytes_pause_a_session(sessions, n, size):
    session = began(sessions)
    push(sessions, session, n, 5.0, size)
    assert sessions.room(session) == (0, 0)
    assert (sessions.pauses, session.paused_at) == (1, 5.0)


def test_what_is_too_old_pauses_a_session(sessions):
    session = began(sessions)
    push(sessions, session, 1, 0.0)
    assert play(sessions, 0.0, 29.75) == [] and sessions.room(session) == (7, 990)
    sessions.tick(30.0)
    assert sessions.room(session) == (0, 0)


def test_a_short_pause_is_not_told_and_a_session_goes_on_at_half(sessions):
    session = began(sessions)
    push(sessions, session, 8, 0.0)
    assert sessions.acknowledge(1, P, 3, 0.5) == 3
    assert sessions.room(session) == (0, 0)
    assert sessions.acknowledge(1, P, 4, 0.6) == 4
    assert sessions.room(session) == (4, 960)
    assert play(sessions, 0.75, 10) == []


def test_a_pause_is_told_and_so_is_its_end(sessions):
    session = began(sessions)
    push(sessions, session, 8, 0.0)
    assert play(sessions, 0.0, 10) == [(1.0, PAUSED)]
    sessions.acknowledge(1, P, 8, 10.0)
    [event] = sessions.events()
    assert (event.what, event.messages, event.bytes, event.acknowledged) == (RESUMED, 0, 0, 8)
    assert sessions.next_tick == float("inf") and session.paused_at is None


def test_who_acknowledges_nothing_is_evicted_a_grace_time_after_it_was_told(sessions):
    session = began(sessions)
    other = began(sessions, place=Place("h", "u", 1))
    push(sessions, session, 8, 0.0)
    sessions.wish(2, "g", "b", False, [("t", 0)])
    assert play(sessions, 0.0, 60.75) == [(1.0, PAUSED)]
    sessions.tick(61.0)
    [event] = sessions.events()
    assert (event.what, event.messages, event.bytes, event.age_s, event.acknowledged) == (EVICTED, 8, 80, 61.0, 0)
    assert set(sessions.ended) == {session, other} and sessions.evictions == 1
    assert [one.connection for one in sessions.fresh()] == [2]


def test_who_acknowledges_anything_is_slow_but_stays(sessions):
    session = began(sessions)
    push(sessions, session, 8, 0.0)
    found = play(sessions, 0.0, 50)
    sessions.acknowledge(1, P, 1, 50.0)
    found += play(sessions, 50.25, 109.75)
    assert found == [(1.0, PAUSED)]
    assert play(sessions, 110.0, 110.0) == [(110.0, EVICTED)]


def test_a_late_look_tells_before_it_evicts(sessions):
    session = began(sessions)
    push(sessions, session, 8, 0.0)
    sessions.tick(5000.0)
    assert [one.what for one in sessions.events()] == [PAUSED]
    assert play(sessions, 5000.0, 5100.0) == [(5060.0, EVICTED)]


def test_sessions_of_a_connection_share_its_room(sessions):
    first, second = began(sessions), began(sessions, place=Place("h", "t", 1))
    push(sessions, first, 1, 0.0, 900)
    push(sessions, second, 1, 0.0, 600)
    assert sessions.line_room(1) == 0
    assert sessions.room(first) == sessions.room(second) == (0, 0)
    assert first.paused_at is second.paused_at is None
    sessions.acknowledge(1, P, 1, 1.0)
    assert sessions.room(second) == (7, 400)


# --- acknowledgements


def test_an_acknowledgement_counts_whole_messages_wherever_frames_end(sessions):
    session = began(sessions)
    push(sessions, session, 3, 0.0)
    push(sessions, session, 3, 1.0)
    for offset, left, age in ((1, 5, 2.0), (4, 2, 1.0), (6, 0, 0.0)):
        assert sessions.acknowledge(1, P, offset, 2.0) == offset
        assert (session.messages, session.bytes, session.age(2.0)) == (left, 10 * left, age)


def test_what_is_acknowledged_twice_or_late_changes_nothing(sessions):
    session = began(sessions)
    push(sessions, session, 3, 0.0)
    assert sessions.acknowledge(1, P, 3, 1.0) == 3
    assert [sessions.acknowledge(1, P, offset, 2.0) for offset in (0, 2, 3)] == [None, None, None]
    assert session.acknowledged == 3 and session.moved_at == 1.0


def test_what_was_not_pushed_cannot_be_acknowledged(sessions):
    session = began(sessions)
    push(sessions, session, 3, 0.0)
    error = refusal(lambda: sessions.acknowledge(1, P, 4, 1.0))
    assert error.code == 1 and "up to 3 can be" in error.remark
    assert (session.acknowledged, session.messages, sessions.refused) == (0, 3, 1)


def test_nobody_acknowledges_what_is_pushed_to_another(sessions):
    session = began(sessions)
    push(sessions, session, 3, 0.0)
    assert "pushed to 'a'" in refusal(lambda: sessions.acknowledge(2, P, 2, 1.0)).remark
    assert session.messages == 3 and sessions.refused == 1


def test_without_a_session_a_commit_is_a_commit(sessions):
    assert sessions.acknowledge(1, P, 7, 0.0) == 7


def test_of_a_broadcasting_group_nothing_is_kept(sessions):
    session = began(sessions, broadcasting=True)
    push(sessions, session, 3, 0.0)
    assert sessions.acknowledge(1, P, 3, 1.0) is None
    assert session.messages == 0 and session.acknowledged == 3


def test_what_a_group_does_not_want_counts_as_acknowledged_with_what_lies_before_it(sessions):
    session = began(sessions)
    sessions.pushed(session, [], 5, 0.0)
    assert (session.acknowledged, session.cursor, session.tail) == (5, 5, 0)
    sessions.pushed(session, [(7, 10)], 9, 1.0)
    sessions.pushed(session, [], 20, 2.0)
    assert (session.acknowledged, session.tail) == (5, 9)
    assert sessions.acknowledge(1, P, 9, 3.0) == 20
    assert session.frames == type(session.frames)()


@pytest.mark.parametrize(("messages", "following"), [([(3, 1)], 4), ([(4, 1), (4, 1)], 5), ([(6, 1)], 5), ([], 2)])
def test_a_session_never_goes_back_and_never_pushes_twice(sessions, messages, following):
    session = began(sessions, at=3)
    with pytest.raises(ValueError, match=r"cursor"):
        sessions.pushed(session, messages, following, 0.0)


def test_a_reset_begins_another_session_at_the_new_offset(sessions):
    session = began(sessions)
    push(sessions, session, 3, 0.0)
    sessions.rewind(P, 0)
    assert sessions.holder(P) is session
    sessions.rewind(P, 1)
    assert sessions.ended == [session] and sessions.holder(P) is None
    [wish] = sessions.fresh()
    assert sessions.open(wish, 1).number > session.number
    assert sessions.line_room(1) == LIMITS.push_line_bytes


# --- laws


class World:
    """Members that come, stall, acknowledge in pieces, give queues up, and vanish; queues that grow."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sessions = Sessions(LIMITS, 0)
        self.now = 0.0
        self.ends = {0: 0, 1: 0, 2: 0}
        self.kept: dict[Place, int] = {}
        self.done: dict[Place, set[int]] = {}  # what some member of the group has acknowledged
        self.pushed: dict[int, list[int]] = {}  # by session number
        self.began: dict[int, int] = {}
        self.clients = {1: "a", 2: "b", 3: "c", 4: "b"}
        self.stalled: set[int] = set()
        self.paused: dict[tuple[int, Place], float] = {}

    def step(self) -> None:
        self.now += self.random.random() * 2
        kind = self.random.randrange(12)
        connection = self.random.choice(list(self.clients))
        if kind == 0:
            queues = [("t", n) for n in self.ends if self.random.random() < 0.6]
            group, broadcasting = self.random.choice([("g", False), ("h", True)])
            self.sessions.wish(connection, group, self.clients[connection], broadcasting, queues)
        elif kind == 1:
            self.sessions.part(connection)
        elif kind == 2:
            (self.stalled.discard if connection in self.stalled else self.stalled.add)(connection)
        elif kind == 3:
            self.acknowledge_wrongly(connection)
        elif kind < 7:
            self.ends[self.random.choice(list(self.ends))] += self.random.randrange(5)
        else:
            self.acknowledge(connection)
        self.hear()
        self.sessions.tick(self.now)
        self.hear()
        self.begin()
        self.push()
        self.look()

    def begin(self) -> None:
        for session in self.sessions.ended:
            self.paused.pop((session.wish.connection, session.wish.place), None)
        self.sessions.ended.clear()
        for wish in self.sessions.fresh():
            at = 0 if wish.is_broadcasting else self.kept.setdefault(wish.place, 0)
            session = self.sessions.open(wish, at)
            self.began[session.number], self.pushed[session.number] = at, []

    def push(self) -> None:
        for session in self.sessions.find():
            messages, size = self.sessions.room(session)
            end = self.ends[session.wish.place.queue]
            page = range(session.cursor, min(end, session.cursor + min(messages, 3)))
            if page and size:
                found = [(offset + 1, 1 + offset % 300) for offset in page if offset % 7 != 3]  # the group wants these
                self.sessions.pushed(session, found, page[-1] + 1, self.now)
                self.pushed[session.number] += [behind - 1 for behind, _ in found]

    def acknowledge(self, connection: int) -> None:
        if connection in self.stalled:
            return
        for session in self.sessions.find():
            if session.wish.connection == connection:
                offset = self.random.randint(session.acknowledged, session.cursor)
                kept = self.sessions.acknowledge(connection, session.wish.place, offset, self.now)
                self.done.setdefault(session.wish.place, set()).update(
                    one for one in self.pushed[session.number] if one < offset
                )
                if kept is not None:
                    self.kept[session.wish.place] = kept

    def acknowledge_wrongly(self, connection: int) -> None:
        for session in self.sessions.find():
            own = session.wish.connection == connection
            if own or not session.wish.is_broadcasting:
                before = session.acknowledged
                with pytest.raises(RefusedError):
                    self.sessions.acknowledge(connection, session.wish.place, session.cursor + own, self.now)
                assert session.acknowledged == before

    def look(self) -> None:
        lines: dict[int, int] = {}
        held: set[Place] = set()
        for session in self.sessions.find():
            place, found = session.wish.place, self.pushed[session.number]
            wanted = [n for n in range(self.began[session.number], session.cursor) if n % 7 != 3]
            assert found == wanted, "a session pushes everything, once, in order"
            assert session.acknowledged <= session.cursor
            assert session.messages == sum(one >= session.acknowledged for one in found)
            assert session.bytes == sum(1 + one % 300 for one in found if one >= session.acknowledged)
            assert session.messages <= LIMITS.push_messages + 2
            lines[session.wish.connection] = lines.get(session.wish.connection, 0) + session.bytes
            if not session.wish.is_broadcasting:
                assert place not in held, "a queue has one session"
                held.add(place)
        assert self.sessions._lines == {one: n for one, n in lines.items() if n}
        for place, kept in self.kept.items():
            assert {n for n in range(kept) if n % 7 != 3} <= self.done.get(place, set()), "nothing is lost"

    def hear(self) -> None:
        for event in self.sessions.events():
            key = event.wish.connection, event.wish.place
            if event.what == PAUSED:
                self.paused[key] = self.now
            elif event.what == RESUMED:
                del self.paused[key]
            else:
                assert self.now - self.paused.pop(key) >= LIMITS.push_grace, "told before it is evicted"


def test_laws_hold_whatever_members_do():
    played = []
    for seed in range(12):
        world = World(seed)
        for _ in range(400):
            world.step()
        assert len(world.pushed) > 10
        for connection in world.clients:
            world.sessions.part(connection)
        sessions = world.sessions
        assert len(sessions) == 0 and sessions._lines == sessions._counts == sessions._claims == {}
        assert sessions.next_tick == float("inf")
        played.append(sessions)
    assert sum(one.pauses for one in played) > 50 and sum(one.evictions for one in played) > 3
    assert sum(one.refused for one in played) > 50
